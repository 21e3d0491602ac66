//! Usage and cost.

use serde_json::{Value, json};
use tenure_core::agent::Agent;
use tenure_core::context::ExecutionContext;
use tenure_core::event::{EventBus, EventKind, Received};
use tenure_core::message::ToolCall;
use tenure_core::model::{Cost, ModelErrorKind, ModelResponse, Usage};
use tenure_hooks::ready::{self, Bench};
use tenure_hooks::see::UsageReport;
use tenure_models::{Passthrough, Scripted};

fn costs(input: u64, output: u64, nanos: u64) -> Usage {
    Usage { cost: Cost::from_nano_usd(nanos), ..Usage::new(input, output) }
}

fn says(text: &str, usage: Usage) -> ModelResponse {
    ModelResponse::text(text).with_usage(usage)
}

#[tokio::test]
async fn it_adds_up_by_agent_model_user_and_run() {
    let report = UsageReport::new();
    let model = Scripted::empty()
        .reply(says("one", costs(10, 1, 500)))
        .reply(says("two", costs(20, 2, 700)))
        .error(ModelErrorKind::Overloaded, "busy");
    let agent = Agent::builder("clerk").model(model).with_lifecycle(report.clone());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    let of = |user: &str| ExecutionContext::unique().with_user_id(user);
    let first = agent.request("a").context(of("ann")).run().await.unwrap();
    agent.request("b").context(of("ben")).run().await.unwrap();
    agent.run("c").await.unwrap_err();
    agent.shutdown().await;
    let seen = report.snapshot();
    assert_eq!((seen.total.turns, seen.total.failed), (3, 1));
    assert_eq!((seen.total.usage.input, seen.total.usage.output), (30, 3));
    assert_eq!(seen.total.usage.cost.nano_usd(), 1200);
    assert_eq!(seen.agents["clerk"], seen.total);
    assert_eq!(seen.models["scripted"].usage, seen.total.usage);
    assert_eq!(seen.models["scripted"].failed, 1);
    assert_eq!(seen.users["ann"].usage.input, 10);
    assert_eq!(seen.users["ben"].usage.cost.nano_usd(), 700);
    assert_eq!(seen.users.len(), 2);
    assert_eq!(seen.runs[&first.run.to_string()].usage, first.usage);
    assert_eq!(seen.runs.len(), 3);
}

#[tokio::test]
async fn nothing_is_counted_twice_where_an_agent_is_a_tool() {
    let report = UsageReport::new();
    let child = Agent::builder("helper")
        .model(Scripted::new([says("done", costs(100, 10, 900))]))
        .with_lifecycle(report.clone())
        .blueprint()
        .unwrap();
    let call = ToolCall::new("c1", "agent__helper", r#"{"message":"go"}"#);
    let model = Scripted::empty()
        .reply(ModelResponse::calls([call]).with_usage(costs(5, 1, 10)))
        .reply(says("fine", costs(6, 1, 10)));
    let agent = Agent::builder("lead").model(model).agent_tool(&child);
    let agent = agent.with_lifecycle(report.clone()).build().unwrap();
    let turn = agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    assert_eq!(turn.usage.input, 111);
    let seen = report.snapshot();
    assert_eq!(seen.agents["lead"].usage.input, 11);
    assert_eq!(seen.agents["helper"].usage.input, 100);
    assert_eq!(seen.total.usage, turn.usage);
    assert_eq!(seen.runs[&turn.run.to_string()].usage, turn.usage);
}

#[tokio::test]
async fn files_get_a_report_and_listeners_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().root(folder.path());
    let made = ready::find("usage").unwrap();
    let made = made.make(&json!({ "file": "usage.json", "runs": 2 }), &bench).unwrap();
    let bus = EventBus::new();
    let mut events = bus.subscribe(1000);
    let agent = Agent::builder("clerk").model(Passthrough::new()).with_lifecycle(made);
    let agent = agent.events(&bus).build().unwrap();
    agent
        .scoped(async |agent| {
            for _ in 0..3 {
                agent.run("hello").await?;
            }
            Ok::<_, tenure_core::Error>(())
        })
        .await
        .unwrap();
    let path = folder.path().join("usage.json");
    let seen: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(seen["agents"]["clerk"]["turns"], 3);
    assert_eq!(seen["total"]["failed"], 0);
    assert_eq!(seen["runs"].as_object().unwrap().len(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let mut reported = 0;
    while let Some(received) = events.try_recv() {
        let Received::Event(event) = received else { panic!("{received:?}") };
        if let EventKind::Announced { name: "usage.reported", data } = &event.kind {
            assert_eq!(data["run"], json!(event.run));
            reported += 1;
        }
    }
    assert_eq!(reported, 3);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_leaves_the_agent_alone() {
    let report = UsageReport::new().file("/proc/no/such/file");
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(report.clone());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("hello").await.unwrap().output(), "hello");
    agent.shutdown().await;
    assert!(format!("{:?}", agent.failures()).contains("cannot be written"));
    assert_eq!(report.snapshot().total.turns, 1);
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("usage").unwrap().make(&with, &Bench::new());
    assert!(make(json!({})).is_ok());
    let refused = make(json!({ "file": "../usage.json" })).unwrap_err();
    assert_eq!(refused.field(), "file");
    let refused = make(json!({ "runs": -1 })).unwrap_err();
    assert_eq!(refused.field(), "runs");
}
