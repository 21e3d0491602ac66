//! Teams whose models are reached over the network: a server in this process, that writes down what
//! it was sent.

use crate::support::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_cards::card::Environ;
use tenure_cards::check::LoadOptions;
use tenure_cards::user::UserConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

/// One request: its head in lower case, and its body.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that speaks as OpenAI's does and answers `pong` to everything.
struct Server {
    port: u16,
    seen: Seen,
    tracker: TaskTracker,
    _stop: tokio_util::sync::DropGuard,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (seen, tracker) = (Seen::default(), TaskTracker::new());
        let stop = tokio_util::sync::CancellationToken::new();
        let (stopped, log, connections) = (stop.clone(), seen.clone(), tracker.clone());
        tracker.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    () = stopped.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let Ok((stream, _)) = accepted else { return };
                let (log, stopped) = (log.clone(), stopped.clone());
                connections.spawn(async move {
                    tokio::select! {
                        () = stopped.cancelled() => {}
                        () = answer(stream, &log) => {}
                    }
                });
            }
        });
        Self { port, seen, tracker, _stop: stop.drop_guard() }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    fn seen(&self) -> Vec<(String, Value)> {
        self.seen.lock().expect("not poisoned").clone()
    }

    async fn stop(self) {
        let Self { tracker, _stop, .. } = self;
        drop(_stop);
        tracker.close();
        let ended = tokio::time::timeout(Duration::from_secs(10), tracker.wait()).await;
        ended.expect("the server ends");
    }
}

/// Reads requests and answers each, until the other side goes.
async fn answer(mut stream: TcpStream, seen: &Seen) {
    let mut bytes = Vec::new();
    loop {
        let head = loop {
            if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            let mut block = [0; 4096];
            match stream.read(&mut block).await {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes.extend_from_slice(&block[..read]),
            }
        };
        let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|it| it.trim().parse().ok()).unwrap_or(0);
        while bytes.len() < head + length {
            let mut block = [0; 4096];
            match stream.read(&mut block).await {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes.extend_from_slice(&block[..read]),
            }
        }
        let body: Value = serde_json::from_slice(&bytes[head..head + length]).unwrap_or_default();
        bytes.drain(..head + length);
        let (kind, reply) = reply(&body);
        seen.lock().expect("not poisoned").push((text, body));
        let response = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{reply}",
            reply.len()
        );
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn reply(body: &Value) -> (&'static str, String) {
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    if body["stream"] == true {
        let chunk = |delta: Value, finish: Value| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
            json!({ "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "small",
                    "choices": [choice] })
        };
        let mut last = chunk(json!({}), json!("stop"));
        last["usage"] = usage;
        let first = chunk(json!({ "role": "assistant", "content": "pong" }), Value::Null);
        return ("text/event-stream", format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n"));
    }
    let message = json!({ "role": "assistant", "content": "pong" });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    let whole = json!({ "id": "1", "object": "chat.completion", "created": 1, "model": "small",
                        "choices": [choice], "usage": usage });
    ("application/json", whole.to_string())
}

fn options(variables: &[(&str, &str)], user: &str) -> LoadOptions {
    let user = UserConfig::parse(user, Path::new("config.toml"));
    assert!(user.report().is_empty(), "{:#?}", messages(user.report()));
    LoadOptions::default().environ(Environ::of(variables.iter().copied())).user_config(user)
}

#[tokio::test]
async fn a_card_runs_on_a_server_that_the_user_allows_with_the_users_key_and_its_own_parameters() {
    let server = Server::start().await;
    let card = "---\nname: a\nmodel: quick\nrequest_params: { temperature: 0.5, maxTokens: 77, \
                top_p: 0.25 }\n---\nYou answer.\n";
    let config = format!(
        "[providers.openai]\nbase_url = \"{}\"\n[aliases]\nquick = \"openai.small\"\n\
         [prices.\"openai.small\"]\ninput = 1\noutput = 2\n",
        server.url()
    );
    let project = Project::new([("a.md", card), ("tenure.toml", &config)]);
    let user = format!("[providers.openai]\nallow_hosts = [\"127.0.0.1:{}\"]\n", server.port);
    let options = options(&[("OPENAI_API_KEY", "sk-mine-12345")], &user);
    let team = project.builder_with(options).build().expect("a team");
    assert!(server.seen().is_empty(), "nothing is sent before the run");
    team.start().await.expect("it starts");
    let run = team.run(None, "ping").await.expect("it runs");
    team.shutdown().await;
    assert_eq!(run.output, "pong");
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    let (head, body) = &seen[0];
    assert!(head.contains("\r\nauthorization: bearer sk-mine-12345\r\n"), "{head}");
    assert!(head.starts_with("post /v1/chat/completions "), "{head}");
    assert_eq!(body["model"], "small");
    assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.5), &json!(0.25)));
    let most = [&body["max_tokens"], &body["max_completion_tokens"]];
    assert!(most.contains(&&json!(77)), "{body}");
    let usage = run.turn.expect("a turn").usage;
    assert_eq!((usage.input, usage.output), (10, 5));
    assert_eq!(usage.cost.to_string(), "$0.000020");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_the_project_chose_gets_no_key_of_the_users() {
    let server = Server::start().await;
    let url = server.url();
    // A server of the project's own needs no key, and gets none, whatever there is.
    let config = format!("[providers.local]\nkind = \"openai\"\nbase_url = \"{url}\"\n");
    let card = "---\nname: a\nmodel: local.small\n---\nx\n";
    let project = Project::new([("a.md", card), ("tenure.toml", &config)]);
    let keys = [("OPENAI_API_KEY", "sk-mine-12345"), ("LOCAL_API_KEY", "sk-local-12345")];
    let team = project.builder_with(options(&keys, "")).build().expect("a team");
    team.start().await.expect("it starts");
    assert_eq!(team.run(None, "ping").await.expect("it runs").output, "pong");
    team.shutdown().await;
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(!seen[0].0.contains("authorization") && !seen[0].0.contains("sk-"), "{}", seen[0].0);
    assert!(!seen[0].1.to_string().contains("sk-"), "{}", seen[0].1);

    // A provider that needs its key is not called without it, so it is not called at all.
    let config = format!("[providers.openai]\nbase_url = \"{url}\"\n");
    for key in ["", "api_key: ${OPENAI_API_KEY}\n"] {
        let card = format!("---\nname: a\nmodel: openai.small\n{key}---\nx\n");
        let project = Project::new([("a.md", &*card), ("tenure.toml", &*config)]);
        let report = project.builder_with(options(&keys, "")).build().expect_err("it is refused");
        let told = messages(&report).join("\n");
        assert!(told.starts_with("T0702") && told.contains("127.0.0.1"), "{told}");
        assert!(!told.contains("sk-mine"), "{told}");
    }
    // The project's own key is the project's to send.
    let card = "---\nname: a\nmodel: openai.small\napi_key: sk-of-the-project\n---\nx\n";
    let project = Project::new([("a.md", card), ("tenure.toml", &config)]);
    let team = project.builder_with(options(&keys, "")).build().expect("a team");
    team.start().await.expect("it starts");
    team.run(None, "ping").await.expect("it runs");
    team.shutdown().await;
    let seen = server.seen();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[1].0.contains("authorization: bearer sk-of-the-project"), "{}", seen[1].0);
    server.stop().await;
}
