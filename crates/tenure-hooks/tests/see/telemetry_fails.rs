//! Telemetry where things go wrong: nobody is hurt by it, and nothing is made up.

use crate::see::receiver::{Receiver, contains, said};
use crate::see::telemetry::{asks, researcher};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::json;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::event::EventBus;
use tenure_core::model::ModelErrorKind;
use tenure_hooks::ready::{self, Bench};
use tenure_hooks::see::Telemetry;
use tenure_models::{Hanging, Passthrough, Scripted};

#[tokio::test]
async fn a_call_that_fails_says_which_kind_of_failure_it_was() {
    let receiver = Receiver::start();
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let model = Scripted::empty().error(ModelErrorKind::RateLimited, "too many for nightshade");
    let agent = Agent::builder("a").model(model).with_lifecycle(telemetry).build().unwrap();
    agent.scoped(async |agent| agent.run("hello").await).await.unwrap_err();
    for name in ["chat ", "invoke_agent"] {
        let span = receiver.span(name);
        assert_eq!(said(&span.attributes, "error.type").as_deref(), Some("rate_limited"));
        let status = span.status.unwrap();
        assert_eq!((status.code(), &*status.message), (StatusCode::Error, ""));
    }
    assert!(!contains(&receiver.bytes(), "nightshade"));
}

#[tokio::test]
async fn a_turn_that_is_dropped_still_has_its_spans() {
    let receiver = Receiver::start();
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let agent =
        Agent::builder("a").model(Hanging::new()).with_lifecycle(telemetry).build().unwrap();
    agent.startup().await.unwrap();
    let dropped = tokio::time::timeout(Duration::from_millis(50), agent.run("hello")).await;
    assert!(dropped.is_err());
    agent.shutdown().await;
    let chat = receiver.span("chat ");
    assert_eq!(said(&chat.attributes, "error.type").as_deref(), Some("cancelled"));
    let turn = receiver.span("invoke_agent");
    assert_eq!(said(&turn.attributes, "tenure.outcome").as_deref(), Some("cancelled"));
}

/// Runs some turns, and says how long they took, and the end.
async fn timed(telemetry: Telemetry) -> (Duration, Duration) {
    let agent = Agent::builder("a")
        .model(Passthrough::new())
        .with_lifecycle(telemetry)
        .build()
        .expect("it works as ever");
    agent.startup().await.expect("it works as ever");
    let began = Instant::now();
    for _ in 0..100 {
        let report = agent.run("hello").await.expect("it works as ever");
        assert!(report.failures.is_empty(), "{:?}", report.failures);
    }
    let turns = began.elapsed();
    let began = Instant::now();
    agent.shutdown().await;
    assert!(agent.failures().is_empty(), "{:?}", agent.failures());
    (turns, began.elapsed())
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_nobodys_failure() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (turns, end) = timed(Telemetry::new().endpoint(format!("http://127.0.0.1:{port}"))).await;
    assert!(turns < Duration::from_secs(2), "{turns:?}");
    assert!(end < Duration::from_secs(3), "{end:?}");
}

#[tokio::test]
async fn a_receiver_that_hangs_is_waited_for_only_so_long() {
    // It accepts, by its backlog, and never says a word.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let telemetry = Telemetry::new().endpoint(endpoint).flush(Duration::from_millis(300));
    let (turns, end) = timed(telemetry).await;
    assert!(turns < Duration::from_secs(2), "{turns:?}");
    assert!(end >= Duration::from_millis(250), "it did not wait at all: {end:?}");
    assert!(end < Duration::from_secs(2), "{end:?}");
}

#[tokio::test]
async fn a_header_that_the_environment_does_not_have_leaves_the_agent_alone() {
    let receiver = Receiver::start();
    let telemetry =
        Telemetry::new().endpoint(receiver.url()).header("authorization", "NO_SUCH_VARIABLE_7");
    let agent =
        Agent::builder("a").model(Passthrough::new()).with_lifecycle(telemetry).build().unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("hello").await.unwrap().output(), "hello");
    let said = format!("{:?}", agent.failures());
    assert!(said.contains("NO_SUCH_VARIABLE_7"), "{said}");
    agent.shutdown().await;
    assert!(receiver.bytes().is_empty());
}

