//! Metrics for Prometheus, as it reads them.

use crate::see::telemetry::asks;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::ask::Answer;
use tenure_core::event::EventBus;
use tenure_core::hook;
use tenure_core::model::{Cost, ModelErrorKind, ModelResponse, Usage};
use tenure_core::tool::{FnTool, ToolOutput, ToolSpec};
use tenure_hooks::calls::{Fallback, Retry};
use tenure_hooks::ready::{self, Bench};
use tenure_hooks::see::Metrics;
use tenure_models::{Passthrough, Scripted};

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().expect("it is an address")
}

/// What a server answers to this, as HTTP/1.1, and the connection is closed.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit can be set");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers, and closes");
    answer
}

async fn scrape(address: SocketAddr) -> String {
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    tenure_core::blocking(move || ask(address, request)).await
}

#[tokio::test]
async fn a_scrape_has_the_numbers() {
    let metrics = Metrics::new().listen(loopback());
    let usage = Usage {
        cached: 40,
        cost: Cost::from_nano_usd(250_000_000),
        unpriced: 0,
        ..Usage::new(100, 20)
    };
    let model = Scripted::empty()
        .calls([("search", json!({})), ("search", json!({ "fail": true }))])
        .reply(ModelResponse::text("found").with_usage(usage))
        .error(ModelErrorKind::Overloaded, "busy");
    let search = FnTool::new(ToolSpec::new("search", "Finds"), |arguments| {
        Ok(match arguments.get("fail") {
            Some(_) => ToolOutput::error("no"),
            None => "yes".into(),
        })
    });
    let agent = Agent::builder("clerk").model(model).tool(search).with_lifecycle(metrics.clone());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    let address = metrics.address().expect("it listens while there is an agent");
    agent.run("hello").await.unwrap();
    agent.run("hello").await.unwrap_err();
    let answer = scrape(address).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/openmetrics-text"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    for line in [
        r#"tenure_turns_total{agent="clerk",outcome="ok"} 1"#,
        r#"tenure_turns_total{agent="clerk",outcome="failed"} 1"#,
        r#"tenure_turns_running{agent="clerk"} 0"#,
        r#"tenure_turn_duration_seconds_count{agent="clerk"} 2"#,
        r#"tenure_model_calls_total{model="scripted",outcome="ok"} 2"#,
        r#"tenure_model_calls_total{model="scripted",outcome="overloaded"} 1"#,
        r#"tenure_model_call_duration_seconds_count{model="scripted"} 3"#,
        r#"tenure_tokens_total{model="scripted",kind="cached"} 40"#,
        r#"tenure_cost_usd_total{model="scripted"} 0.25"#,
        r#"tenure_tool_calls_total{tool="search",status="ok"} 1"#,
        r#"tenure_tool_calls_total{tool="search",status="error"} 1"#,
        r#"tenure_tool_call_duration_seconds_count{tool="search"} 2"#,
        "# EOF",
    ] {
        assert!(body.lines().any(|it| it == line), "{line} in:\n{body}");
    }
    agent.shutdown().await;
    assert_eq!(metrics.address(), None);
    assert!(TcpStream::connect(address).is_err(), "the port is closed with the last agent");
}

