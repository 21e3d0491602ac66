//! Servers that speak HTTP. A part of this runs in a network of its own, since one of the servers
//! listens on every address of the machine.

use crate::mcp::support::{Lab, bounded, call, installed, npm};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_core::CancelToken;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::event::EventKind;
use tenure_hosts::mcp::{McpServer, McpState, McpTransport};
use tenure_testkit::eventually;

/// Says to a test that it runs in a network of its own.
const INSIDE: &str = "TENURE_TEST_NETWORK";

/// Runs this test once more, in a network that has nothing but itself. Inside, this is false.
fn was_run_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return false;
    }
    let this = std::env::current_exe().expect("this program");
    let inside = r#"ip link set lo up && exec "$0" "$@""#;
    let out = Command::new("unshare")
        .args(["-n", "sh", "-c", inside])
        .arg(this)
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare runs");
    let said = String::from_utf8_lossy(&out.stdout);
    print!("{said}");
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "inside it failed: {said}\n{wrong}");
    assert!(said.contains("1 passed"), "inside it did not run: {said}\n{wrong}");
    true
}

/// A server that is ended with the test.
struct Running(Child);

impl Running {
    fn start(port: u16) -> Self {
        let mut child = Command::new("node")
            .args([&installed("server-everything"), "streamableHttp"])
            .current_dir(npm())
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("node runs");
        let words = child.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(words).lines();
        let ready = lines.find(|line| line.as_ref().is_ok_and(|it| it.contains("listening")));
        assert!(ready.is_some(), "the server listens");
        // What it says later has to go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_server_over_http_does_everything_that_one_over_pipes_does() {
    if was_run_inside("mcp::http::a_server_over_http_does_everything_that_one_over_pipes_does") {
        return;
    }
    let running = Running::start(3001);
    let server = McpServer::new("web", McpTransport::http("http://127.0.0.1:3001/mcp"));
    let mut lab = Lab::new([server]);
    let asker = |_: &PendingAsk| Some(Answer::Respond(r#"{"name": "Ada"}"#.into()));
    let since = Instant::now();
    let agent = lab.start(lab.agent().on_ask(asker)).await;
    println!("connected in {:?}", since.elapsed());
    assert_eq!(lab.status().state, McpState::Connected, "{:?}", lab.status());
    assert_eq!(call(&agent, "web__echo", json!({ "message": "tea" })).await, "Echo: tea");
    let long = json!({ "duration": 0.3, "steps": 3 });
    let said = call(&agent, "web__trigger-long-running-operation", long).await;
    assert!(said.starts_with("Long running operation completed"), "{said}");
    let told = |kind: &EventKind| matches!(kind, EventKind::ToolProgress { .. });
    assert_eq!(lab.happened().iter().filter(|kind| told(kind)).count(), 3);

    // A turn is cancelled in the middle of an answer.
    let cancel = CancelToken::new();
    let long = r#"***CALL_TOOL web__trigger-long-running-operation {"duration": 60, "steps": 600}"#;
    let since = Instant::now();
    let turn = agent.request(long).cancel_on(&cancel).run();
    let (ended, ()) = tokio::join!(bounded("the turn", turn), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cancel.cancel();
    });
    assert!(ended.expect_err("it was cancelled").is_cancelled());
    assert!(since.elapsed() < Duration::from_secs(5));
    assert!(lab.happened().iter().any(told), "the answer had begun");
    assert_eq!(call(&agent, "web__echo", json!({ "message": "tea" })).await, "Echo: tea");

    let name = "web__trigger-elicitation-request";
    eventually("the tool is listed", || lab.tools().contains(&name.to_owned())).await;
    let said = call(&agent, name, json!({})).await;
    assert!(said.contains("Ada"), "{said}");
    let uri = "demo://resource/static/document/features.md";
    assert!(lab.view.read("web", uri).await.is_ok_and(|text| !text.is_empty()));

    // It goes away, and comes back.
    drop(running);
    let said = call(&agent, "web__echo", json!({ "message": "tea" })).await;
    assert!(said.contains("did not get through") || said.contains("went away"), "{said}");
    eventually("that is known", || lab.status().state != McpState::Connected).await;
    let running = Running::start(3001);
    eventually("it is back", || lab.status().state == McpState::Connected).await;
    assert_eq!(call(&agent, "web__echo", json!({ "message": "tea" })).await, "Echo: tea");
    bounded("the shutdown", agent.shutdown()).await;
    assert_eq!(lab.status().state, McpState::Idle);
    drop(running);
}

/// Answers every request in one way, and keeps what it was asked.
fn answering(answer: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let keep = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let request = head(&mut stream);
            keep.lock().expect("nobody panicked").push(request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (format!("http://{address}/mcp"), heard)
}

/// The head of a request.
fn head(stream: &mut TcpStream) -> String {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        all.push(byte[0]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn with_token(url: String) -> McpServer {
    let headers = vec![("Authorization".to_owned(), "Bearer hush-hush".to_owned())];
    McpServer::new("web", McpTransport::Http { url, headers })
}

#[tokio::test]
async fn headers_reach_the_server_and_an_unwelcome_caller_is_told_what_to_do() {
    let answer = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\
                  connection: close\r\n\r\n";
    let (url, heard) = answering(answer);
    let lab = Lab::new([with_token(url)]);
    let agent = lab.started().await;
    let status = lab.status();
    assert_eq!(status.state, McpState::Failed);
    let error = status.error.expect("an error");
    assert!(error.contains("Authorization"), "{error}");
    assert!(!error.contains("hush"), "{error}");
    agent.shutdown().await;
    let heard = heard.lock().expect("nobody panicked");
    let sent = heard[0].to_lowercase();
    assert!(sent.contains("authorization: bearer hush-hush"), "{sent}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_token_stays_where_it_is() {
    let (other, heard) = answering("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n");
    let moved = format!(
        "HTTP/1.1 307 Moved\r\nlocation: {other}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    let (url, asked) = answering(moved.leak());
    let lab = Lab::new([with_token(url)]);
    let agent = lab.started().await;
    assert_eq!(lab.status().state, McpState::Failed);
    agent.shutdown().await;
    assert!(!asked.lock().expect("nobody panicked").is_empty());
    assert!(heard.lock().expect("nobody panicked").is_empty(), "nothing went elsewhere");
}

#[tokio::test]
async fn an_address_that_makes_no_sense_is_told_without_its_secrets() {
    for url in ["ftp://me:hush@host.example/mcp", "not an address"] {
        let lab = Lab::new([McpServer::new("web", McpTransport::http(url))]);
        let agent = lab.started().await;
        let error = lab.status().error.expect("an error");
        assert!(error.contains("address"), "{error}");
        assert!(!error.contains("hush"), "{error}");
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_its_secrets() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let url = format!("http://{port}/mcp?key=hush-hush");
    let lab = Lab::new([McpServer::new("web", McpTransport::http(url))]);
    let agent = lab.started().await;
    let error = lab.status().error.expect("an error");
    assert!(error.contains("refused"), "{error}");
    assert!(!error.contains("hush"), "{error}");
    agent.shutdown().await;
}
