//! The ends of a turn: dropped half way, asking a person, and within their budget.

use crate::semantics::drive::endings::drop_after;
use crate::semantics::support::*;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, Ask, PendingAsk};
use tenure_core::event::EventBus;
use tenure_core::hook::{self, After, AgentLifecycle, FaultKind, Point};
use tenure_core::phase::AgentState;
use tenure_core::{ExitReason, Outcome};
use tokio::time::{Instant, sleep, timeout};

/// An end that takes its time, and then wants to go on.
fn continues(log: &Log) -> impl AgentLifecycle + use<> {
    let log = log.clone();
    hook::after_agent(move |_, end| {
        let log = log.clone();
        Box::pin(async move {
            log.add(format!("continues.begins({})", end.outcome()));
            sleep(ms(10)).await;
            log.add("continues.ends");
            Ok(After::Continue("go on".into()))
        })
    })
}

#[tokio::test(start_paused = true)]
async fn g1_ends_that_are_dropped_half_way_complete_once_and_do_not_go_on() {
    for watched in [false, true] {
        let bus = EventBus::new();
        let mut subscriber = watched.then(|| bus.subscribe(1024));
        let (log, model) = (Log::default(), script([]));
        let agent = started(
            Agent::builder("agent")
                .model(model.clone())
                .events(&bus)
                .with_lifecycle(probe_at("outer", &log, Point::AfterAgent))
                .with_lifecycle(continues(&log))
                .with_lifecycle(probe_at("inner", &log, Point::AfterAgent)),
        )
        .await;
        drop_after(agent.run("go"), ms(5)).await;
        assert_eq!(log.lines(), ["inner.after_agent(ok)", "continues.begins(ok)"]);
        let ready = timeout(secs(60), agent.ready()).await;
        ready.expect("its ends come to an end").expect("it is ready again");
        assert_eq!(agent.state(), AgentState::Ready);
        // The one that wanted to go on is called again at the real end.
        assert_eq!(
            log.take(),
            [
                "inner.after_agent(ok)",
                "continues.begins(ok)",
                "continues.ends",
                "continues.begins(ok)",
                "continues.ends",
                "outer.after_agent(ok)",
            ]
        );
        assert_eq!(model.calls(), 1, "nobody waits for a continuation");
        assert_valid(&agent);
        assert_eq!(agent.history().len(), 2, "the turn was ok, and is committed");
        agent.run("again").await.expect("it runs again");
        if let Some(subscriber) = &mut subscriber {
            assert_paired(&events(subscriber));
        }
    }
}

/// An end that asks, and writes down what it is told.
fn asks_at_the_end(log: &Log) -> impl AgentLifecycle + use<> {
    let log = log.clone();
    hook::after_agent(move |cx, end| {
        let log = log.clone();
        Box::pin(async move {
            let outcome = end.outcome();
            match cx.ask(Ask::input("was it good?")).await {
                Ok(answer) => log.add(format!("{outcome}: {}", answer.name())),
                Err(error) => log.add(format!("{outcome}: {error}")),
            }
            Ok(After::Done)
        })
    })
}

