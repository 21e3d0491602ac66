//! G8 on every path, and cancels that reach what they should.

use crate::semantics::support::*;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;
use tenure_core::Outcome;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::{self, HookAction, Point, Points, Policy};
use tenure_core::message::ToolStatus;
use tenure_core::model::ModelErrorKind;
use tenure_core::phase::AgentState;
use tokio::time::sleep;

/// Polls `future` for so long and then drops it.
pub(crate) async fn drop_after<F: Future>(future: F, time: Duration) {
    let (mut future, mut timer) = (pin!(future), pin!(sleep(time)));
    poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending(), "it was to be dropped half way");
        timer.as_mut().poll(cx)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn g8_the_history_is_valid_after_every_ending() {
    let batch = || call(&["fast", "slow", "fast"]);
    let tools = |builder: AgentBuilder| {
        builder.tool(slow_tool("fast", ms(5))).tool(slow_tool("slow", ms(100)))
    };
    let denies = |point| {
        hook::hook(Broken { point, fault: Fault::Error, after_next: false }).policy(Policy::Deny)
    };
    let aborts = |point, after_next| Broken { point, fault: Fault::Panic, after_next };
    let base = || tools(Agent::builder("agent").model(script([batch(), say("done")])));
    let cases: Vec<(&str, AgentBuilder, Outcome)> = vec![
        ("ok", base(), Outcome::Ok),
        ("tools denied", base().with_lifecycle(denies(Point::WrapToolCall)), Outcome::Ok),
        ("denied", base().with_lifecycle(denies(Point::BeforeModel)), Outcome::Denied),
        ("panic", base().with_lifecycle(aborts(Point::WrapToolCall, true)), Outcome::Panicked),
        ("early", base().with_lifecycle(aborts(Point::WrapToolCall, false)), Outcome::Panicked),
        ("model", base().with_lifecycle(aborts(Point::AfterModel, true)), Outcome::Panicked),
        ("turn limit", base().turn_limit(ms(50)), Outcome::TimedOut),
        ("max steps", base().max_steps(1), Outcome::MaxSteps),
        (
            "second call fails",
            tools(
                Agent::builder("agent")
                    .model(script([batch(), Reply::Fail(ModelErrorKind::Other)])),
            ),
            Outcome::Failed,
        ),
        (
            "rejected behind a batch",
            base().with_lifecycle(hook::after_model(|cx, _| {
                let late = cx.step_number() > 1;
                Box::pin(async move {
                    Ok(if late { HookAction::Reject("no".into()) } else { HookAction::Continue })
                })
            })),
            Outcome::Denied,
        ),
    ];
    for (name, builder, expected) in cases {
        let agent = started(builder).await;
        let outcome = match agent.run("go").await {
            Ok(report) => report.outcome,
            Err(error) => error.outcome(),
        };
        assert_eq!(outcome, expected, "{name}");
        assert_valid(&agent);
        assert_eq!(agent.state(), AgentState::Ready, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn g8_a_turn_dropped_in_mid_batch_keeps_what_was_completed() {
    for capped in [false, true] {
        let log = Log::default();
        let mut builder = Agent::builder("agent")
            .model(script([call(&["fast", "slow", "fast"])]))
            .tool(slow_tool("fast", ms(5)))
            .tool(slow_tool("slow", secs(60)))
            .with_lifecycle(probe_at("A", &log, Point::AfterAgent));
        if capped {
            builder = builder.max_parallel_tools(2);
        }
        let agent = started(builder).await;
        drop_after(agent.run("go"), ms(20)).await;
        agent.ready().await.unwrap();
        assert_eq!(log.take(), ["A.after_agent(cancelled)"]);
        let statuses: Vec<_> = results(&agent.history()).iter().map(|it| it.status).collect();
        assert_eq!(statuses, [ToolStatus::Ok, ToolStatus::Cancelled, ToolStatus::Ok]);
        assert_valid(&agent);
        assert_eq!(agent.run("again").await.unwrap().output(), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn g8_a_cancel_in_mid_batch_keeps_what_was_completed() {
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["fast", "slow"])]))
            .tool(slow_tool("fast", ms(5)))
            .tool(slow_tool("slow", secs(60))),
    )
    .await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        sleep(ms(20)).await;
        agent.cancel();
    });
    assert!(result.unwrap_err().is_cancelled());
    let statuses: Vec<_> = results(&agent.history()).iter().map(|it| it.status).collect();
    assert_eq!(statuses, [ToolStatus::Ok, ToolStatus::Cancelled]);
    assert_valid(&agent);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_everything_that_waits() {
    let hang = hook::wrap_tool_call(|_, request, next| {
        Box::pin(async move {
            let result = next.call(request).await;
            // After a cancel, `next` says so at once, as often as it is called.
            let error = next.call(request).await.unwrap_err();
            assert!(error.is_cancelled());
            Ok(result?)
        })
    });
    let cases: Vec<AgentBuilder> = vec![
        Agent::builder("agent").model(script([Reply::Hang])),
        Agent::builder("agent")
            .model(script([call(&["slow"])]))
            .tool(slow_tool("slow", secs(60)))
            .with_lifecycle(hang),
        Agent::builder("agent")
            .model(script([call(&["slow"; 5])]))
            .tool(slow_tool("slow", secs(60)))
            .max_parallel_tools(2),
        Agent::builder("agent").model(script([])).with_lifecycle(Broken {
            point: Point::BeforeModel,
            fault: Fault::Hang,
            after_next: false,
        }),
        Agent::builder("agent").model(script([])).with_lifecycle(Broken {
            point: Point::WrapModelCall,
            fault: Fault::Hang,
            after_next: true,
        }),
        Agent::builder("agent").model(script([])).with_lifecycle(Broken {
            point: Point::AfterModel,
            fault: Fault::Hang,
            after_next: false,
        }),
    ];
    for (case, builder) in cases.into_iter().enumerate() {
        let log = Log::default();
        let points = Points::from(Point::AfterAgent);
        let agent = started(builder.with_lifecycle(probe_at("A", &log, points))).await;
        let begun = tokio::time::Instant::now();
        let (result, ()) = tokio::join!(agent.run("go"), async {
            sleep(ms(20)).await;
            agent.cancel();
        });
        let error = result.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Cancelled, "case {case}: {error:?}");
        assert_eq!(begun.elapsed(), ms(20), "case {case}");
        assert_eq!(log.take(), ["A.after_agent(cancelled)"], "case {case}");
        assert_valid(&agent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_clean_up_within_its_grace() {
    use tenure_core::context::ToolCx;
    use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
    struct Tidy(Log, Duration);
    #[async_trait::async_trait]
    impl Tool for Tidy {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("tidy", "Cleans up after itself")
        }
        async fn call(
            &self,
            cx: ToolCx<'_>,
            _: &serde_json::Value,
        ) -> Result<ToolOutput, ToolError> {
            cx.cancelled().await;
            sleep(self.1).await;
            self.0.add("cleaned up");
            Ok("cleaned up".into())
        }
        fn cancel_grace(&self) -> Duration {
            ms(100)
        }
    }
    for (needs, result) in
        [(ms(50), "cleaned up"), (ms(500), "the call was cancelled after it was made")]
    {
        let log = Log::default();
        let agent = started(
            Agent::builder("agent").model(script([call(&["tidy"])])).tool(Tidy(log.clone(), needs)),
        )
        .await;
        let (ran, ()) = tokio::join!(agent.run("go"), async {
            sleep(ms(10)).await;
            agent.cancel();
        });
        assert!(ran.unwrap_err().is_cancelled());
        assert_eq!(contents(&agent.history()), [result]);
    }
}

#[tokio::test(start_paused = true)]
async fn g1_a_hook_that_asks_for_a_shutdown_is_obeyed_watched_or_not() {
    for watched in [false, true] {
        let log = Log::default();
        let bus = tenure_core::event::EventBus::new();
        let _subscriber = watched.then(|| bus.subscribe(1));
        let model = script([call(&["act"]), say("never")]);
        let agent = started(
            Agent::builder("agent")
                .model(model.clone())
                .tool(ok_tool("act"))
                .events(&bus)
                .with_lifecycle(probe_at(
                    "A",
                    &log,
                    Points::from(Point::AfterAgent).with(Point::OnShutdown),
                ))
                .with_lifecycle(hook::after_model(|cx, _| {
                    cx.request_shutdown();
                    Box::pin(async { Ok(HookAction::Continue) })
                })),
        )
        .await;
        let error = agent.run("go").await.unwrap_err();
        assert_eq!((error.outcome(), model.calls()), (Outcome::Cancelled, 1), "{watched}");
        assert_eq!(
            log.take(),
            ["A.after_agent(cancelled)", "A.on_shutdown(completed)"],
            "watched: {watched}"
        );
        assert_eq!(agent.state(), AgentState::Terminated);
    }
}
