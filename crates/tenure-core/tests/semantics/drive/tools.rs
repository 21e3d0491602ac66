//! Tool calls of one response.

use crate::semantics::support::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenure_core::Outcome;
use tenure_core::agent::Agent;
use tenure_core::hook::{self, Point, Policy};
use tenure_core::message::ToolStatus;
use tenure_core::phase::Phase;
use tenure_core::tool::ToolError;
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn tools_run_in_parallel_and_their_results_stand_in_call_order() {
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["slow", "fast", "middle"])]))
            .tool(slow_tool("slow", ms(300)))
            .tool(slow_tool("fast", ms(10)))
            .tool(slow_tool("middle", ms(100))),
    )
    .await;
    let begun = Instant::now();
    let report = agent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), ["slow ok", "fast ok", "middle ok"]);
    assert_eq!(begun.elapsed(), ms(300), "all at once");
}

#[tokio::test(start_paused = true)]
async fn no_more_tools_run_at_once_than_allowed_and_none_is_left_out() {
    for cap in [1, 2, 3] {
        let (now, most) = (Count::default(), Arc::new(AtomicUsize::new(0)));
        let (counted, peak) = (now.clone(), most.clone());
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["work"; 7])]))
                .max_parallel_tools(cap)
                .tool(tool("work", move |cx, _| {
                    let (now, most) = (counted.clone(), peak.clone());
                    Box::pin(async move {
                        most.fetch_max(now.up(), Ordering::SeqCst);
                        sleep(ms(10)).await;
                        now.down();
                        Ok(format!("{}", cx.index()).into())
                    })
                })),
        )
        .await;
        let report = agent.run("go").await.unwrap();
        assert_eq!(contents(report.history()), ["0", "1", "2", "3", "4", "5", "6"]);
        assert_eq!(most.load(Ordering::SeqCst), cap);
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_and_unknown_tools_are_results_for_the_model() {
    let table = [
        (call_with("act", "{not json"), "are not JSON"),
        (call_with("act", "[1,2]"), "must be a JSON object, but they are an array"),
        (call_with("missing", "{}"), "there is no tool `missing`; there are: act"),
    ];
    for (reply, expected) in table {
        let count = Count::default();
        let model = script([reply, say("I see")]);
        let agent =
            started(Agent::builder("agent").model(model.clone()).tool(counted("act", &count)))
                .await;
        let report = agent.run("go").await.unwrap();
        let result = &results(report.history())[0];
        assert_eq!(result.status, ToolStatus::Error);
        assert!(result.content.text().contains(expected), "{}", result.content);
        assert_eq!((count.get(), model.calls(), report.output()), (0, 2, "I see"));
    }
    let agent = started(
        Agent::builder("agent").model(script([call_with("act", "  ")])).tool(ok_tool("act")),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), ["act ok"], "no arguments are an empty object");
}

#[tokio::test(start_paused = true)]
async fn a_tools_limit_is_a_result_for_the_model() {
    for own in [true, false] {
        let mut slow = slow_tool("slow", secs(60));
        let mut builder = Agent::builder("agent").model(script([call(&["slow"])]));
        if own {
            slow.spec = slow.spec.limit(ms(20));
        } else {
            builder = builder.tool_limit(ms(20));
        }
        let agent = started(builder.tool(slow)).await;
        let begun = Instant::now();
        let report = agent.run("go").await.unwrap();
        assert_eq!(begun.elapsed(), ms(20));
        let result = &results(report.history())[0];
        assert_eq!(result.status, ToolStatus::Error);
        assert!(result.content.text().contains("20ms"), "{}", result.content);
    }
}

#[tokio::test(start_paused = true)]
async fn g8_calls_without_an_id_or_with_the_same_one_are_told_apart() {
    use tenure_core::message::ToolCall;
    let calls = ["", "x", "x", ""].map(|id| ToolCall::new(id, "act", "{}"));
    let agent = started(
        Agent::builder("agent").model(script([Reply::Call(calls.into())])).tool(ok_tool("act")),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(results(report.history()).len(), 4);
    assert_valid(&agent);
}

#[tokio::test(start_paused = true)]
async fn g8_a_hook_that_aborts_settles_the_siblings_and_keeps_what_was_completed() {
    let guard = hook::wrap_tool_call(|_, request, next| {
        Box::pin(async move {
            if request.name() == "bad" {
                sleep(ms(50)).await;
                return Err(hook::HookError::new("broken"));
            }
            Ok(next.call(request).await?)
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["slow", "bad", "fast"])]))
            .tool(slow_tool("slow", secs(60)))
            .tool(ok_tool("bad"))
            .tool(slow_tool("fast", ms(10)))
            .with_lifecycle(guard),
    )
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    let statuses: Vec<_> = results(&agent.history()).iter().map(|it| it.status).collect();
    assert_eq!(statuses, [ToolStatus::Cancelled, ToolStatus::Cancelled, ToolStatus::Ok]);
    assert_valid(&agent);
}

