//! G9: a reducer that misbehaves, and the writes of a batch that was cut short.

use crate::semantics::support::*;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use tenure_core::agent::{Agent, WeakAgent};
use tenure_core::hook::{self, Flow};
use tenure_core::state::{Ownership, Reducer};
use tenure_core::tool::ToolError;
use tokio::time::sleep;

/// Adds up numbers, and panics at anything else.
fn picky() -> Reducer {
    Reducer::Custom(Arc::new(|old, new| match new.as_i64() {
        Some(new) => json!(old.and_then(|old| old.as_i64()).unwrap_or_default() + new),
        None => std::panic::resume_unwind(Box::new("not a number")),
    }))
}

fn picky_agent() -> tenure_core::agent::AgentBuilder {
    Agent::builder("agent").ownership(Ownership::new().shared("total", picky()))
}

#[tokio::test(start_paused = true)]
async fn g9_a_reducer_that_panics_leaves_the_state_as_it_was() {
    let agent = started(picky_agent().model(script([]))).await;
    agent.set_state("total", 1).unwrap();
    agent.set_state("_other", "kept").unwrap();
    // Whether it is told as an error or as a panic: nothing was written.
    let written = catch_unwind(AssertUnwindSafe(|| agent.set_state("total", "many")));
    assert!(!matches!(written, Ok(Ok(()))), "the write did not succeed");
    assert_eq!(agent.state_value("total"), Some(json!(1)));
    assert_eq!(agent.state_value("_other"), Some(json!("kept")));
    agent.set_state("total", 2).expect("the state can still be written");
    assert_eq!(agent.state_value("total"), Some(json!(3)));
}

#[tokio::test(start_paused = true)]
async fn g9_a_patch_whose_reducer_panics_is_dropped_whole() {
    let agent =
        started(picky_agent().model(script([])).with_lifecycle(hook::before_agent(|cx, input| {
            let value = if input.content.text() == "good" { json!(1) } else { json!("many") };
            Box::pin(async move {
                cx.update_state([("_first".to_owned(), json!(1)), ("total".to_owned(), value)])?;
                Ok(Flow::Continue)
            })
        })))
        .await;
    agent.run("bad").await.unwrap_err();
    assert!(agent.state_values().is_empty(), "all or nothing: {:?}", agent.state_values());
    agent.run("good").await.expect("the agent goes on");
    assert_eq!(agent.state_value("total"), Some(json!(1)));
}

#[tokio::test(start_paused = true)]
async fn g9_a_tool_whose_write_makes_a_reducer_panic_harms_nobody_else() {
    let agent = started(
        picky_agent()
            .model(script([call(&["good", "bad", "good"])]))
            .tool(tool("good", |cx, _| {
                Box::pin(async move {
                    cx.set_state("total", 1)?;
                    Ok("written".into())
                })
            }))
            .tool(tool("bad", |cx, _| {
                Box::pin(async move {
                    cx.set_state("total", "many")?;
                    Ok("written".into())
                })
            })),
    )
    .await;
    let _ = agent.run("go").await;
    assert_valid(&agent);
    assert_ne!(agent.state_value("total"), Some(json!("many")));
    agent.run("again").await.expect("the agent goes on");
}

#[test]
fn g9_a_reducer_may_read_the_state_of_its_agent() {
    let (told, result) = std::sync::mpsc::channel();
    // In a thread of its own: a deadlock is a failure here, not a test that hangs.
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let handle: Arc<OnceLock<WeakAgent>> = Arc::default();
            let reads = handle.clone();
            let reducer = Reducer::Custom(Arc::new(move |_, new| {
                let agent = reads.get().and_then(WeakAgent::upgrade).expect("it lives");
                json!([agent.state_value("_factor"), agent.state_values().len(), new])
            }));
            let ownership = Ownership::new().shared("product", reducer);
            let builder = Agent::builder("agent").model(script([])).ownership(ownership);
            let agent = started(builder).await;
            handle.set(agent.downgrade()).unwrap();
            agent.set_state("_factor", 2).unwrap();
            agent.set_state("product", 3).unwrap();
            told.send(agent.state_value("product")).unwrap();
        });
    });
    let product = result.recv_timeout(secs(20)).expect("it does not deadlock");
    assert_eq!(product, Some(json!([2, 1, 3])));
    thread.join().unwrap();
}

#[tokio::test(start_paused = true)]
async fn g9_writes_of_calls_that_finished_before_the_batch_was_aborted_are_applied() {
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["write", "unfinished", "fatal"])]))
            .tool(tool("write", |cx, _| {
                Box::pin(async move {
                    cx.set_state("_finished", true)?;
                    Ok("written".into())
                })
            }))
            .tool(tool("unfinished", |cx, _| {
                Box::pin(async move {
                    cx.set_state("_unfinished", true)?;
                    sleep(secs(1)).await;
                    Ok("written".into())
                })
            }))
            .tool(tool("fatal", |_, _| {
                Box::pin(async {
                    sleep(ms(10)).await;
                    Err(ToolError::new("gone"))
                })
            }))
            .with_lifecycle(
                hook::hook(hook::wrap_tool_call(|_, request, next| {
                    Box::pin(async move { Ok(next.call(request).await?) })
                }))
                .named("passes"),
            )
            .with_lifecycle(hook::wrap_tool_call(|_, request, next| {
                let aborts = request.name() == "fatal";
                Box::pin(async move {
                    let output = next.call(request).await;
                    if aborts {
                        return Err(hook::HookError::new("this ends the turn"));
                    }
                    Ok(output?)
                })
            })),
    )
    .await;
    agent.run("go").await.expect_err("the batch was aborted");
    assert_eq!(contents(&agent.history())[0], "written", "the model is told that it was written");
    assert_eq!(agent.state_value("_finished"), Some(json!(true)));
    assert_eq!(agent.state_value("_unfinished"), None, "this call never finished");
}
