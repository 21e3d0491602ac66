//! Results that are kept.

use crate::results::run;
use crate::support::refused;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tenure_core::Outcome;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::context::ExecutionContext;
use tenure_core::memory::{InMemory, Memory};
use tenure_core::model::{ModelErrorKind, ModelResponse};
use tenure_core::step::MemoryStepLog;
use tenure_hooks::ready::{self, Bench};
use tenure_hooks::result::{Part, SaveResult};
use tenure_models::{Passthrough, Scripted};

fn echo() -> AgentBuilder {
    Agent::builder("clerk").model(Passthrough::new())
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("it works here")).collect()
}

#[tokio::test]
async fn each_turn_is_a_line_with_all_that_there_is_to_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out/results.jsonl");
    let agent = echo().with_lifecycle(SaveResult::lines(&path).sync(true)).build().unwrap();
    agent
        .scoped(async |agent| {
            agent.run("one").await?;
            agent.run("two").await
        })
        .await
        .unwrap();
    let kept = lines(&path);
    assert_eq!(kept.len(), 2);
    for (record, said) in kept.iter().zip(["one", "two"]) {
        assert_eq!((&record["input"], &record["output"]), (&json!(said), &json!(said)));
        assert_eq!((&record["agent"], &record["outcome"]), (&json!("clerk"), &json!("ok")));
        assert!(record["duration_ms"].is_u64() && record["usage"]["calls"] == 1, "{record}");
        assert!(record["time"].as_str().unwrap().ends_with('Z') && record["trace"].is_string());
    }
    assert_ne!(kept[0]["delivery"], kept[1]["delivery"]);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_turn_that_failed_is_kept_with_its_reason_if_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    let save =
        || SaveResult::lines(&path).on([Outcome::Failed]).what([Part::Outcome, Part::Output]);
    run(echo().with_lifecycle(save()), "fine").await.unwrap();
    assert!(lines(&path).is_empty());
    let model = Scripted::empty().error(ModelErrorKind::Overloaded, "busy");
    let agent = Agent::builder("a").model(model).with_lifecycle(save());
    run(agent, "go").await.unwrap_err();
    let kept = lines(&path);
    assert_eq!((&kept[0]["outcome"], &kept[0]["output"]), (&json!("failed"), &Value::Null));
    assert!(kept[0]["error"].as_str().unwrap().contains("busy"));
    assert!(kept[0].get("usage").is_none() && kept[0].get("input").is_none());
}

