//! G4: how long a hook may take, and whose time counts.

use crate::semantics::support::*;
use std::time::Duration;
use tenure_core::Outcome;
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, Ask};
use tenure_core::event::{EventBus, EventKind, Received};
use tenure_core::hook::{self, FaultKind, Flow, Policy};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn g4_a_wraps_limit_counts_its_own_time_only() {
    let wrap = |before: Duration, after: Duration| {
        hook::hook(hook::wrap_tool_call(move |_, request, next| {
            Box::pin(async move {
                sleep(before).await;
                let result = next.call(request).await?;
                sleep(after).await;
                Ok(result)
            })
        }))
        .limit(ms(60))
    };
    for (before, after, passes) in
        [(ms(30), ms(0), true), (ms(30), ms(25), true), (ms(40), ms(40), false)]
    {
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["slow"])]))
                .tool(slow_tool("slow", ms(100)))
                .with_lifecycle(wrap(before, after)),
        )
        .await;
        let begun = Instant::now();
        let result = agent.run("go").await;
        assert_eq!(result.is_ok(), passes, "{before:?} + {after:?}: {result:?}");
        if let Err(error) = result {
            assert_eq!(error.outcome(), Outcome::TimedOut);
            assert_eq!(begun.elapsed(), ms(160), "cut off at 60 ms of its own");
        }
    }
}

/// Of a begin and of a wrap: neither the limit nor what is told of the call counts it.
#[tokio::test(start_paused = true)]
async fn g4_time_that_is_not_the_calls_counts_nowhere() {
    let bus = EventBus::new();
    let mut events = bus.subscribe(1000);
    let begin = hook::hook(hook::before_agent(|cx, _| {
        Box::pin(async move {
            let paused = cx.pause_limit();
            sleep(secs(9)).await;
            drop(paused);
            assert_eq!(cx.time_off(), secs(9));
            sleep(ms(40)).await;
            Ok(Flow::Continue)
        })
    }));
    let wrap = hook::hook(hook::wrap_model_call(|cx, request, next| {
        Box::pin(async move {
            let paused = cx.pause_limit();
            sleep(secs(7)).await;
            drop(paused);
            sleep(ms(30)).await;
            Ok(next.call(request).await?)
        })
    }));
    let agent = Agent::builder("agent").model(script([])).events(&bus);
    let agent = agent.with_lifecycle(begin.named("begin").limit(ms(60)));
    let agent = started(agent.with_lifecycle(wrap.named("wrap").limit(ms(60)))).await;
    agent.run("go").await.expect("neither is cut off");
    let mut told = Vec::new();
    while let Some(Received::Event(event)) = events.try_recv() {
        if let EventKind::HookEnded { hook, took, .. } = &event.kind {
            told.push((hook.to_string(), *took));
        }
    }
    assert_eq!(told, [("begin".to_owned(), ms(40)), ("wrap".to_owned(), ms(30))]);
}

/// This runtime has no timers: arming one would panic.
#[test]
fn g4_limits_are_armed_only_when_a_call_is_pending() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let log = Log::default();
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["act"])]))
                .tool(ok_tool("act"))
                .turn_limit(secs(1))
                .model_limit(secs(1))
                .tool_limit(secs(1))
                .with_lifecycle(hook::hook(probe("A", &log)).limit(secs(1))),
        )
        .await;
        assert_eq!(agent.run("go").await.unwrap().output(), "done");
        assert_eq!(log.count("A.after_agent(ok)"), 1);
    });
}

#[tokio::test(start_paused = true)]
async fn g4_waiting_for_a_person_never_counts() {
    let slow_person = |_: &tenure_core::ask::PendingAsk| None;
    let wrap = hook::wrap_tool_call(|cx, request, next| {
        Box::pin(async move {
            sleep(ms(40)).await;
            let answer = cx.ask(Ask::approval("may I?", request.arguments.clone())).await?;
            assert_eq!(answer, Answer::Approve);
            Ok(next.call(request).await?)
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["slow"])]))
            .tool(slow_tool("slow", ms(100)))
            .with_lifecycle(hook::hook(wrap).limit(ms(60)))
            .turn_limit(ms(200))
            .on_ask(slow_person),
    )
    .await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        sleep(secs(3600)).await;
        let pending = agent.pending_asks();
        agent.answer(&pending[0].id, Answer::Approve);
    });
    assert_eq!(contents(result.unwrap().history()), ["slow ok"]);
}

#[tokio::test(start_paused = true)]
async fn g4_a_siblings_wait_for_a_person_does_not_cut_off_the_others() {
    let asks = tool("asks", |cx, _| {
        Box::pin(async move {
            cx.ask(Ask::input("well?")).await?;
            Ok("asked".into())
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["asks", "slow"])]))
            .tool(asks)
            .tool(slow_tool("slow", ms(150)))
            .turn_limit(ms(100))
            .on_ask(|_: &tenure_core::ask::PendingAsk| None),
    )
    .await;
    let (result, ()) = tokio::join!(agent.run("go"), async {
        sleep(ms(60)).await;
        let pending = agent.pending_asks();
        agent.answer(&pending[0].id, Answer::Approve);
    });
    assert_eq!(contents(result.unwrap().history()), ["asked", "slow ok"]);
}

#[tokio::test(start_paused = true)]
async fn g4_ends_have_5_s_each_and_15_s_together() {
    let log = Log::default();
    let mut builder = Agent::builder("agent").model(script([]));
    for name in ["1", "2", "3", "4", "5"] {
        let log = log.clone();
        let hang = hook::after_agent(move |_, _| {
            log.add(name);
            Box::pin(Fault::Hang.strike())
        });
        builder = builder.with_lifecycle(hook::hook(hang).named(name));
    }
    let agent = started(builder).await;
    let begun = Instant::now();
    let report = agent.run("go").await.unwrap();
    assert_eq!(begun.elapsed(), secs(15));
    assert_eq!(log.take(), ["5", "4", "3", "2", "1"], "every end is called");
    assert!(report.failures.iter().all(|failure| failure.kind == FaultKind::TimedOut));
    assert_eq!((report.output(), report.failures.len()), ("done", 5));
}

/// The thread is real, so the time is.
#[tokio::test]
async fn g4_blocking_code_over_its_limit_is_abandoned() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let hook = hook::before_agent(move |_, _| {
        let wait = wait.clone();
        Box::pin(async move {
            tenure_core::blocking(move || {
                let _ = wait.lock().map(|wait| wait.recv());
            })
            .await;
            Ok(Flow::Continue)
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(hook::hook(hook).limit(ms(20)).policy(Policy::Deny)),
    )
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Denied);
    assert_eq!(error.report().unwrap().failures[0].kind, FaultKind::TimedOut);
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn limits_longer_than_any_clock_are_limits_that_are_never_met() {
    let waits = hook::hook(hook::wrap_tool_call(|_, request, next| {
        Box::pin(async move {
            sleep(ms(10)).await;
            Ok(next.call(request).await?)
        })
    }));
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["slow"])]))
            .tool(slow_tool("slow", ms(100)))
            .turn_limit(Duration::MAX)
            .model_limit(Duration::MAX)
            .tool_limit(Duration::MAX)
            .with_lifecycle(waits.limit(Duration::MAX)),
    )
    .await;
    assert_eq!(agent.run("go").await.unwrap().outcome, Outcome::Ok);
}