/// An agent whose model hangs and whose end asks somebody who does not answer.
async fn hangs_and_asks(log: &Log) -> Agent {
    started(
        Agent::builder("agent")
            .model(script([Reply::Hang]))
            .with_lifecycle(probe_at("outer", log, Point::AfterAgent))
            .with_lifecycle(asks_at_the_end(log))
            .on_ask(|_: &PendingAsk| None),
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn an_end_of_a_cancelled_turn_that_asks_is_told_no_at_once() {
    let log = Log::default();
    let agent = hangs_and_asks(&log).await;
    let begun = Instant::now();
    let (result, ()) = tokio::join!(timeout(secs(60), agent.run("go")), async {
        sleep(ms(10)).await;
        agent.cancel();
    });
    let error = result.expect("nobody is waited for").unwrap_err();
    assert_eq!(error.outcome(), Outcome::Cancelled);
    assert_eq!(error.report().unwrap().failures, []);
    assert!(begun.elapsed() < secs(1), "{:?}", begun.elapsed());
    assert_eq!(log.take(), ["cancelled: reject", "outer.after_agent(cancelled)"]);
    assert!(agent.pending_asks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_end_of_a_dropped_turn_that_asks_is_told_no_at_once() {
    let log = Log::default();
    let agent = hangs_and_asks(&log).await;
    drop_after(agent.run("go"), ms(10)).await;
    timeout(secs(1), agent.ready()).await.expect("nobody is waited for").unwrap();
    assert_eq!(log.take(), ["cancelled: reject", "outer.after_agent(cancelled)"]);
    assert!(agent.pending_asks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_end_of_a_good_turn_may_ask_and_is_answered() {
    let log = Log::default();
    let agent = started(
        Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(asks_at_the_end(&log))
            .on_ask(|_: &PendingAsk| None),
    )
    .await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        sleep(secs(100)).await;
        agent.answer(&agent.pending_asks()[0].id, Answer::Approve);
    });
    assert_eq!(result.expect("a person may take their time").failures, []);
    assert_eq!(log.take(), ["ok: approve"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_cuts_an_end_that_asks_within_its_budget() {
    let log = Log::default();
    let agent = started(
        Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(probe_at("outer", &log, Point::AfterAgent))
            .with_lifecycle(asks_at_the_end(&log))
            .on_ask(|_: &PendingAsk| None),
    )
    .await;
    let begun = Instant::now();
    let (result, ()) = tokio::join!(timeout(secs(300), agent.run("go")), async {
        sleep(ms(10)).await;
        assert_eq!(agent.pending_asks().len(), 1, "the end asks");
        timeout(secs(300), agent.shutdown()).await.expect("a shutdown is bounded");
    });
    let budget = agent.config().lifecycle.timeout;
    assert!(begun.elapsed() <= budget + ms(20), "{:?}", begun.elapsed());
    let report = result.expect("the run comes to an end").expect("the turn itself was ok");
    assert_eq!(report.outcome, Outcome::Ok, "G5");
    assert_eq!(agent.exit_reason(), Some(ExitReason::Completed));
    assert_eq!(log.count("outer.after_agent(ok)"), 1, "G1: {:?}", log.lines());
    assert!(agent.pending_asks().is_empty());
}

/// Ends that panic after `time`.
async fn ten_ends_that_panic_after(time: Duration, watched: bool) -> (Duration, usize, usize) {
    let bus = EventBus::new();
    let _subscriber = watched.then(|| bus.subscribe(1024));
    let called = Count::default();
    let mut builder = Agent::builder("agent").model(script([])).events(&bus);
    for at in 0..10 {
        let called = called.clone();
        let slow = hook::after_agent(move |_, _| {
            called.up();
            Box::pin(async move {
                sleep(time).await;
                std::panic::resume_unwind(Box::new("too late"))
            })
        });
        builder = builder.with_lifecycle(hook::hook(slow).named(format!("slow {at}")));
    }
    let agent = started(builder).await;
    let begun = Instant::now();
    let report = agent.run("go").await.expect("an end never changes the outcome");
    let failed = report.failures.iter();
    let failed = failed.filter(|it| matches!(it.kind, FaultKind::Panicked | FaultKind::TimedOut));
    (begun.elapsed(), called.get(), failed.count())
}

#[tokio::test(start_paused = true)]
async fn g4_ends_that_panic_late_share_one_budget() {
    for watched in [false, true] {
        let (took, called, failed) = ten_ends_that_panic_after(ms(4900), watched).await;
        assert!(took <= secs(20), "watched: {watched}: {took:?}");
        assert_eq!((called, failed), (10, 10), "watched: {watched}: G5 skips nobody");
    }
}
