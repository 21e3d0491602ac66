//! Clones that work for a turn: they end before it, however it ends (G2), and what they cost is
//! charged to it.

use crate::guarantees::support::{Acts, Does, Events, Fault, Log, Saw, Says, Watch, agent};
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::clone::ChildOptions;
use tenure_core::event::EventKind;
use tenure_core::hook::{self, HookError};
use tenure_core::message::HistoryDefect;
use tenure_core::{ExitReason, Outcome};
use tokio::time::{Instant, sleep, timeout};

const MOMENT: Duration = Duration::from_secs(1);

/// A child whose end takes longer than that of its parent.
fn child(log: &Log, model: Says) -> Blueprint {
    let slow = Fault::After(MOMENT * 2);
    agent("child", model)
        .tool(Acts("hangs", Does::Hangs))
        .with_lifecycle(Watch::new("child", log).after_agent(slow).on_shutdown(slow))
        .blueprint()
        .unwrap()
}

fn parent(log: &Log, model: Says, child: &Blueprint) -> AgentBuilder {
    agent("parent", model)
        .agent_tool(child)
        .tool(Acts("hangs", Does::Hangs))
        .with_lifecycle(Watch::new("parent", log))
}

/// Asserts that the child was over before the parent's turn was, each with its outcome.
fn check(log: &Log, child: Outcome, parent: Outcome) {
    let entries = log.entries();
    let place = |hook: &str, saw: Saw| {
        let found = entries.iter().position(|it| it.hook == hook && it.saw == saw);
        found.unwrap_or_else(|| panic!("{hook} did not see {saw:?} in {entries:?}"))
    };
    let over = place("child", Saw::Shutdown(ExitReason::Completed));
    assert!(place("child", Saw::After(child)) < over);
    assert!(over < place("parent", Saw::After(parent)), "{entries:?}");
}

async fn cancelled_after(agent: &Agent, after: Duration) -> Outcome {
    let (result, ()) = tokio::join!(agent.run("go"), async {
        sleep(after).await;
        agent.cancel();
    });
    assert_eq!(HistoryDefect::find(&agent.history()), None);
    result.unwrap_err().outcome()
}

#[tokio::test(start_paused = true)]
async fn g2_a_child_ends_before_a_turn_that_times_out() {
    let log = Log::default();
    let child = child(&log, Says::Hangs);
    let agent = parent(&log, Says::Calls("agent__child"), &child).turn_limit(MOMENT);
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::TimedOut);
    check(&log, Outcome::Cancelled, Outcome::TimedOut);
    assert_eq!(HistoryDefect::find(&agent.history()), None);
}

#[tokio::test(start_paused = true)]
async fn g2_a_child_ends_before_a_turn_that_is_dropped() {
    let log = Log::default();
    let child = child(&log, Says::Hangs);
    let agent = parent(&log, Says::Calls("agent__child"), &child).build().unwrap();
    agent.startup().await.unwrap();
    assert!(timeout(MOMENT, agent.run("go")).await.is_err());
    agent.ready().await.unwrap();
    check(&log, Outcome::Cancelled, Outcome::Cancelled);
    assert_eq!(HistoryDefect::find(&agent.history()), None);
}

#[tokio::test(start_paused = true)]
async fn g2_a_cancel_gives_every_call_of_a_batch_its_grace() {
    for tools in [&["hangs", "agent__child"], &["agent__child", "hangs"]] {
        let log = Log::default();
        let child = child(&log, Says::Hangs);
        let agent = parent(&log, Says::CallsAll(tools), &child).build().unwrap();
        agent.startup().await.unwrap();
        assert_eq!(cancelled_after(&agent, MOMENT).await, Outcome::Cancelled);
        check(&log, Outcome::Cancelled, Outcome::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn g2_a_hook_that_aborts_the_batch_waits_for_its_siblings_to_end() {
    let log = Log::default();
    let child = child(&log, Says::Hangs);
    let aborts = hook::wrap_tool_call(|_cx, request, next| {
        Box::pin(async move {
            if request.name() == "hangs" {
                sleep(MOMENT).await;
                return Err(HookError::new("no more of this"));
            }
            Ok(next.call(request).await?)
        })
    });
    let model = Says::CallsAll(&["hangs", "agent__child"]);
    let agent = parent(&log, model, &child).with_lifecycle(aborts).build().unwrap();
    agent.startup().await.unwrap();
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    check(&log, Outcome::Cancelled, Outcome::Failed);
    assert_eq!(HistoryDefect::find(&agent.history()), None);
}

#[tokio::test(start_paused = true)]
async fn g1_a_cancel_reaches_a_child_that_is_starting() {
    let log = Log::default();
    let child = agent("child", Says::Done)
        .with_lifecycle(Watch::new("child", &log).on_start(Fault::Hangs))
        .blueprint()
        .unwrap();
    let agent = parent(&log, Says::Calls("agent__child"), &child).build().unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    assert_eq!(cancelled_after(&agent, MOMENT).await, Outcome::Cancelled);
    assert!(began.elapsed() < MOMENT * 2, "{:?}", began.elapsed());
    assert_eq!(log.of("child"), [Saw::Start, Saw::Shutdown(ExitReason::StartupFailed)]);
}

#[tokio::test(start_paused = true)]
async fn g1_a_queued_call_is_not_started_after_a_cancel() {
    let log = Log::default();
    let child = child(&log, Says::Hangs);
    let agent = agent("parent", Says::CallsAll(&["ask", "ask"]))
        .agent_tool_with(&child, ChildOptions::default().named("ask").max_parallel(1))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    assert_eq!(cancelled_after(&agent, MOMENT).await, Outcome::Cancelled);
    assert!(began.elapsed() < MOMENT * 6, "{:?}", began.elapsed());
    let starts = log.of("child").into_iter().filter(|saw| *saw == Saw::Start).count();
    assert_eq!(starts, 1);
}

#[tokio::test(start_paused = true)]
async fn usage_of_a_child_is_charged_in_every_ending() {
    for ending in ["ok", "cancelled", "dropped", "timed out"] {
        let (log, mut events) = (Log::default(), Events::new());
        let model = if ending == "ok" { Says::Done } else { Says::Calls("hangs") };
        let child = child(&log, model);
        let mut builder = parent(&log, Says::Calls("agent__child"), &child).events(&events.bus);
        if ending == "timed out" {
            builder = builder.turn_limit(MOMENT);
        }
        let agent = builder.build().unwrap();
        agent.startup().await.unwrap();
        match ending {
            "cancelled" => drop(cancelled_after(&agent, MOMENT).await),
            "dropped" => drop(timeout(MOMENT, agent.run("go")).await),
            _ => drop(agent.run("go").await),
        }
        agent.ready().await.unwrap();
        let calls = if ending == "ok" { 3 } else { 2 };
        assert_eq!(agent.usage().calls, calls, "{ending}");
        let id = agent.id();
        let told = events.all().iter().find_map(|event| match event.kind {
            EventKind::TurnEnded { usage, .. } if event.instance == id => Some(usage.calls),
            _ => None,
        });
        assert_eq!(told, Some(calls), "{ending}");
    }
}
