//! Cancelling with a token: whom it reaches, whom it does not, and what waiting for it costs.

use crate::semantics::support::*;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use tenure_core::agent::Agent;
use tenure_core::hook::{self, Point};
use tenure_core::model::ModelResponse;
use tenure_core::phase::AgentState;
use tenure_core::{CancelToken, Outcome};
use tokio::time::sleep;

fn slow(time: std::time::Duration) -> Reply {
    Reply::Slow(time, Box::new(say("done")))
}

#[tokio::test(start_paused = true)]
async fn a_token_of_an_earlier_request_does_not_reach_a_later_turn() {
    let earlier_endings = [slow(ms(1)), Reply::Panic, Reply::Hang];
    for earlier in earlier_endings {
        let agent =
            started(Agent::builder("agent").model(script([earlier.clone(), slow(secs(1))]))).await;
        let token = CancelToken::new();
        let first = agent.request("one").cancel_on(&token).limit(ms(100)).run().await;
        assert_eq!(first.is_ok(), !matches!(earlier, Reply::Panic | Reply::Hang));
        let (result, ()) = tokio::join!(agent.run("two"), async {
            sleep(ms(10)).await;
            assert_eq!(agent.state(), AgentState::Busy, "the second turn is running");
            token.cancel();
        });
        assert_eq!(result.expect("nobody cancelled this one").output(), "done");
        assert_eq!(agent.state(), AgentState::Ready);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_of_a_dropped_request_does_not_reach_a_later_turn() {
    let agent = started(Agent::builder("agent").model(script([Reply::Hang, slow(secs(1))]))).await;
    let token = CancelToken::new();
    {
        let mut run = pin!(agent.request("one").cancel_on(&token).run());
        poll_fn(|cx| {
            assert!(run.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    }
    agent.ready().await.unwrap();
    let (result, ()) = tokio::join!(agent.run("two"), async {
        sleep(ms(10)).await;
        token.cancel();
    });
    assert_eq!(result.expect("nobody cancelled this one").output(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_token_reaches_every_turn_that_was_given_it_and_those_alone() {
    let build = || Agent::builder("agent").model(script([slow(secs(1)), slow(secs(1))]));
    let (one, two, three) =
        (started(build()).await, started(build()).await, started(build()).await);
    let token = CancelToken::new();
    let (first, second, third, ()) = tokio::join!(
        one.request("go").cancel_on(&token).run(),
        two.request("go").cancel_on(&token.clone()).run(),
        three.request("go").cancel_on(&CancelToken::new()).run(),
        async {
            sleep(ms(10)).await;
            token.cancel();
        }
    );
    assert_eq!(first.unwrap_err().outcome(), Outcome::Cancelled);
    assert_eq!(second.unwrap_err().outcome(), Outcome::Cancelled);
    assert_eq!(third.expect("it has another token").output(), "done");
    one.run("again").await.expect("the agent itself was not cancelled for good");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_cancelled_before_the_request_cancels_it() {
    let log = Log::default();
    let model = script([]);
    let agent = started(Agent::builder("agent").model(model.clone()).with_lifecycle(probe_at(
        "A",
        &log,
        tenure_core::hook::Points::from(Point::BeforeAgent).with(Point::AfterAgent),
    )))
    .await;
    let token = CancelToken::new();
    token.cancel();
    for _ in 0..2 {
        let error = agent.request("go").cancel_on(&token).run().await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Cancelled);
        let error = agent.request("go").cancel_on(&token).stream().finish().await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Cancelled);
    }
    assert_eq!(model.calls(), 0, "the model was not asked");
    assert_eq!(log.count("A.before_agent"), log.count("A.after_agent(cancelled)"), "G1");
    agent.run("go").await.expect("a request without the token runs");
}

#[tokio::test(start_paused = true)]
async fn many_may_wait_for_a_token_and_do_not_wake_each_other() {
    const WAITERS: usize = 200;
    let token = CancelToken::new();
    let (polls, over) = (Count::default(), Count::default());
    let waiting: Vec<_> = (0..WAITERS)
        .map(|_| {
            let (token, polls, over) = (token.clone(), polls.clone(), over.clone());
            #[allow(clippy::disallowed_methods, reason = "these are the test's own tasks")]
            tokio::spawn(async move {
                {
                    let mut cancelled = pin!(token.cancelled());
                    poll_fn(|cx| {
                        if polls.up() > WAITERS * 20 {
                            // They wake each other for ever: the test has failed.
                            return std::task::Poll::Ready(());
                        }
                        cancelled.as_mut().poll(cx)
                    })
                    .await;
                }
                over.up();
            })
        })
        .collect();
    // Time is paused: it moves on only when nobody has anything left to do.
    let settled = tokio::time::timeout(secs(60), async {
        sleep(secs(1)).await;
        let after_a_second = polls.get();
        sleep(secs(10)).await;
        (after_a_second, polls.get())
    });
    let (after_a_second, before_cancel) = settled.await.expect("the waiters come to rest");
    assert_eq!(over.get(), 0, "nobody was woken without a cancel");
    assert_eq!(after_a_second, before_cancel, "whoever waits sleeps");
    assert!(before_cancel >= WAITERS, "each has begun to wait: {before_cancel}");
    assert!(before_cancel <= WAITERS * 5, "{before_cancel} polls for {WAITERS} waiters");
    token.cancel();
    for task in waiting {
        tokio::time::timeout(secs(1), task).await.expect("it is woken").unwrap();
    }
    assert_eq!(over.get(), WAITERS);
    assert!(polls.get() <= before_cancel + 2 * WAITERS, "{}", polls.get());
}

#[tokio::test(start_paused = true)]
async fn waits_that_were_given_up_are_not_in_the_way_of_a_cancel() {
    let token = CancelToken::new();
    let dropped: Vec<_> = (0..500).map(|_| Arc::new(Woken(Count::default()))).collect();
    for woken in &dropped {
        let waker = std::task::Waker::from(woken.clone());
        let mut wait = pin!(token.cancelled());
        assert!(wait.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    }
    let (result, ()) = tokio::join!(tokio::time::timeout(secs(1), token.cancelled()), async {
        sleep(ms(10)).await;
        token.cancel();
    });
    result.expect("the one who still waits is woken");
    token.cancelled().await;
}

struct Woken(Count);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.up();
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrap_that_answers_on_any_error_undoes_no_cancel_and_no_limit_of_the_turn() {
    for streams in [true, false] {
        for (limit, outcome) in [(secs(60), Outcome::Cancelled), (ms(5), Outcome::TimedOut)] {
            let agent = Agent::builder("agent").model(script([Reply::Hang])).with_lifecycle(
                hook::wrap_model_call(|_, request, next| {
                    Box::pin(async move {
                        let answer = next.call(request).await;
                        Ok(answer.unwrap_or_else(|_| ModelResponse::text("sorry")))
                    })
                }),
            );
            let agent = started(agent).await;
            let request = agent.request("go").limit(limit);
            let run = async {
                if streams { request.stream().finish().await } else { request.run().await }
            };
            let (result, ()) = tokio::join!(run, async {
                sleep(ms(10)).await;
                agent.cancel();
            });
            let error = result.expect_err("the turn did not end well");
            assert_eq!(error.outcome(), outcome, "streams: {streams}");
            assert_eq!(error.report().map(|report| report.outcome), Some(outcome));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_the_model_is_an_error_that_a_wrap_may_recover() {
    let agent = Agent::builder("agent")
        .model(script([Reply::Hang]))
        .model_limit(ms(5))
        .with_lifecycle(hook::wrap_model_call(|_, request, next| {
            Box::pin(async move {
                let answer = next.call(request).await;
                Ok(answer.unwrap_or_else(|_| ModelResponse::text("sorry")))
            })
        }));
    let report = started(agent).await.run("go").await.expect("the wrap recovered");
    assert_eq!(report.output(), "sorry");
}
