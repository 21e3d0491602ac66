//! A hook at each of the eleven points.

use serde_json::json;
use std::sync::{Arc, Mutex};
use tenure_core::hook::{
    self, After, FaultKind, Flow, HookAction, HookError, JumpTarget, Point, Policy,
};
use tenure_core::model::ModelResponse;
use tenure_core::phase::Phase;
use tenure_core::tool::ToolOutput;
use tenure_core::{ErrorKind, ExitReason, Outcome};
use tenure_testkit::{Fault, FaultPlan, FaultyHook, HookHarness, assert_paired};

#[tokio::test]
async fn before_agent_changes_what_the_model_sees() {
    let harness = HookHarness::new(hook::before_agent(|_cx, input| {
        input.content.push("!");
        Box::pin(async { Ok(Flow::Continue) })
    }));
    let run = harness.before_agent("hello").await;
    assert_eq!(run.input(), Some("hello!"));
    assert_eq!((run.output(), run.outcome()), ("done", Outcome::Ok));
    assert_eq!(run.exit, Some(ExitReason::Completed));
    assert_paired(run.recorder());

    let again = harness.before_agent("again").await;
    assert_eq!(again.input(), Some("again!"), "a harness can be used again");
}

#[tokio::test]
async fn before_agent_may_finish_before_the_model_is_asked() {
    let hook =
        hook::before_agent(|_cx, _input| Box::pin(async { Ok(Flow::Finish("no need".into())) }));
    let run = HookHarness::new(hook).before_agent("hello").await;
    assert_eq!((run.input(), run.requests.len(), run.output()), (None, 0, "no need"));
}

#[tokio::test]
async fn before_model_and_wrap_model_call_see_the_request() {
    let before = hook::before_model(|_cx, request| {
        request.instruction = Some("be brief".into());
        Box::pin(async { Ok(Flow::Continue) })
    });
    let run = HookHarness::new(before).before_model("hello").await;
    assert_eq!(run.requests[0].instruction.as_deref(), Some("be brief"));

    let twice = hook::wrap_model_call(|_cx, request, next| {
        Box::pin(async move {
            next.call(request).await?;
            Ok(next.call(request).await?)
        })
    });
    let run = HookHarness::new(twice)
        .model_response(ModelResponse::text("first"))
        .model_response(ModelResponse::text("second"))
        .wrap_model_call("hello")
        .await;
    assert_eq!((run.requests.len(), run.output()), (2, "second"));
    assert_paired(run.recorder());
}

#[tokio::test]
async fn after_model_decides_about_the_response() {
    let hook = || {
        hook::after_model(|_cx, response| {
            let action = match response.content.text() {
                "bad" => HookAction::Reject("not that".to_owned()),
                "end" => HookAction::JumpTo(JumpTarget::End),
                _ => HookAction::Continue,
            };
            Box::pin(async { Ok(action) })
        })
    };
    let run = HookHarness::new(hook()).after_model(ModelResponse::text("bad")).await;
    assert_eq!(run.error().unwrap().kind(), ErrorKind::Denied);
    assert_paired(run.recorder());
    let run = HookHarness::new(hook()).after_model(ModelResponse::text("end")).await;
    assert_eq!(run.output(), "end");
}

#[tokio::test]
async fn wrap_tool_call_stands_around_the_tool() {
    let hook = || {
        hook::wrap_tool_call(|_cx, request, next| {
            Box::pin(async move {
                if request.arguments["path"] == "/" {
                    return Ok(ToolOutput::denied("not there"));
                }
                request.arguments["checked"] = json!(true);
                Ok(next.call(request).await?)
            })
        })
    };
    let harness = HookHarness::new(hook()).tool("remove", "removed");
    let run = harness.wrap_tool_call("remove", json!({"path": "/tmp/x"})).await;
    let expected = ("remove".to_owned(), json!({"path": "/tmp/x", "checked": true}));
    assert_eq!(run.tool_calls, [expected]);
    assert_eq!(run.requests.len(), 2);
    let run = harness.wrap_tool_call("remove", json!({"path": "/"})).await;
    assert!(run.tool_calls.is_empty());
    assert_paired(run.recorder());
}

#[tokio::test]
async fn after_agent_sees_the_end_and_may_change_the_answer() {
    let hook = hook::after_agent(|_cx, end| {
        if let Some(output) = end.content_mut() {
            output.push(" and checked");
        }
        Box::pin(async { Ok(After::Done) })
    });
    let run = HookHarness::new(hook).after_agent("hello").await;
    assert_eq!(run.output(), "done and checked");
}

#[tokio::test]
async fn on_start_that_fails_is_rolled_back() {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let kept = ends.clone();
    let run = HookHarness::new(hook::on_shutdown(move |_cx, reason| {
        kept.lock().unwrap().push(reason);
        Box::pin(async { Ok(()) })
    }))
    .and(hook::on_start(|_cx| Box::pin(async { Err(HookError::new("no")) })))
    .on_start()
    .await;
    assert_eq!(run.started.as_ref().unwrap_err().kind(), ErrorKind::Startup);
    assert_eq!(run.exit, Some(ExitReason::StartupFailed));
    assert_eq!(*ends.lock().unwrap(), [ExitReason::StartupFailed]);
    assert_eq!(run.failures().len(), 1);
    assert_paired(run.recorder());
}

