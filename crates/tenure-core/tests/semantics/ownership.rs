//! G9: who may write which state, from hooks, from tools, and through the memory.

use crate::semantics::support::*;
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_core::ErrorKind;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::{self, Flow};
use tenure_core::memory::InMemory;
use tenure_core::message::ToolStatus;
use tenure_core::state::{Ownership, Reducer, StateOwnership};

fn declared() -> Ownership {
    Ownership::new()
        .declare("user_history", StateOwnership::Memory)
        .declare("budget", StateOwnership::Orchestrator)
        .shared("notes", Reducer::Append)
        .shared("total", Reducer::Sum)
        .shared("facts_seen", Reducer::Merge)
}

/// What each key is to somebody who writes agent state: `None` if it may be written.
const KEYS: [(&str, Option<StateOwnership>); 12] = [
    ("_scratch", None),
    ("anything", None),
    ("notes", None),
    ("total", None),
    ("history", Some(StateOwnership::Memory)),
    ("facts", Some(StateOwnership::Memory)),
    ("user_history", Some(StateOwnership::Memory)),
    ("trace_id", Some(StateOwnership::Orchestrator)),
    ("routing", Some(StateOwnership::Orchestrator)),
    ("context", Some(StateOwnership::Orchestrator)),
    ("budget", Some(StateOwnership::Orchestrator)),
    ("config", Some(StateOwnership::Shared)),
];

fn agent() -> AgentBuilder {
    Agent::builder("agent").model(script([call(&["write"])])).ownership(declared())
}