#[tokio::test]
async fn hooks_that_fail_and_questions_that_wait_are_counted() {
    let (metrics, bus) = (Metrics::new(), EventBus::new());
    let broken = hook::before_model(|_, _| {
        Box::pin(async { Err(tenure_core::Error::invalid("it broke").into()) })
    });
    let broken = hook::hook(broken).named("broken").observes();
    let model = Scripted::empty().call("search", json!({})).text("done");
    let agent = Agent::builder("a")
        .model(model)
        .tool(FnTool::new(ToolSpec::new("search", "Finds"), |_| Ok("yes".into())))
        .with_lifecycle(metrics.clone())
        .with_lifecycle(broken)
        .with_lifecycle(asks())
        .events(&bus)
        .build()
        .unwrap();
    let _somebody = bus.subscribe(1000);
    agent.startup().await.unwrap();
    let waits = || metrics.render().lines().any(|line| line == "tenure_asks_waiting 1");
    let answered = async {
        loop {
            if let Some(ask) = agent.pending_asks().first()
                && waits()
            {
                agent.answer(&ask.id, Answer::Approve);
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let both = futures_util::future::join(agent.run("hello"), answered);
    let (report, ()) = tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
    report.unwrap();
    agent.shutdown().await;
    let text = metrics.render();
    assert!(text.lines().any(|line| line == "tenure_asks_waiting 0"), "{text}");
    let failed =
        r#"tenure_hook_failures_total{hook="broken",point="before_model",outcome="failed"} 2"#;
    assert!(text.lines().any(|line| line == failed), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_for_the_model_that_gave_it_and_what_was_made_good_is_counted_too() {
    let (metrics, bus) = (Metrics::new(), EventBus::new());
    let own = Scripted::empty()
        .error(ModelErrorKind::Overloaded, "busy")
        .error(ModelErrorKind::Overloaded, "busy")
        .error(ModelErrorKind::Timeout, "late");
    let agent = Agent::builder("clerk")
        .model(own)
        .with_lifecycle(Fallback::to(Passthrough::new()))
        .with_lifecycle(Retry::new().attempts(3))
        .with_lifecycle(metrics.clone())
        .events(&bus)
        .build()
        .unwrap();
    agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    let text = metrics.render();
    for line in [
        r#"tenure_model_calls_total{model="passthrough",outcome="ok"} 1"#,
        r#"tenure_model_call_duration_seconds_count{model="passthrough"} 1"#,
        r#"tenure_tokens_total{model="passthrough",kind="input"} 1"#,
        r#"tenure_model_retries_total{model="scripted",kind="overloaded"} 2"#,
        r#"tenure_model_retries_total{model="scripted",kind="timeout"} 1"#,
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in:\n{text}");
    }
    let of_own = text.lines().filter(|line| line.contains(r#"model="scripted""#));
    assert!(of_own.clone().all(|line| line.starts_with("tenure_model_retries_total")), "{text}");
}

#[tokio::test]
async fn only_retries_and_fallbacks_of_models_count_as_such() {
    let (metrics, bus) = (Metrics::new(), EventBus::new());
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(metrics.clone());
    let agent = agent.events(&bus).build().unwrap();
    agent.startup().await.unwrap();
    agent.announce("retry", || json!({ "kind": "overloaded" }));
    agent.announce("retry", || json!({ "model": "m", "kind": "made up" }));
    agent.announce("other", || json!({ "model": "m", "kind": "overloaded" }));
    agent.announce("fallback", || json!({ "from": "m", "to": "n", "kind": "other" }));
    agent.shutdown().await;
    let text = metrics.render();
    let counted: Vec<_> =
        text.lines().filter(|line| line.starts_with("tenure_model_retries_total")).collect();
    assert_eq!(counted, [r#"tenure_model_retries_total{model="m",kind="model"} 1"#]);
}

#[tokio::test]
async fn only_the_metrics_can_be_asked_for() {
    let metrics = Metrics::new().listen(loopback());
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(metrics.clone());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    let address = metrics.address().unwrap();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "404"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n".to_owned(), "405"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(9000)), "431"),
    ] {
        let answer = tenure_core::blocking(move || ask(address, &request)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
    }
    // Whoever says nothing holds nobody up.
    let _silent: Vec<_> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(scrape(address).await.starts_with("HTTP/1.1 200"));
    agent.shutdown().await;
}

#[tokio::test]
async fn a_port_that_is_taken_leaves_the_agent_alone() {
    let taken = TcpListener::bind(loopback()).unwrap();
    let metrics = Metrics::new().listen(taken.local_addr().unwrap());
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(metrics.clone());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("hello").await.unwrap().output(), "hello");
    let said = format!("{:?}", agent.failures());
    assert!(said.contains("cannot be served"), "{said}");
    agent.shutdown().await;
    assert!(metrics.render().contains(r#"tenure_turns_total{agent="a",outcome="ok"} 1"#));
}

#[tokio::test]
async fn agents_of_a_team_count_together_into_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().root(folder.path());
    let with = json!({ "file": "out/tenure.prom" });
    let hook = ready::find("metrics").unwrap();
    for name in ["first", "second"] {
        let made = hook.make(&with, &bench).unwrap();
        let agent = Agent::builder(name).model(Passthrough::new()).with_lifecycle(made);
        let agent = agent.build().unwrap();
        agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    }
    let text = std::fs::read_to_string(folder.path().join("out/tenure.prom")).unwrap();
    for name in ["first", "second"] {
        let line = format!(r#"tenure_turns_total{{agent="{name}",outcome="ok"}} 1"#);
        assert!(text.contains(&line), "{line} in:\n{text}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path().join("out")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test]
async fn names_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().root(folder.path());
    let with = json!({ "file": "m.prom", "names": 2 });
    for name in ["one", "two", "three", "four"] {
        let made = ready::find("metrics").unwrap().make(&with, &bench).unwrap();
        let agent = Agent::builder(name).model(Passthrough::new()).with_lifecycle(made);
        let agent = agent.build().unwrap();
        agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    }
    let text = std::fs::read_to_string(folder.path().join("m.prom")).unwrap();
    assert!(text.contains(r#"tenure_turns_total{agent="other",outcome="ok"} 2"#), "{text}");
    assert!(!text.contains(r#"agent="three""#), "{text}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_leaves_the_agent_alone() {
    let metrics = Metrics::new().file(Path::new("/proc/no/such/folder"));
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(metrics);
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("hello").await.unwrap().output(), "hello");
    agent.shutdown().await;
    let said = format!("{:?}", agent.failures());
    assert!(said.contains("cannot be written"), "{said}");
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("metrics").unwrap().make(&with, &Bench::new());
    assert!(make(json!({ "listen": "127.0.0.1:9464" })).is_ok());
    assert!(make(json!({ "listen": "[::1]:9464" })).is_ok());
    assert!(make(json!({ "listen": "0.0.0.0:9464", "allow_remote": true })).is_ok());
    for (with, field, says) in [
        (json!({}), "", "`listen`"),
        (json!({ "listen": "9464" }), "listen", "127.0.0.1:9464"),
        (json!({ "listen": "0.0.0.0:9464" }), "listen", "allow_remote"),
        (json!({ "file": "../x" }), "file", "leads out"),
        (json!({ "file": "x", "names": 0 }), "names", "1 or more"),
    ] {
        let refused = make(with).unwrap_err();
        assert_eq!(refused.field(), field, "{refused}");
        assert!(refused.message().contains(says), "{refused}");
    }
}
