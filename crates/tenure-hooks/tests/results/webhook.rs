//! Servers that are told of results, over a real connection.

use crate::results::run;
use crate::support::refused;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_hooks::ready::{self, Bench};
use tenure_hooks::result::{Notify, verify_signature};
use tenure_models::Passthrough;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A variable that is always set, and holds something that is no secret.
const SECRET: &str = "CARGO_PKG_NAME";

fn secret() -> String {
    std::env::var(SECRET).expect("tests run by cargo")
}

/// A request as it came.
#[derive(Clone, Debug)]
struct Request {
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    at: Instant,
}

/// A server that answers as it is told to, and remembers what it was sent.
struct Receiver {
    address: String,
    seen: Arc<Mutex<Vec<Request>>>,
    _task: AbortOnDropHandle<()>,
}

impl Receiver {
    /// Gives these answers, the last of them for ever. An empty one is never given.
    async fn answering(answers: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("it works here");
        let address = format!("http://{}/hook", listener.local_addr().expect("it works here"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let tracker = TaskTracker::new();
        let serve = async move {
            let mut hanging = Vec::new();
            for count in 0.. {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let Some(request) = read(&mut stream).await else { continue };
                kept.lock().expect("it works here").push(request);
                let answer = answers[count.min(answers.len() - 1)];
                if answer.is_empty() {
                    hanging.push(stream);
                    continue;
                }
                let text =
                    format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(text.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        };
        let _task = AbortOnDropHandle::new(tracker.spawn(serve));
        Self { address, seen, _task }
    }

    fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("it works here").clone()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    assert!(text.starts_with("POST /hook "), "{text}");
    let headers: BTreeMap<_, _> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers["content-length"].parse().expect("it works here");
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request { headers, body, at: Instant::now() })
}

fn echo() -> AgentBuilder {
    Agent::builder("clerk").model(Passthrough::new())
}

async fn told(receiver: &Receiver, limit: Duration) -> Vec<String> {
    let notify = Notify::webhook(&receiver.address, SECRET).expect("it works here").limit(limit);
    let (output, failures) =
        run(echo().with_lifecycle(notify), "hello").await.expect("it works here");
    assert_eq!(output, "hello");
    failures
}

#[tokio::test]
async fn a_server_that_fails_twice_is_told_in_the_third_attempt() {
    let answers = &["500 Oops", "503 Busy", "204 Fine"];
    let receiver = Receiver::answering(answers).await;
    let failures = told(&receiver, Duration::from_secs(10)).await;
    assert!(failures.is_empty(), "{failures:?}");
    let seen = receiver.seen();
    assert_eq!(seen.len(), 3);
    for request in &seen {
        let header = |name: &str| request.headers[name].as_str();
        assert_eq!(header("content-type"), "application/json");
        let told: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!((&told["output"], &told["outcome"]), (&json!("hello"), &json!("ok")));
        assert_eq!(told["delivery"], header("x-tenure-delivery"));
        let (timestamp, signature) = (header("x-tenure-timestamp"), header("x-tenure-signature"));
        assert!(verify_signature(&secret(), timestamp, &request.body, signature));
        assert!(!verify_signature("another", timestamp, &request.body, signature));
    }
    // It is the same delivery, so that the receiver can know it.
    assert_eq!(seen[0].headers["x-tenure-delivery"], seen[2].headers["x-tenure-delivery"]);
}

#[tokio::test]
async fn a_server_that_wants_a_pause_gets_it() {
    let answers = &["429 Slowly\r\nretry-after: 1", "200 Fine"];
    let receiver = Receiver::answering(answers).await;
    assert!(told(&receiver, Duration::from_secs(10)).await.is_empty());
    let seen = receiver.seen();
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(950), "{seen:?}");
}

#[tokio::test]
async fn a_pause_that_is_longer_than_the_time_is_not_waited_for() {
    let receiver = Receiver::answering(&["429 Slowly\r\nretry-after: 600"]).await;
    let since = Instant::now();
    let failures = told(&receiver, Duration::from_secs(10)).await;
    assert!(failures[0].contains("127.0.0.1 was not told in 1 attempts"), "{failures:?}");
    assert!(since.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_in_time() {
    let receiver = Receiver::answering(&[""]).await;
    let since = Instant::now();
    let failures = told(&receiver, Duration::from_millis(800)).await;
    assert!(failures.len() == 1 && failures[0].contains("no answer within"), "{failures:?}");
    assert!(since.elapsed() < Duration::from_secs(5));
    assert!((1..=3).contains(&receiver.seen().len()));
}

#[tokio::test]
async fn a_server_that_refuses_or_sends_elsewhere_is_not_told_again() {
    for (answers, why) in
        [(&["400 No"], "400"), (&["302 There\r\nlocation: /other"], "redirects are not followed")]
    {
        let receiver = Receiver::answering(answers).await;
        let failures = told(&receiver, Duration::from_secs(5)).await;
        assert!(failures.len() == 1 && failures[0].contains(why), "{failures:?}");
        assert_eq!(receiver.seen().len(), 1);
    }
}

#[tokio::test]
async fn attempts_are_bounded_and_so_is_a_server_that_is_not_there() {
    let receiver = Receiver::answering(&["500 Oops"]).await;
    let failures = told(&receiver, Duration::from_secs(10)).await;
    assert!(failures[0].contains("in 4 attempts: the answer was 500"), "{failures:?}");
    assert_eq!(receiver.seen().len(), 4);
    let address = receiver.address.clone();
    drop(receiver);
    let notify = Notify::webhook(&address, SECRET).unwrap().limit(Duration::from_millis(500));
    let (_, failures) = run(echo().with_lifecycle(notify), "hello").await.unwrap();
    assert!(failures.len() == 1 && !failures[0].contains("/hook"), "{failures:?}");
}

#[tokio::test]
async fn without_its_secret_nothing_is_sent() {
    let receiver = Receiver::answering(&["200 Fine"]).await;
    let bench = Bench::new();
    let with = json!({ "url": receiver.address, "secret_env": "TENURE_TEST_NOT_SET" });
    let hook = ready::find("notify").unwrap().make(&with, &bench).unwrap();
    assert!(bench.warnings()[0].contains("TENURE_TEST_NOT_SET is not set"));
    let (_, failures) = run(echo().with_lifecycle(hook), "hello").await.unwrap();
    assert!(failures[0].contains("TENURE_TEST_NOT_SET"), "{failures:?}");
    assert!(receiver.seen().is_empty());
}

#[tokio::test]
async fn a_receiver_that_trusts_everybody_is_told_without_a_signature() {
    let receiver = Receiver::answering(&["200 Fine"]).await;
    let with = json!({ "url": receiver.address, "unsigned": true, "what": ["outcome"] });
    let hook = ready::find("notify").unwrap().make(&with, &Bench::new()).unwrap();
    let (_, failures) = run(echo().with_lifecycle(hook), "hello").await.unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    let seen = receiver.seen();
    assert!(!seen[0].headers.contains_key("x-tenure-signature"));
    assert!(!String::from_utf8_lossy(&seen[0].body).contains("hello"));
}

#[test]
fn options_of_an_address_are_checked() {
    let with = |url: &str| json!({ "url": url, "secret_env": SECRET });
    for (with, field) in [
        (json!({ "url": "https://x.test" }), "secret_env"),
        (json!({ "url": "https://x.test", "secret_env": "a=b" }), "secret_env"),
        (json!({ "url": "https://x.test", "secret_env": "S", "unsigned": true }), "unsigned"),
        (with("http://x.test"), "url"),
        (with("ftp://x.test"), "url"),
        (with("https://me:pass@x.test"), "url"),
        (with("x.test/hook"), "url"),
    ] {
        assert_eq!(refused("notify", with.clone()), field, "{with}");
    }
    let make = |with| ready::find("notify").unwrap().make(&with, &Bench::new());
    assert!(make(with("https://x.test/hook")).is_ok());
    assert!(make(json!({ "url": "http://x.test", "unsigned": true, "allow_http": true })).is_ok());
}