#[tokio::test(start_paused = true)]
async fn g9_the_agent_writes_its_own_and_what_is_shared_with_it() {
    let agent = started(agent()).await;
    for (key, owner) in KEYS {
        let result = agent.set_state(key, 1);
        match owner {
            None => {
                result.expect(key);
                assert!(agent.state_value(key).is_some(), "{key}");
            }
            Some(owner) => {
                let error = result.unwrap_err();
                let violation = error.state_violation().expect("it names the violation");
                assert_eq!(error.kind(), ErrorKind::State, "{key}");
                assert_eq!(
                    (&*violation.key, violation.owner, violation.actor),
                    (key, owner, StateOwnership::Agent)
                );
                assert_eq!(agent.state_value(key), None, "{key}");
            }
        }
        if let Some(owner) = owner {
            assert_eq!(agent.owns_state(key), owner, "{key}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g9_a_hook_that_writes_what_is_not_its_own_fails_and_the_whole_patch_is_dropped() {
    for (key, owner) in KEYS {
        let agent = started(agent().tool(ok_tool("write")).with_lifecycle(hook::before_agent(
            move |cx, _| {
                Box::pin(async move {
                    cx.update_state([
                        ("_first".to_owned(), json!(1)),
                        (key.to_owned(), json!(2)),
                        ("_last".to_owned(), json!(3)),
                    ])?;
                    assert!(cx.state("_first").is_some());
                    Ok(Flow::Continue)
                })
            },
        )))
        .await;
        let result = agent.run("go").await;
        match owner {
            None => {
                assert_eq!(result.expect(key).failures, []);
                assert_eq!(agent.state_values().len(), 3, "{key}");
            }
            Some(owner) => {
                let error = result.unwrap_err();
                assert_eq!(error.state_violation().map(|it| it.owner), Some(owner), "{key}");
                assert!(agent.state_values().is_empty(), "{key}: all or nothing");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g9_a_tool_that_writes_what_is_not_its_own_fails_and_the_whole_patch_is_dropped() {
    for (key, owner) in KEYS {
        let agent = started(agent().tool(tool("write", move |cx, _| {
            Box::pin(async move {
                cx.update_state([("_first".to_owned(), json!(1)), (key.to_owned(), json!(2))])?;
                Ok("written".into())
            })
        })))
        .await;
        let report = agent.run("go").await.unwrap();
        let result = &results(report.history())[0];
        match owner {
            None => {
                assert_eq!(result.status, ToolStatus::Ok, "{key}");
                assert_eq!(agent.state_values().len(), 2, "{key}");
            }
            Some(owner) => {
                assert_eq!(result.status, ToolStatus::Error, "{key}");
                let expected = format!("state `{key}` is owned by {owner}");
                assert!(result.content.text().contains(&expected), "{}", result.content);
                assert!(agent.state_values().is_empty(), "{key}: all or nothing");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g9_a_tools_writes_take_effect_with_its_batch_in_call_order() {
    let table: [(&str, [Value; 3], Value); 4] = [
        ("notes", [json!("a"), json!("b"), json!("c")], json!(["a", "b", "c"])),
        ("total", [json!(1), json!(2), json!(3)], json!(6)),
        (
            "facts_seen",
            [json!({"x": 1}), json!({"y": 2}), json!({"x": 3})],
            json!({"x": 3, "y": 2}),
        ),
        ("longest", [json!("aa"), json!("bbbb"), json!("c")], json!("bbbb")),
    ];
    let longest = Reducer::Custom(Arc::new(|old, new| match old {
        Some(old) if old.to_string().len() >= new.to_string().len() => old,
        _ => new,
    }));
    for (key, values, expected) in table {
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["write", "write", "write"])]))
                .ownership(declared().shared("longest", longest.clone()))
                .tool(tool("write", move |cx, _| {
                    let value = values[cx.index()].clone();
                    Box::pin(async move {
                        // The last call writes first.
                        tokio::time::sleep(ms(30 - 10 * cx.index() as u64)).await;
                        cx.set_state(key, value)?;
                        assert_eq!(cx.state(key), None, "not before the batch is committed");
                        Ok("written".into())
                    })
                })),
        )
        .await;
        let report = agent.run("go").await.unwrap();
        assert_eq!(contents(report.history()), ["written"; 3]);
        assert_eq!(agent.state_value(key), Some(expected), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn g9_memory_is_written_through_its_handle_only_and_holds_only_what_is_its_own() {
    let store = InMemory::new();
    let with_memory =
        || Agent::builder("agent").model(script([])).ownership(declared()).memory(store.clone());
    let agent = started(with_memory()).await;
    let memory = agent.memory().unwrap();
    for (key, owner) in KEYS {
        let result = memory.update(key, json!(key));
        let allowed =
            matches!(agent.owns_state(key), StateOwnership::Memory | StateOwnership::Shared);
        assert_eq!(result.is_ok(), allowed, "{key} {owner:?}");
        if let Err(error) = result {
            let violation = error.state_violation().expect("it names the violation");
            assert_eq!((&*violation.key, violation.actor), (key, StateOwnership::Memory));
            assert_eq!(memory.get(key), None);
        }
    }
    assert!(memory.is_dirty());
    assert!(store.snapshot("agent").is_empty(), "flushed at shutdown");
    agent.shutdown().await;
    assert_eq!(store.snapshot("agent").get("facts"), Some(&json!("facts")));

    let again = started(with_memory()).await;
    let memory = again.memory().unwrap();
    assert_eq!((memory.get("facts"), memory.is_dirty()), (Some(json!("facts")), false));
}

#[tokio::test(start_paused = true)]
async fn g9_agent_state_is_dropped_at_shutdown_and_cannot_be_written_afterwards() {
    let agent = started(Agent::builder("agent").model(script([]))).await;
    agent.set_state("_kept", 1).unwrap();
    agent.shutdown().await;
    assert!(agent.state_values().is_empty());
    let error = agent.set_state("_late", 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotReady);
}

#[tokio::test(start_paused = true)]
async fn g9_the_orchestrators_context_is_read_only_and_reaches_every_hook() {
    use tenure_core::context::ExecutionContext;
    let seen = Log::default();
    let log = seen.clone();
    let agent = started(Agent::builder("agent").model(script([])).with_lifecycle(
        hook::before_agent(move |cx, _| {
            let context = cx.context().map(|context| context.user_id().to_owned());
            log.add(format!("{} {context:?} {}", cx.has_context(), cx.trace_id()));
            Box::pin(async { Ok(Flow::Continue) })
        }),
    ))
    .await;
    let context = ExecutionContext::new("trace-1").with_user_id("ada");
    agent.request("go").context(context).run().await.unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!(
        seen.take(),
        [r#"true Some("ada") trace-1"#.to_owned(), format!("false None {}", report.run)]
    );
}