#[tokio::test]
async fn a_file_for_each_result_has_the_name_that_was_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let save = SaveResult::files(folder.path()).name("{{ agent }}/{{ outcome }}.json").unwrap();
    run(echo().with_lifecycle(save), "hello").await.unwrap();
    let path = folder.path().join("clerk/ok.json");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(kept["output"], "hello");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_that_is_no_result_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let card = folder.path().join("agent.md");
    std::fs::write(&card, "---\ntype: agent\n---\n").unwrap();
    let bench = Bench::new().root(folder.path());
    let save = |name: &str| {
        let with = json!({ "folder": ".", "name": name });
        ready::find("save").unwrap().make(&with, &bench).unwrap()
    };
    let kept = run(echo().with_lifecycle(save("agent.md")), "hello").await;
    let (output, failures) = kept.unwrap();
    assert_eq!(output, "hello");
    let why = "agent.md is there, and is not a result that was saved";
    assert!(failures.len() == 1 && failures[0].contains(why), "{failures:?}");
    assert_eq!(std::fs::read_to_string(&card).unwrap(), "---\ntype: agent\n---\n");
    // A result of an earlier turn is replaced.
    for said in ["one", "two"] {
        let kept = run(echo().with_lifecycle(save("last.json")), said).await.unwrap();
        assert!(kept.1.is_empty(), "{:?}", kept.1);
        let text = std::fs::read_to_string(folder.path().join("last.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["output"], said);
    }
}

#[tokio::test]
async fn the_last_result_is_in_the_memory() {
    let agent = echo().memory(InMemory::new()).with_lifecycle(SaveResult::memory("memory/last"));
    let agent = agent.build().unwrap();
    agent
        .scoped(async |agent| {
            agent.run("one").await?;
            agent.run("two").await?;
            let kept = agent.memory().and_then(|memory| memory.get("memory/last"));
            assert_eq!(kept.unwrap()["output"], "two");
            Ok::<_, tenure_core::Error>(())
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_remembered_is_whole_before_and_after_it_is_stored() {
    let memory = InMemory::new();
    let agent = echo().memory(memory.clone()).with_lifecycle(SaveResult::memory("memory/last"));
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    let report = agent.run("one").await.unwrap();
    let remembered = agent.memory().unwrap();
    let kept = remembered.get("memory/last").unwrap();
    assert_eq!((&kept["input"], &kept["output"]), (&json!("one"), &json!("one")));
    assert_eq!((&kept["agent"], &kept["outcome"]), (&json!("clerk"), &json!("ok")));
    assert_eq!(kept["trace"], report.trace_id());
    assert!(kept["duration_ms"].is_u64() && kept["usage"]["calls"] == 1, "{kept}");
    assert!(kept["time"].as_str().unwrap().ends_with('Z') && kept["delivery"].is_string());
    assert!(memory.load("clerk").await.unwrap().is_empty(), "nothing is stored yet");
    remembered.flush().await.unwrap();
    assert_eq!(memory.load("clerk").await.unwrap()["memory/last"], kept);
    assert_eq!(remembered.get("memory/last"), Some(kept.clone()));

    let context = ExecutionContext::new("trace-7");
    agent.request("two").context(context).run().await.unwrap();
    agent.shutdown().await;
    let stored = memory.load("clerk").await.unwrap().remove("memory/last").unwrap();
    assert_eq!((&stored["output"], &stored["trace"]), (&json!("two"), &json!("trace-7")));
    assert_ne!(stored["delivery"], kept["delivery"]);
    let names = |record: &Value| record.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&stored), names(&kept));
}

#[tokio::test]
async fn what_is_remembered_survives_a_crash() {
    let run = async |log: MemoryStepLog| {
        let memory = InMemory::new();
        let agent = echo().memory(memory.clone()).with_lifecycle(SaveResult::memory("memory/last"));
        let agent = agent.build().unwrap();
        agent.scoped(async |it| it.request("go").steps(log).run().await).await.unwrap();
        memory.load("clerk").await.unwrap().remove("memory/last")
    };
    let log = MemoryStepLog::new();
    let first = run(log.clone()).await.unwrap();
    for count in 0..=log.keys().len() {
        let again = run(log.cut_after(count)).await;
        let again = again.unwrap_or_else(|| panic!("nothing is left after {count} steps"));
        for part in ["delivery", "input", "output", "outcome", "usage"] {
            assert_eq!(again[part], first[part], "{part} after {count} steps");
        }
    }
}

#[tokio::test]
async fn a_delivery_that_comes_again_after_a_crash_is_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    let agent = || echo().with_lifecycle(SaveResult::lines(&path)).build().unwrap();
    let log = MemoryStepLog::new();
    agent().scoped(async |it| it.request("go").steps(log.clone()).run().await).await.unwrap();
    let first = lines(&path);
    assert_eq!(first.len(), 1);
    // The process died somewhere on the way, and another one goes on.
    for count in 0..=log.keys().len() {
        let log = log.cut_after(count);
        let again = agent();
        again.scoped(async |it| it.request("go").steps(log).run().await).await.unwrap();
        assert_eq!(lines(&path), first, "after {count} steps");
    }
}

#[tokio::test]
async fn what_cannot_be_kept_changes_nothing_but_the_report() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for save in [
        SaveResult::lines(folder.path()),
        SaveResult::lines(folder.path().join("file/results.jsonl")),
        SaveResult::files(folder.path().join("file")),
        SaveResult::memory("nobody remembers"),
    ] {
        let (output, failures) = run(echo().with_lifecycle(save), "hello").await.unwrap();
        assert_eq!(output, "hello");
        assert!(failures.len() == 1 && failures[0].contains("save"), "{failures:?}");
    }
}

#[tokio::test]
async fn what_was_asked_is_of_this_turn_and_not_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    let model = Scripted::from_fn(|_, call| match call {
        0 => Ok(ModelResponse::text("fine")),
        _ => panic!("a bad day"),
    });
    let agent = Agent::builder("a").model(model).with_lifecycle(SaveResult::lines(&path));
    let agent = agent.build().unwrap();
    let ended = agent
        .scoped(async |agent| {
            agent.run("one").await?;
            agent.run("two").await
        })
        .await;
    assert!(ended.is_err());
    let asked: Vec<_> = lines(&path).iter().map(|it| it["input"].clone()).collect();
    assert_eq!(asked, ["one", "two"]);
}

#[tokio::test]
async fn a_file_that_options_name_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().root(folder.path());
    let with = json!({ "file": "out.jsonl", "what": ["output"], "on": ["ok"] });
    let hook = ready::find("save").unwrap().make(&with, &bench).unwrap();
    run(echo().with_lifecycle(hook), "hello").await.unwrap();
    assert_eq!(lines(&folder.path().join("out.jsonl"))[0]["output"], "hello");
}

#[test]
fn options_are_checked() {
    for (with, field) in [
        (json!({}), ""),
        (json!({ "file": "a", "memory": "b" }), ""),
        (json!({ "file": "../a" }), "file"),
        (json!({ "folder": "/a" }), "folder"),
        (json!({ "folder": "a", "name": "{{ nobody }}" }), "name"),
        (json!({ "folder": "a", "name": "../{{ run }}" }), "name"),
        (json!({ "file": "a", "name": "b" }), "name"),
        (json!({ "memory": " " }), "memory"),
        (json!({ "file": "a", "what": [] }), "what"),
        (json!({ "file": "a", "what": ["all"] }), "what[0]"),
        (json!({ "file": "a", "on": ["good"] }), "on[0]"),
    ] {
        assert_eq!(refused("save", with.clone()), field, "{with}");
    }
}
