//! When a declared hook is called, and how often.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_cards::hook::{Condition, Declared};
use tenure_core::Outcome;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::{self, AgentLifecycle, Flow, HookError};
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_hosts::Role;
use tenure_models::Passthrough;
use tokio::time::Instant;

fn declared(inner: impl AgentLifecycle) -> Declared {
    Declared::new(Arc::new(inner), "hook", Role::Other)
}

async fn started(builder: AgentBuilder) -> Agent {
    let act = FnTool::new(ToolSpec::new("act", "Acts"), |arguments| {
        Ok(arguments["what"].as_str().unwrap_or_default().into())
    });
    let agent = builder.model(Passthrough::new()).tool(act).build().expect("a good agent");
    agent.startup().await.expect("it starts");
    agent
}

/// A hook that notes when it is called and always fails.
fn failing(times: &Arc<Mutex<Vec<Instant>>>) -> impl AgentLifecycle + use<> {
    let times = times.clone();
    hook::before_agent(move |_, _| {
        times.lock().expect("a lock").push(Instant::now());
        Box::pin(async { Err(HookError::new("never")) })
    })
}

#[tokio::test(start_paused = true)]
async fn the_waits_between_attempts_double() {
    let times = Arc::default();
    let hook = declared(failing(&times)).retries(3).backoff(Duration::from_secs(1));
    let agent = started(Agent::builder("a").with_lifecycle(hook)).await;
    let error = agent.run("x").await.expect_err("it never works");
    assert_eq!(error.outcome(), Outcome::Failed);
    let times = times.lock().expect("a lock").clone();
    let waits: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4]);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_covers_all_attempts_together() {
    let times = Arc::default();
    let hook = declared(failing(&times)).retries(10).backoff(Duration::from_secs(1));
    let hook = hook::hook(hook).limit(Duration::from_secs(5));
    let agent = started(Agent::builder("a").with_lifecycle(hook)).await;
    let error = agent.run("x").await.expect_err("its time is up");
    assert_eq!(error.outcome(), Outcome::TimedOut);
    assert_eq!(times.lock().expect("a lock").len(), 3, "at 0, 1 and 3 seconds");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_attempts() {
    let times = Arc::default();
    let hook = declared(failing(&times)).retries(10).backoff(Duration::from_secs(10));
    let agent = started(Agent::builder("a").with_lifecycle(hook)).await;
    let (result, ()) = tokio::join!(agent.run("x"), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        agent.cancel();
    });
    assert_eq!(result.expect_err("it was cancelled").outcome(), Outcome::Cancelled);
    assert_eq!(times.lock().expect("a lock").len(), 1);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_repeated_wrap_gets_the_request_as_it_was() {
    let calls = AtomicUsize::new(0);
    let hook = declared(hook::wrap_tool_call(move |_, request, next| {
        let attempt = calls.fetch_add(1, Ordering::SeqCst);
        let what = format!("{}!", request.arguments["what"].as_str().unwrap_or_default());
        request.arguments["what"] = what.into();
        Box::pin(async move {
            if attempt == 0 {
                return Err(HookError::new("once"));
            }
            Ok(next.call(request).await?)
        })
    }));
    let agent = started(Agent::builder("a").with_lifecycle(hook.retries(1))).await;
    let report = agent.run(r#"***CALL_TOOL act {"what": "hi"}"#).await.expect("it works");
    assert_eq!(report.output(), "hi!");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_that_came_out_of_next_is_not_repeated() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let outer = declared(hook::wrap_tool_call(move |_, request, next| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok(next.call(request).await?) })
    }));
    let inner = hook::wrap_tool_call(|_, _, _| {
        Box::pin(async { Err(HookError::new("it is not the outer one's fault")) })
    });
    let builder = Agent::builder("a").with_lifecycle(outer.retries(5)).with_lifecycle(inner);
    let agent = started(builder).await;
    agent.run("***CALL_TOOL act").await.expect_err("the inner one fails");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_whose_condition_does_not_hold_is_as_if_it_were_not_there() {
    let never = || Condition::compile("1 > 2").expect("it compiles");
    let wrap = declared(hook::wrap_tool_call(|_, _, _| Box::pin(async { Ok("mine".into()) })));
    let begin =
        declared(hook::before_agent(|_, _| Box::pin(async { Ok(Flow::Finish("mine".into())) })));
    let end = declared(hook::after_agent(|_, end| {
        if let Some(output) = end.content_mut() {
            *output = "mine".into();
        }
        Box::pin(async { Ok(hook::After::Done) })
    }));
    let builder = Agent::builder("a")
        .with_lifecycle(hook::hook(wrap.when(never())).named("wrap"))
        .with_lifecycle(hook::hook(begin.when(never())).named("begin"))
        .with_lifecycle(hook::hook(end.when(never())).named("end"));
    let agent = started(builder).await;
    let report = agent.run(r#"***CALL_TOOL act {"what": "hi"}"#).await.expect("it works");
    assert_eq!(report.output(), "hi");
    agent.shutdown().await;
}

#[test]
fn a_condition_that_does_not_compile_is_refused() {
    for expression in ["1 +", "", "a b", "{{ x }}"] {
        assert!(Condition::compile(expression).is_err(), "{expression}");
    }
}

#[tokio::test(start_paused = true)]
async fn g3_a_guard_whose_condition_names_what_is_not_there_is_called() {
    for when in ["tool.dangerous", "tool.arguments.nothing", "state.nobody", "tool.dangerous == 1"]
    {
        for (role, called) in [(Role::Guard, 1), (Role::Other, 0)] {
            let calls = Arc::new(AtomicUsize::new(0));
            let count = calls.clone();
            let inner = hook::wrap_tool_call(move |_, request, next| {
                count.fetch_add(1, Ordering::SeqCst);
                Box::pin(async move { Ok(next.call(request).await?) })
            });
            let condition = Condition::compile(when).expect("it is an expression");
            let hook = Declared::new(Arc::new(inner), "hook", role).when(condition);
            let agent = started(Agent::builder("a").with_lifecycle(hook)).await;
            agent.run(r#"***CALL_TOOL act {"what": "it"}"#).await.expect("it runs");
            agent.shutdown().await;
            assert_eq!(calls.load(Ordering::SeqCst), called, "{when} {role:?}");
        }
    }
}