#[tokio::test(start_paused = true)]
async fn a_tool_sees_its_batch_and_a_wrap_may_change_arguments_and_result() {
    let wrap = hook::wrap_tool_call(|cx, request, next| {
        Box::pin(async move {
            assert_eq!((cx.batch().len(), cx.index()), (2, request.index()));
            assert_eq!(cx.tool().map(|spec| &*spec.name), Some("echo"));
            request.arguments["seen"] = json!(cx.call_id());
            let mut output = next.call(request).await?;
            output.content.push("!");
            Ok(output)
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["echo", "echo"])]))
            .tool(tool("echo", |_, arguments| {
                Box::pin(async move { Ok(arguments.to_string().into()) })
            }))
            .with_lifecycle(wrap),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), [r#"{"seen":"c1"}!"#, r#"{"seen":"c2"}!"#]);
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_is_equal_on_every_attempt_and_differs_between_calls() {
    let keys = Log::default();
    let log = keys.clone();
    let retry = hook::wrap_tool_call(|_, request, next| {
        Box::pin(async move {
            next.call(request).await?;
            Ok(next.call(request).await?)
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act"]), call(&["act"])]))
            .tool(tool("act", move |cx, _| {
                log.add(cx.idempotency_key());
                Box::pin(async { Ok("ok".into()) })
            }))
            .with_lifecycle(retry),
    )
    .await;
    agent.run("go").await.unwrap();
    let keys = keys.take();
    assert_eq!(keys.len(), 4);
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[2], keys[3]);
    assert_ne!(keys[0], keys[2], "the same call id in another step is another call");
}

#[tokio::test(start_paused = true)]
async fn a_fatal_tool_error_shuts_the_agent_down_and_settles_the_batch() {
    let log = Log::default();
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["fine", "fatal"])]))
            .tool(ok_tool("fine"))
            .tool(tool("fatal", |_, _| {
                Box::pin(async { Err(ToolError::fatal("the disk is gone")) })
            }))
            .with_lifecycle(probe_at("A", &log, Point::AfterAgent)),
    )
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert!(error.is_fatal());
    assert_eq!(log.take(), ["A.after_agent(failed)"]);
    assert_eq!(agent.phase(), Phase::Terminated);
    assert_eq!(agent.exit_reason(), Some(tenure_core::ExitReason::Fatal));
    assert_eq!(contents(&agent.history())[0], "fine ok", "what was completed is kept");
    assert_valid(&agent);
}

#[tokio::test(start_paused = true)]
async fn the_phase_is_tool_denied_only_if_every_call_was_denied() {
    for (tools, denied) in [(&["no", "no"][..], true), (&["no", "yes"], false)] {
        let log = Log::default();
        let guard = hook::wrap_tool_call(|_, request, next| {
            Box::pin(async move {
                if request.name() == "no" {
                    return Err(hook::HookError::new("no"));
                }
                Ok(next.call(request).await?)
            })
        });
        let agent = started(
            Agent::builder("agent")
                .model(script([call(tools)]))
                .tool(ok_tool("no"))
                .tool(ok_tool("yes"))
                .with_lifecycle(hook::hook(guard).policy(Policy::Deny))
                .with_lifecycle(probe_at("T", &log, Point::OnTransition)),
        )
        .await;
        agent.run("go").await.unwrap();
        let has = |part: &str| log.lines().iter().any(|line| line.contains(part));
        assert_eq!(has(">tool_denied"), denied, "{tools:?}");
        assert_eq!(has(">executing_tool"), !denied, "{tools:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_history_says_of_an_unanswered_call_whether_it_was_made() {
    for (calls_next, said) in [(true, "the call was made"), (false, "the call was not made")] {
        let fails = hook::wrap_tool_call(move |_, request, next| {
            Box::pin(async move {
                if calls_next {
                    next.call(request).await?;
                }
                Err(hook::HookError::new("late"))
            })
        });
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["act"])]))
                .tool(ok_tool("act"))
                .with_lifecycle(fails),
        )
        .await;
        agent.run("go").await.unwrap_err();
        assert_valid(&agent);
        let content = &contents(&agent.history())[0];
        assert!(content.starts_with(said), "{content}");
    }
}