#[tokio::test]
async fn headers_come_from_the_environment() {
    let receiver = Receiver::start();
    // The one variable that every test has.
    let telemetry = Telemetry::new().endpoint(receiver.url()).header("x-key", "PATH");
    let agent =
        Agent::builder("a").model(Passthrough::new()).with_lifecycle(telemetry).build().unwrap();
    agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    let path = std::env::var("PATH").unwrap();
    assert!(!receiver.heads().is_empty());
    for head in receiver.heads() {
        assert!(head.contains(&format!("x-key: {path}")), "{head}");
    }
}

#[tokio::test]
async fn an_agent_without_events_has_the_spans_of_its_calls() {
    let receiver = Receiver::start();
    let agent = researcher(Telemetry::new().endpoint(receiver.url())).build().unwrap();
    agent.scoped(async |agent| agent.run("tell me").await).await.unwrap();
    let mut names: Vec<_> = receiver.spans().into_iter().map(|span| span.name).collect();
    names.sort();
    let all = [
        "chat scripted",
        "chat scripted",
        "create_agent researcher",
        "execute_tool search",
        "invoke_agent researcher",
    ];
    assert_eq!(names, all);
}

#[tokio::test]
async fn whoever_only_watches_is_nobody_to_ask() {
    let (receiver, bus) = (Receiver::start(), EventBus::new());
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let agent = researcher(telemetry).with_lifecycle(asks()).events(&bus).build().unwrap();
    let run = agent.scoped(async |agent| agent.run("tell me").await);
    let report = tokio::time::timeout(Duration::from_secs(20), run).await.unwrap().unwrap();
    let told = report.history().iter().any(|said| said.text().contains("nobody can be asked"));
    assert!(told, "{:?}", report.history());
    let hook = receiver.span("tenure.hook");
    assert_eq!(said(&hook.attributes, "tenure.hook.outcome").as_deref(), Some("deny"));
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("telemetry").unwrap().make(&with, &Bench::new());
    assert!(make(json!({})).is_ok());
    assert!(make(json!({ "headers": { "authorization": "TOKEN" } })).is_ok());
    for endpoint in ["https://x.example", "http://127.0.0.1:4318", "http://[::1]:4318"] {
        let with = json!({ "endpoint": endpoint, "headers": { "authorization": "TOKEN" } });
        assert!(make(with).is_ok(), "{endpoint}");
    }
    for (with, field, says) in [
        (json!({ "endpoint": "localhost" }), "endpoint", "localhost"),
        (json!({ "endpoint": "ftp://x" }), "endpoint", "http://host:port"),
        (json!({ "endpoint": "http://me:hunter2@x" }), "endpoint", "headers"),
        (
            json!({ "endpoint": "http://x.example", "headers": { "authorization": "TOKEN" } }),
            "endpoint",
            "https://",
        ),
        (json!({ "headers": { "authorization": "Bearer abc" } }), "headers.authorization", "NAME"),
        (json!({ "headers": { "no header": "TOKEN" } }), "headers.no header", "name of a header"),
        (json!({ "sample": 2 }), "sample", "0 to 1"),
        (json!({ "metrics": false, "interval": "5s" }), "interval", "`metrics` is false"),
        (json!({ "content": true, "content_limit": 0 }), "content_limit", "false"),
        (json!({ "flush": "1m" }), "flush", "5s"),
    ] {
        let refused = make(with).unwrap_err();
        assert_eq!(refused.field(), field, "{refused}");
        assert!(refused.message().contains(says), "{refused}");
        assert!(!refused.message().contains("hunter2"), "{refused}");
        assert!(!refused.message().contains("Bearer"), "{refused}");
    }
}
