//! Tool calls, made again.

use crate::calls::support::*;
use serde_json::json;
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::{self, HookError, Policy};
use tenure_core::message::{Message, ToolStatus};
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::{Effect, ToolOutput};
use tenure_core::{CancelToken, Error, Outcome};
use tenure_hooks::calls::{Jitter, ToolRetry};
use tenure_hooks::ready::{self, Bench};
use tenure_testkit::Recorder;
use tokio::time::Instant;

fn agent(clerk: &Clerk, retry: ToolRetry) -> AgentBuilder {
    let model = Play::new([calls(&["clerk"]), says(&["ok"])]);
    Agent::builder("patient").model(model).tool(clerk.clone()).with_lifecycle(retry)
}

fn broken(times: usize) -> Vec<ToolOutput> {
    (1..=times).map(|time| ToolOutput::error(format!("broken {time}"))).collect()
}

/// What the model read of the call.
async fn result(builder: AgentBuilder) -> Result<(ToolStatus, String), Error> {
    let agent = builder.build().expect("it works here");
    let report = agent.scoped(async |agent| agent.run("go").await).await?;
    let result = report.history().iter().find_map(|message| match message {
        Message::Tool(result) => Some((result.status, result.content.text().to_owned())),
        _ => None,
    });
    Ok(result.expect("the tool was called"))
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_may_be_called_twice_is_called_again() {
    for effect in [Effect::Idempotent, Effect::Keyed] {
        let clerk = Clerk::new(effect, broken(2));
        let (bus, recorder) = Recorder::with_bus();
        let retry = ToolRetry::new().jitter(Jitter::None);
        let got = result(agent(&clerk, retry).events(&bus)).await.unwrap();
        assert_eq!((got, clerk.calls()), ((ToolStatus::Ok, "done".to_owned()), 3));
        assert_eq!(clerk.gaps(), [SECOND / 2, SECOND]);
        let retries = recorder.announced("tool_retry");
        assert_eq!((retries.len(), &retries[0]["tool"]), (2, &json!("clerk")));
        assert_eq!(retries[1]["error"], "broken 2");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_may_not_is_called_once_unless_somebody_says_so() {
    let clerk = Clerk::new(Effect::AtMostOnce, broken(1));
    let got = result(agent(&clerk, ToolRetry::new())).await.unwrap();
    assert_eq!((got, clerk.calls()), ((ToolStatus::Error, "broken 1".to_owned()), 1));

    let clerk = Clerk::new(Effect::AtMostOnce, broken(1));
    let retry = ToolRetry::new().even_if_not_idempotent(["cl*k"]);
    assert_eq!(result(agent(&clerk, retry)).await.unwrap().0, ToolStatus::Ok);
}

#[tokio::test(start_paused = true)]
async fn only_the_named_tools_are_called_again() {
    let clerk = Clerk::new(Effect::Idempotent, broken(1));
    let retry = ToolRetry::new().tools(["search*"]);
    assert_eq!(result(agent(&clerk, retry)).await.unwrap().1, "broken 1");
    assert_eq!(clerk.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_is_not_made_again() {
    let clerk = Clerk::new(Effect::Idempotent, [ToolOutput::denied("no")]);
    let got = result(agent(&clerk, ToolRetry::new())).await.unwrap();
    assert_eq!((got, clerk.calls()), ((ToolStatus::Denied, "no".to_owned()), 1));

    let clerk = Clerk::new(Effect::Idempotent, []);
    let guard = hook::wrap_tool_call(|_, _, _| Box::pin(async { Err(HookError::new("broken")) }));
    let guard = hook::hook(guard).named("guard").policy(Policy::Deny).inside("tool_retry");
    let (bus, recorder) = Recorder::with_bus();
    let agent = agent(&clerk, ToolRetry::new()).with_lifecycle(guard).events(&bus);
    let _ = result(agent).await;
    assert_eq!((clerk.calls(), recorder.count("tool_retry")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn when_every_attempt_has_failed_the_model_reads_the_last_or_the_turn_fails() {
    let clerk = Clerk::new(Effect::Idempotent, broken(3));
    let got = result(agent(&clerk, ToolRetry::new())).await.unwrap();
    assert_eq!((got, clerk.calls()), ((ToolStatus::Error, "broken 3".to_owned()), 3));

    let clerk = Clerk::new(Effect::Idempotent, broken(3));
    let error = result(agent(&clerk, ToolRetry::new().attempts(2).fails_turn())).await.unwrap_err();
    assert!(error.to_string().contains("`clerk` failed 2 times; at last: broken 2"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_wait_at_once_and_a_long_wait_is_not_begun() {
    let slow = || ToolRetry::new().initial_delay(20 * SECOND).jitter(Jitter::None);
    let clerk = Clerk::new(Effect::Idempotent, broken(1));
    let agent_of = |clerk: &Clerk| agent(clerk, slow()).build().unwrap();
    let patient = agent_of(&clerk);
    patient.startup().await.unwrap();
    let (token, start) = (CancelToken::new(), Instant::now());
    let (ended, ()) = tokio::join!(patient.request("go").cancel_on(&token).run(), async {
        tokio::time::sleep(3 * SECOND).await;
        token.cancel();
    });
    assert_eq!(ended.unwrap_err().outcome(), Outcome::Cancelled);
    assert_eq!((start.elapsed(), clerk.calls()), (3 * SECOND, 1));
    patient.shutdown().await;

    let clerk = Clerk::new(Effect::Idempotent, broken(1));
    let got = result(agent(&clerk, slow()).turn_limit(10 * SECOND)).await.unwrap();
    assert_eq!(got.1, "broken 1");
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_neither_waits_nor_calls_again() {
    let log = MemoryStepLog::new();
    let retry = || ToolRetry::new().initial_delay(10 * SECOND).jitter(Jitter::None);
    let clerk = Clerk::new(Effect::Idempotent, broken(1));
    let first = agent(&clerk, retry()).build().unwrap();
    first.startup().await.unwrap();
    first.request("go").recorded(&steps(&log)).run().await.unwrap();
    first.shutdown().await;
    assert_eq!(clerk.calls(), 2);

    // It died before the model's last answer was on record.
    let last = log.keys().iter().rposition(|key| &*key.kind == "model").unwrap();
    let clerk = Clerk::new(Effect::Idempotent, []);
    let model = Play::new([says(&["ok"])]);
    let second = Agent::builder("patient").model(model).tool(clerk.clone()).with_lifecycle(retry());
    let second = second.build().unwrap();
    second.startup().await.unwrap();
    let start = Instant::now();
    let report = second.request("go").recorded(&steps(&log.cut_after(last))).run().await.unwrap();
    second.shutdown().await;
    assert_eq!((report.output(), clerk.calls()), ("ok", 0));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("tool_retry").unwrap().make(&with, &Bench::new());
    assert!(make(json!({})).is_ok());
    assert!(
        make(json!({ "tools": ["a*"], "even_if_not_idempotent": ["ab"], "on_failure": "error" }))
            .is_ok()
    );
    for (bad, field) in [
        (json!({ "attempts": 0 }), "attempts"),
        (json!({ "factor": 0 }), "factor"),
        (json!({ "initial_delay": "1h" }), "initial_delay"),
        (json!({ "tools": ["a*"], "even_if_not_idempotent": ["b"] }), "even_if_not_idempotent"),
        (json!({ "on_failure": "answer" }), "on_failure"),
    ] {
        assert_eq!(make(bad.clone()).unwrap_err().field(), field, "{bad}");
    }
}
