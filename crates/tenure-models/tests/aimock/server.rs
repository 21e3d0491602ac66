//! The process of aimock.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// How long the server may take to listen. It takes 0.3 s.
const START: Duration = Duration::from_secs(30);

/// Ends the server when the test is gone, also if the test was killed.
const END_WITH_THE_TEST: &str =
    "data:text/javascript,process.stdin.on('end',()=>process.exit()).resume();";

/// A server of one test. It is killed, by its id, when this is dropped.
pub(crate) struct Aimock {
    child: Child,
    fixtures: PathBuf,
    address: String,
    output: Arc<Mutex<String>>,
}

impl Aimock {
    /// Starts a server that answers by `fixtures`, on a port of its own.
    pub(crate) fn start(fixtures: &[Value], flags: &[&str]) -> Self {
        let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/npm");
        let program = installed.join("node_modules/@copilotkit/aimock/dist/cli.js");
        assert!(program.is_file(), "aimock is not installed; run scripts/setup");
        let file = write_fixtures(fixtures);
        let mut child = Command::new(installed.join("bin/node"))
            // The same seed makes the same faults, in the order in which requests come.
            .args(["--random-seed=20261116", "--import", END_WITH_THE_TEST])
            .arg(program)
            .args(["--host", "127.0.0.1", "--port", "0", "--strict", "--validate-on-load"])
            .args(["--journal-max", "0", "--fixtures"])
            .arg(&file)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("node is not installed; run scripts/setup");
        let (said, address) = mpsc::channel();
        let output = Arc::new(Mutex::new(String::new()));
        read(child.stdout.take().expect("it is piped"), output.clone(), said.clone());
        read(child.stderr.take().expect("it is piped"), output.clone(), said);
        let address = address.recv_timeout(START);
        let mut server = Self { child, fixtures: file, address: String::new(), output };
        server.address = address.unwrap_or_else(|_| {
            panic!("aimock does not listen. It said:\n{}", server.output());
        });
        server
    }

    /// Where it listens: `http://127.0.0.1:4010`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it has printed.
    pub(crate) fn output(&self) -> String {
        self.output.lock().expect("nobody panicked").clone()
    }

    /// Every request it has had, and what it answered.
    pub(crate) fn journal(&self) -> Value {
        let mut connection = TcpStream::connect(&self.address).expect("the server listens");
        connection.set_read_timeout(Some(START)).expect("a limit can be set");
        // As HTTP/1.0 the answer is not chunked, and ends with the connection.
        let request = b"GET /__aimock/journal HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
        connection.write_all(request).expect("the server reads");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("the server answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        serde_json::from_str(body).expect("the journal is JSON")
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        // It may have ended already, which a test has noticed by other means.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.fixtures);
    }
}

fn write_fixtures(fixtures: &[Value]) -> PathBuf {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("aimock-{}-{number}.json", std::process::id());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, json!({ "fixtures": fixtures }).to_string()).expect("the folder is there");
    file
}

/// Reads what the server prints to the end, so that it never waits for us, and finds its address.
fn read(from: impl Read + Send + 'static, to: Arc<Mutex<String>>, said: mpsc::Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once("listening on http://") {
                // Nobody waits any more if the start took too long.
                let _ = said.send(address.trim().to_owned());
            }
            let mut to = to.lock().expect("nobody panicked");
            to.push_str(&line);
            to.push('\n');
        }
    });
}
