//! Export to a receiver that others use: rotel.

use crate::see::telemetry::{approves, asks, researcher};
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::event::EventBus;
use tenure_core::model::ModelErrorKind;
use tenure_hooks::see::Telemetry;
use tenure_models::Scripted;

/// The longest that the receiver may take to start, or to print what it got.
const PATIENCE: Duration = Duration::from_secs(30);

/// A receiver of one test. It is killed, by its id, when this is dropped.
struct Rotel {
    child: Child,
    port: u16,
    output: Arc<Mutex<String>>,
}

impl Rotel {
    fn start(signal: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/rotel/package/rotel");
        let program = folder.join("rotel-agent");
        assert!(program.is_file(), "rotel is not installed; run scripts/setup");
        // It cannot choose ports of its own.
        let free = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (http, grpc) = (free(), free());
        let ports = [&http, &grpc].map(|port| port.local_addr().expect("it has one").port());
        drop((http, grpc));
        let mut child = Command::new(program)
            .arg("start")
            .args(["--otlp-http-endpoint", &format!("127.0.0.1:{}", ports[0])])
            .args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{}", ports[1])])
            .args(["--exporter", "blackhole", "--debug-log", signal])
            .args(["--debug-log-verbosity", "detailed"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs here: scripts/setup has tried it");
        let output = Arc::new(Mutex::new(String::new()));
        read(child.stdout.take().expect("it is piped"), output.clone());
        read(child.stderr.take().expect("it is piped"), output.clone());
        let rotel = Self { child, port: ports[0], output };
        let is_there = || TcpStream::connect(("127.0.0.1", rotel.port)).is_ok();
        assert!(waited(is_there), "rotel does not listen. It said:\n{}", rotel.output());
        rotel
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn output(&self) -> String {
        self.output.lock().expect("nobody panicked").clone()
    }

    /// What it printed, once that has this in it.
    fn output_with(&self, text: &str) -> String {
        let found = waited(|| self.output().contains(text));
        assert!(found, "rotel never said `{text}`, but:\n{}", self.output());
        self.output()
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn waited(is_so: impl Fn() -> bool) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if is_so() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

fn read(from: impl Read + Send + 'static, to: Arc<Mutex<String>>) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let mut to = to.lock().expect("nobody panicked");
            to.push_str(&line);
            to.push('\n');
        }
    });
}

/// Runs one turn that ends well, with a tool and a question, and one that fails.
async fn run(telemetry: Telemetry) {
    let bus = EventBus::new();
    let agent = researcher(telemetry.clone()).with_lifecycle(asks()).on_ask(approves);
    let agent = agent.events(&bus).build().expect("it builds");
    let model = Scripted::empty().error(ModelErrorKind::Overloaded, "busy");
    let broken = Agent::builder("broken").model(model).with_lifecycle(telemetry).events(&bus);
    let broken = broken.build().expect("it builds");
    let both = agent.scoped(async |agent| {
        agent.run("tell me of larkspur").await?;
        broken.scoped(async |broken| broken.run("hello").await).await
    });
    assert!(both.await.is_err());
}

/// A span as it prints one: the lines from its id to the next one's.
fn span<'a>(output: &'a str, name: &str) -> &'a str {
    let of = |part: &&str| part.lines().any(|line| line.trim_end().ends_with(&format!(": {name}")));
    let found = output.split("Span #").skip(1).find(of);
    found.unwrap_or_else(|| panic!("no span `{name}` in:\n{output}"))
}

/// What a span says in the line that begins like this.
fn line<'a>(span: &'a str, begins: &str) -> &'a str {
    let line = span.lines().find_map(|line| line.trim().strip_prefix(begins));
    let said = line.unwrap_or_else(|| panic!("no line `{begins}` in:\n{span}"));
    said.trim_start_matches([' ', ':']).trim()
}

#[tokio::test]
async fn a_real_receiver_gets_the_spans() {
    let rotel = Rotel::start("traces");
    run(Telemetry::new().endpoint(rotel.url())).await;
    let output = rotel.output_with("invoke_agent researcher");
    let output = if output.contains("invoke_agent broken") {
        output
    } else {
        rotel.output_with("invoke_agent broken")
    };
    let turn = span(&output, "invoke_agent researcher");
    let id = line(turn, "ID");
    for name in ["chat scripted", "execute_tool search", "tenure.approval"] {
        assert!(!span(&output, name).is_empty());
    }
    let tool = span(&output, "execute_tool search");
    assert_eq!(line(tool, "Parent ID"), id, "{output}");
    assert!(!output.contains("larkspur"), "{output}");
}

#[tokio::test]
async fn a_real_receiver_takes_the_metrics() {
    let rotel = Rotel::start("metrics");
    run(Telemetry::new().endpoint(rotel.url())).await;
    let output = rotel.output_with("gen_ai.client.operation.duration");
    for name in ["gen_ai.client.token.usage", "tenure.hook.duration", "tenure.approval.wait"] {
        assert!(output.contains(name), "{name} in:\n{output}");
    }
}
