//! State and memory that a hook writes as it has it, and everybody else reads as JSON.

use crate::semantics::support::*;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::context::TurnCx;
use tenure_core::hook::{self, Flow, HookError};
use tenure_core::memory::{InMemory, Memory};
use tenure_core::state::{Ownership, Reducer};
use tenure_core::step::{MemoryStepLog, Steps};

/// What the hook counts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct Calls {
    made: u64,
}

impl From<Calls> for Value {
    fn from(calls: Calls) -> Self {
        json!({ "made": calls.made })
    }
}

fn count(cx: TurnCx<'_>) -> Result<u64, HookError> {
    let known = cx.state_as::<Calls>("_calls")?;
    let made = known.map_or(0, |calls| calls.made) + 1;
    cx.keep_state("_calls", Calls { made })?;
    Ok(made)
}

/// An agent with a hook that counts its model calls.
fn counting(seen: &Log) -> AgentBuilder {
    let seen = seen.clone();
    Agent::builder("agent").with_lifecycle(hook::before_model(move |cx, _| {
        let seen = seen.clone();
        Box::pin(async move {
            seen.add(count(cx)?.to_string());
            Ok(Flow::Continue)
        })
    }))
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_as_a_type_is_json_for_everybody_else() {
    let seen = Log::default();
    let agent = started(counting(&seen).model(script([say("a"), say("b")]))).await;
    agent.run("go").await.unwrap();
    assert_eq!(agent.state_value("_calls"), Some(json!({ "made": 1 })));
    assert_eq!(agent.state_values()["_calls"], json!({ "made": 1 }));
    // Written as JSON by somebody else, it is read from that.
    agent.set_state("_calls", json!({ "made": 41 })).unwrap();
    agent.run("go").await.unwrap();
    assert_eq!(seen.take(), ["1", "42"]);
    agent.set_state("_calls", "what").unwrap();
    let error = agent.run("go").await.unwrap_err().to_string();
    assert!(error.contains("the state `_calls` is broken"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn g7_what_is_kept_as_a_type_goes_on_record_and_comes_back() {
    let (log, seen) = (MemoryStepLog::new(), Log::default());
    let look = || {
        tool("look", |_, _| Box::pin(async { Ok("seen".into()) }))
            .effect(tenure_core::tool::Effect::Idempotent)
    };
    let replies = [call_with("look", "{}"), say("done")];
    let agent = started(counting(&seen).tool(look()).model(script(replies))).await;
    let steps = |log: &MemoryStepLog| Steps::new(Arc::new(log.clone()));
    agent.request("go").recorded(&steps(&log)).run().await.unwrap();
    assert_eq!(seen.take(), ["1", "2"]);

    // The process died in the tool's call, and the next one has counted nothing yet.
    let at = log.keys().iter().position(|key| &*key.kind == "model").expect("it was asked");
    let agent = started(counting(&seen).tool(look()).model(script([say("done")]))).await;
    let died = log.cut_after(at + 1);
    agent.request("go").recorded(&steps(&died)).run().await.unwrap();
    assert_eq!(seen.take(), ["2"], "the first call is on record, with what was counted");
    assert_eq!(agent.state_value("_calls"), Some(json!({ "made": 2 })));
}

#[tokio::test(start_paused = true)]
async fn g9_a_type_is_kept_by_the_same_rules_as_json() {
    let declared = Ownership::new().shared("sum", Reducer::Sum);
    let writes = Agent::builder("agent").model(script([say("a")])).ownership(declared);
    let agent = started(writes.with_lifecycle(hook::before_model(|cx, _| {
        Box::pin(async move {
            for number in [2_u64, 3] {
                cx.keep_state("sum", number)?;
            }
            let refused = cx.keep_state("facts", 1_u64).unwrap_err().to_string();
            cx.set_state("refused", refused)?;
            Ok(Flow::Continue)
        })
    })))
    .await;
    agent.run("go").await.unwrap();
    assert_eq!(agent.state_value("sum"), Some(json!(5)));
    let refused = agent.state_value("refused").unwrap().to_string();
    assert!(refused.contains("facts"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn memory_that_is_kept_as_a_type_is_stored_as_json() {
    let memory = InMemory::new();
    let agent = |seen: &Log| {
        let seen = seen.clone();
        let hook = hook::before_model(move |cx, _| {
            let seen = seen.clone();
            Box::pin(async move {
                let memory = cx.memory().expect("it has one");
                let known = memory.get_as::<Calls>("memory/calls")?;
                let made = known.map_or(0, |calls| calls.made) + 1;
                memory.keep("memory/calls", Calls { made })?;
                seen.add(memory.get("memory/calls").expect("it was written").to_string());
                assert!(memory.keep("mine", made).is_err(), "it is not the memory's");
                Ok(Flow::Continue)
            })
        });
        let builder = Agent::builder("agent").model(script([say("a"), say("b")]));
        builder.memory(memory.clone()).with_lifecycle(hook)
    };
    let seen = Log::default();
    let first = started(agent(&seen)).await;
    first.run("go").await.unwrap();
    first.run("go").await.unwrap();
    assert!(memory.load("agent").await.unwrap().is_empty(), "nothing is stored before the flush");
    first.shutdown().await;
    assert_eq!(memory.load("agent").await.unwrap()["memory/calls"], json!({ "made": 2 }));
    let second = started(agent(&seen)).await;
    second.run("go").await.unwrap();
    assert_eq!(seen.take(), [r#"{"made":1}"#, r#"{"made":2}"#, r#"{"made":3}"#]);
}

#[tokio::test(start_paused = true)]
async fn g9_what_a_tool_keeps_as_a_type_waits_for_its_batch_too() {
    let keeps = tool("keep", |cx, _| {
        Box::pin(async move {
            cx.keep_state("_calls", Calls { made: 7 })?;
            let now = cx.state("_calls");
            Ok(format!("{now:?}").into())
        })
    });
    let replies = [call_with("keep", "{}"), say("done")];
    let agent = started(Agent::builder("agent").model(script(replies)).tool(keeps)).await;
    agent.run("go").await.unwrap();
    assert_eq!(agent.state_value("_calls"), Some(json!({ "made": 7 })));
    let read = agent.history().iter().any(|message| message.text() == "None");
    assert!(read, "nothing is written before the batch is over: {:?}", agent.history());
}

/// What panics when it is to become JSON, as long as it is told to.
#[derive(Clone)]
struct Moody(Arc<std::sync::atomic::AtomicBool>);

impl From<Moody> for Value {
    fn from(moody: Moody) -> Self {
        assert!(!moody.0.load(std::sync::atomic::Ordering::Relaxed), "not now");
        json!("calm")
    }
}

#[tokio::test(start_paused = true)]
async fn memory_that_cannot_become_json_stays_to_be_stored() {
    let (memory, angry) = (InMemory::new(), Arc::new(std::sync::atomic::AtomicBool::new(true)));
    let agent = Agent::builder("agent").model(script([])).memory(memory.clone());
    let agent = started(agent).await;
    let handle = agent.memory().unwrap();
    handle.update("memory/plain", 1).unwrap();
    handle.keep("memory/moody", Moody(angry.clone())).unwrap();
    let flushed = std::panic::AssertUnwindSafe(handle.flush());
    let panics = futures_util::FutureExt::catch_unwind(flushed).await.is_err();
    assert!(panics && handle.is_dirty(), "nothing is lost by that");
    angry.store(false, std::sync::atomic::Ordering::Relaxed);
    handle.flush().await.unwrap();
    let stored = memory.load("agent").await.unwrap();
    assert_eq!((&stored["memory/plain"], &stored["memory/moody"]), (&json!(1), &json!("calm")));
}
