//! G2 across a family: children end before their parents.

use crate::semantics::drive::endings::drop_after;
use crate::semantics::support::*;
use tenure_core::Outcome;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::event::EventBus;
use tenure_core::hook::{self, HookError, Point, Points};
use tenure_core::message::ToolStatus;
use tokio::time::sleep;

const ENDS: Points = Points::NONE.with(Point::AfterAgent).with(Point::OnShutdown);

/// A family of two, the child stuck in its model call.
fn family(log: &Log, bus: &EventBus) -> AgentBuilder {
    let slow_end = hook::after_agent(|_, _| {
        Box::pin(async {
            sleep(ms(500)).await;
            Ok(hook::After::Done)
        })
    });
    let child = Agent::builder("child")
        .model(script([Reply::Hang]))
        .with_lifecycle(probe_at("child", log, ENDS))
        .with_lifecycle(slow_end)
        .blueprint()
        .expect("the child is valid");
    Agent::builder("parent")
        .model(script([call_with("agent__child", r#"{"message":"go"}"#)]))
        .agent_tool(&child)
        .events(bus)
        .with_lifecycle(probe_at("parent", log, ENDS))
}

const ORDER: [&str; 3] = [
    "child.after_agent(cancelled)",
    "child.on_shutdown(completed)",
    "parent.after_agent(cancelled)",
];

#[tokio::test(start_paused = true)]
async fn g2_a_cancelled_parent_waits_for_its_child_to_end() {
    let (log, bus) = (Log::default(), EventBus::new());
    let parent = started(family(&log, &bus)).await;
    let (result, ()) = tokio::join!(parent.run("go"), async {
        sleep(ms(10)).await;
        parent.cancel();
    });
    assert_eq!(result.unwrap_err().outcome(), Outcome::Cancelled);
    assert_eq!(log.take(), ORDER);
    assert_eq!(results(&parent.history())[0].status, ToolStatus::Cancelled);
    assert_valid(&parent);
}

#[tokio::test(start_paused = true)]
async fn g2_a_dropped_parent_waits_for_its_child_to_end() {
    let (log, bus) = (Log::default(), EventBus::new());
    let mut subscriber = bus.subscribe(1024);
    let parent = started(family(&log, &bus)).await;
    drop_after(parent.run("go"), ms(10)).await;
    parent.ready().await.unwrap();
    assert_eq!(log.take(), ORDER);
    assert_valid(&parent);
    parent.shutdown().await;
    assert_paired(&events(&mut subscriber));
}

#[tokio::test(start_paused = true)]
async fn g2_a_parent_that_is_shut_down_waits_for_its_child_to_end() {
    let (log, bus) = (Log::default(), EventBus::new());
    let parent = started(family(&log, &bus)).await;
    let (result, ()) = tokio::join!(parent.run("go"), async {
        sleep(ms(10)).await;
        parent.shutdown().await;
    });
    assert_eq!(result.unwrap_err().outcome(), Outcome::Cancelled);
    let mut expected = ORDER.map(str::to_owned).to_vec();
    expected.push("parent.on_shutdown(completed)".to_owned());
    assert_eq!(log.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn g2_a_parent_over_its_limit_waits_for_its_child_to_end() {
    let (log, bus) = (Log::default(), EventBus::new());
    let parent = started(family(&log, &bus).turn_limit(secs(1))).await;
    let error = parent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::TimedOut);
    assert_eq!(
        log.take(),
        [
            "child.after_agent(cancelled)",
            "child.on_shutdown(completed)",
            "parent.after_agent(timed_out)"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn g2_a_sibling_that_aborts_the_turn_does_not_outrun_a_child() {
    let (log, bus) = (Log::default(), EventBus::new());
    let aborts = hook::wrap_tool_call(|_, request, next| {
        Box::pin(async move {
            if request.name() == "bad" {
                sleep(ms(10)).await;
                return Err(HookError::new("broken"));
            }
            Ok(next.call(request).await?)
        })
    });
    use tenure_core::message::ToolCall;
    let calls = vec![
        ToolCall::new("c1", "agent__child", r#"{"message":"go"}"#),
        ToolCall::new("c2", "bad", "{}"),
    ];
    let parent = started(
        family(&log, &bus)
            .model(script([Reply::Call(calls)]))
            .tool(ok_tool("bad"))
            .with_lifecycle(aborts),
    )
    .await;
    let error = parent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    assert_eq!(
        log.take(),
        [
            "child.after_agent(cancelled)",
            "child.on_shutdown(completed)",
            "parent.after_agent(failed)"
        ]
    );
    assert_valid(&parent);
}

#[tokio::test(start_paused = true)]
async fn g2_a_cancel_before_the_child_has_started_starts_nothing_more() {
    let log = Log::default();
    let slow_start = hook::on_start(|_| {
        Box::pin(async {
            sleep(ms(100)).await;
            Ok(())
        })
    });
    let points = ENDS.with(Point::OnStart).with(Point::BeforeAgent);
    let child = Agent::builder("child")
        .model(script([]))
        .with_lifecycle(probe_at("child", &log, points))
        .with_lifecycle(slow_start)
        .blueprint()
        .unwrap();
    let parent = started(
        Agent::builder("parent")
            .model(script([call_with("agent__child", r#"{"message":"go"}"#)]))
            .agent_tool(&child)
            .with_lifecycle(probe_at("parent", &log, ENDS)),
    )
    .await;
    let (result, ()) = tokio::join!(parent.run("go"), async {
        sleep(ms(10)).await;
        parent.cancel();
    });
    assert!(result.unwrap_err().is_cancelled());
    assert_eq!(
        log.take(),
        ["child.on_start", "child.on_shutdown(startup_failed)", "parent.after_agent(cancelled)"]
    );
}