#[tokio::test]
async fn on_shutdown_runs_once_and_its_failure_is_recorded() {
    let hook = hook::on_shutdown(|_cx, _reason| Box::pin(async { Err(HookError::new("late")) }));
    let run = HookHarness::new(hook).on_shutdown().await;
    assert_eq!(run.hook_calls(Point::OnShutdown), 1);
    let failures = run.failures();
    assert_eq!((failures[0].kind, failures[0].message.as_str()), (FaultKind::Failed, "late"));
    assert_eq!(run.exit, Some(ExitReason::Completed));
}

#[tokio::test]
async fn chat_points_run_around_the_turn() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (first, last) = (order.clone(), order.clone());
    let harness = HookHarness::new(hook::before_chat(move |cx| {
        first.lock().unwrap().push(format!("before {:?}", cx.variables().get("chat_id")));
        Box::pin(async { Ok(Flow::Continue) })
    }))
    .and(hook::after_chat(move |_cx, end| {
        last.lock().unwrap().push(format!("after {}", end.outcome));
        Box::pin(async { Ok(()) })
    }));
    let run = harness.chat("hello").await;
    assert_eq!(*order.lock().unwrap(), ["before Some(String(\"harness\"))", "after ok"]);
    assert_eq!((run.input(), run.output()), (Some("hello"), "done"));
    assert!(run.chat.as_ref().unwrap().outcome.is_ok());
    assert_paired(run.recorder());
}

#[tokio::test]
async fn a_chat_that_a_hook_denies_has_no_turn() {
    let plan = FaultPlan::new().always(Point::BeforeChat, Fault::Fail);
    let guard = hook::hook(FaultyHook::new(&plan)).policy_at(Point::BeforeChat, Policy::Deny);
    let run = HookHarness::new(guard).chat("hello").await;
    assert!(run.turn.is_none());
    assert_eq!(run.outcome(), Outcome::Denied);
    assert_eq!(run.failures().len(), 1);
    assert_paired(run.recorder());
}

#[tokio::test]
async fn transitions_of_a_whole_life_can_be_driven() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let hook = hook::on_transition(move |cx| {
        kept.lock().unwrap().push((cx.from(), cx.to()));
        Box::pin(async { Ok(()) })
    });
    let harness = HookHarness::new(hook).tool("look", "seen");
    for (from, to) in [
        (Phase::Bootstrapping, Phase::Idle),
        (Phase::AnalyzingLlmResponse, Phase::ExecutingTool),
        (Phase::Idle, Phase::Paused),
        (Phase::ShuttingDown, Phase::Terminated),
    ] {
        seen.lock().unwrap().clear();
        let run = harness.transition(from, to).await;
        assert!(seen.lock().unwrap().contains(&(from, to)), "{from} to {to}");
        assert_paired(run.recorder());
    }
}

#[tokio::test]
#[should_panic(expected = "this life has no transition from idle to error")]
async fn a_transition_that_does_not_happen_is_told() {
    let hook = hook::on_transition(|_cx| Box::pin(async { Ok(()) }));
    HookHarness::new(hook).transition(Phase::Idle, Phase::Error).await;
}

#[tokio::test]
async fn the_agent_can_be_configured_and_a_wrong_one_is_told() {
    let hook = || hook::on_start(|_cx| Box::pin(async { Ok(()) }));
    let run = HookHarness::new(hook())
        .configure(|builder| builder.instruction("be kind"))
        .before_agent("hello")
        .await;
    assert_eq!(run.requests[0].instruction.as_deref(), Some("be kind"));
    let run = HookHarness::new(hook()).configure(|builder| builder.max_steps(0)).on_start().await;
    assert_eq!(run.error().unwrap().kind(), ErrorKind::Invalid);
    assert_eq!(run.exit, None);
}

#[tokio::test]
async fn every_point_is_reached_by_its_own_method() {
    let plan = FaultPlan::seeded(0, 0);
    let harness = HookHarness::new(FaultyHook::new(&plan)).tool("look", "seen");
    for point in Point::ALL {
        let run = match point {
            Point::OnStart => harness.on_start().await,
            Point::OnShutdown => harness.on_shutdown().await,
            Point::BeforeChat | Point::AfterChat => harness.chat("hello").await,
            Point::BeforeAgent => harness.before_agent("hello").await,
            Point::AfterAgent => harness.after_agent("hello").await,
            Point::BeforeModel => harness.before_model("hello").await,
            Point::WrapModelCall => harness.wrap_model_call("hello").await,
            Point::AfterModel => harness.after_model(ModelResponse::text("hi")).await,
            Point::WrapToolCall => harness.wrap_tool_call("look", json!({})).await,
            _ => harness.transition(Phase::Paused, Phase::Idle).await,
        };
        assert!(run.hook_calls(point) > 0, "{point}");
        assert!(run.outcome().is_ok(), "{point}: {run:?}");
        assert_paired(run.recorder());
    }
}
