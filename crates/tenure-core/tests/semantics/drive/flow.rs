//! Steps, usage, structured output, finishing, going on, and edits that are kept.

use crate::semantics::support::*;
use serde::Deserialize;
use tenure_core::agent::Agent;
use tenure_core::hook::{self, After, Flow, Point};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{ModelErrorKind, ModelResponse, Usage};
use tenure_core::phase::{AgentState, Phase};
use tenure_core::{CancelCause, CancelToken, Error, ErrorKind, ExitReason, Outcome};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_turn_that_comes_to_no_end_stops_at_max_steps() {
    let log = Log::default();
    let model = script(std::iter::repeat_n(call(&["act"]), 20));
    let agent = started(
        Agent::builder("agent")
            .model(model.clone())
            .tool(ok_tool("act"))
            .max_steps(3)
            .with_lifecycle(probe_at("A", &log, Point::AfterAgent)),
    )
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::MaxSteps, Outcome::MaxSteps));
    let report = error.report().unwrap();
    assert_eq!((report.steps, model.calls(), report.usage), (3, 3, usage(3)));
    assert_eq!(report.output(), "");
    assert_eq!(log.take(), ["A.after_agent(max_steps)"]);
    assert_eq!(agent.state(), AgentState::Ready);
    assert_valid(&agent);
}

fn usage(calls: u64) -> Usage {
    let mut usage = Usage::new(10 * calls, calls);
    usage.calls = calls;
    usage
}

#[tokio::test(start_paused = true)]
async fn usage_counts_every_call_that_answered_also_those_a_wrap_threw_away() {
    for watched in [false, true] {
        let bus = tenure_core::event::EventBus::new();
        let _subscriber = watched.then(|| bus.subscribe(1));
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["act"])]))
                .tool(ok_tool("act"))
                .events(&bus)
                .with_lifecycle(hook::wrap_model_call(|_, request, next| {
                    Box::pin(async move {
                        next.call(request).await?;
                        Ok(next.call(request).await?)
                    })
                })),
        )
        .await;
        let report = agent.run("go").await.unwrap();
        assert_eq!(report.usage, usage(2 * report.steps as u64));
        assert_eq!(agent.usage(), report.usage);
    }
}

#[tokio::test(start_paused = true)]
async fn usage_of_an_answer_that_a_wrap_got_elsewhere_counts_too() {
    let fallback = hook::wrap_model_call(|_, request, next| {
        Box::pin(async move {
            match next.call(request).await {
                Ok(response) => Ok(response),
                Err(_) => Ok(ModelResponse::text("plan B").with_usage(Usage::new(7, 3))),
            }
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([Reply::Fail(ModelErrorKind::Overloaded)]))
            .with_lifecycle(fallback),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.output(), report.usage), ("plan B", Usage::new(7, 3)));
}

#[derive(Debug, Deserialize, PartialEq)]
struct City {
    name: String,
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_the_wrong_form_is_shown_to_the_model() {
    let model = script([say("Paris, I think"), say("```json\n{\"name\":\"Paris\"}\n```")]);
    let agent = started(Agent::builder("agent").model(model.clone())).await;
    let (city, report) = agent.request("capital?").run_as::<City>().await.unwrap();
    assert_eq!(city, City { name: "Paris".to_owned() });
    assert_eq!(report.steps, 2);
    let shown = model.seen()[1].last().unwrap().text().to_owned();
    assert!(shown.contains("could not be read"), "{shown}");
    assert_valid(&agent);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stays_wrong_fails_the_turn() {
    let model = script(std::iter::repeat_n(say("no json"), 9));
    let agent = started(Agent::builder("agent").model(model.clone())).await;
    let error = agent.request("capital?").run_as::<City>().await.unwrap_err();
    assert_eq!((error.kind(), model.calls()), (ErrorKind::Output, 3));
    assert_eq!(agent.state(), AgentState::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_recoverable_error_leaves_the_agent_ready_and_a_fatal_one_ends_it() {
    let log = Log::default();
    let model = script([Reply::Fail(ModelErrorKind::RateLimited), Reply::Panic, Reply::Fatal]);
    let agent =
        started(Agent::builder("agent").model(model).with_lifecycle(probe("A", &log))).await;
    let error = agent.run("one").await.unwrap_err();
    assert!(error.is_retryable() && !error.is_fatal());
    assert_eq!(error.model_error().map(|it| it.kind()), Some(ModelErrorKind::RateLimited));
    assert_eq!(agent.state(), AgentState::Ready);
    let error = agent.run("two").await.unwrap_err();
    assert_eq!((error.outcome(), agent.state()), (Outcome::Panicked, AgentState::Ready));
    log.take();
    let error = agent.run("three").await.unwrap_err();
    assert!(error.is_fatal() && !error.is_retryable());
    assert_eq!((agent.phase(), agent.exit_reason()), (Phase::Terminated, Some(ExitReason::Fatal)));
    let lines = log.take();
    assert_eq!(lines[lines.len() - 2..], ["A.after_agent(failed)", "A.on_shutdown(fatal)"]);
}

#[tokio::test(start_paused = true)]
async fn a_fatal_hook_error_ends_the_agent_even_where_failures_are_passed_over() {
    for policy in [hook::Policy::Abort, hook::Policy::Deny, hook::Policy::Continue] {
        for point in [Point::BeforeAgent, Point::WrapModelCall] {
            let fatal = || hook::HookError::new("out of disk").fatal();
            let registration = if point == Point::BeforeAgent {
                hook::hook(hook::before_agent(move |_, _| {
                    Box::pin(async move { Err::<Flow, _>(fatal()) })
                }))
            } else {
                hook::hook(hook::wrap_model_call(move |_, _, _| {
                    Box::pin(async move { Err(fatal()) })
                }))
            };
            let agent = started(
                Agent::builder("agent")
                    .model(script([]))
                    .with_lifecycle(registration.policy(policy)),
            )
            .await;
            let _ = agent.run("go").await;
            assert_eq!(agent.exit_reason(), Some(ExitReason::Fatal), "{policy:?} {point}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn before_model_may_finish_the_turn_and_keep_its_edit() {
    let model = script([]);
    let agent = started(Agent::builder("agent").model(model.clone()).with_lifecycle(
        hook::before_model(|_, request| {
            request.messages.edit().insert(0, Message::system("summary"));
            request.persist();
            Box::pin(async { Ok(Flow::Finish("from the cache".into())) })
        }),
    ))
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.output(), model.calls()), ("from the cache", 0));
    let texts: Vec<_> = agent.history().iter().map(|it| it.text().to_owned()).collect();
    assert_eq!(texts, ["summary", "go", "from the cache"]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_counts_for_one_call_unless_it_is_kept() {
    for keeps in [false, true] {
        let model = script([]);
        let agent = started(Agent::builder("agent").model(model.clone()).with_lifecycle(
            hook::before_model(move |_, request| {
                let messages = request.messages.edit();
                let last = messages.pop();
                messages.clear();
                messages.push(Message::user("shortened"));
                messages.extend(last);
                if keeps {
                    request.persist();
                }
                Box::pin(async { Ok(Flow::Continue) })
            }),
        ))
        .await;
        agent.run("one").await.unwrap();
        agent.run("two").await.unwrap();
        let sent: Vec<_> = model.seen()[1].iter().map(|it| it.text().to_owned()).collect();
        assert_eq!(sent, ["shortened", "two"]);
        let kept: Vec<_> = agent.history().iter().map(|it| it.text().to_owned()).collect();
        if keeps {
            assert_eq!(kept, ["shortened", "two", "done"]);
        } else {
            assert_eq!(kept, ["one", "done", "two", "done"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g8_an_edit_that_breaks_the_history_is_refused() {
    let model = script([]);
    let agent = started(Agent::builder("agent").model(model.clone()).with_lifecycle(
        hook::before_model(|_, request| {
            request.messages.edit().insert(
                0,
                Message::Assistant {
                    content: "".into(),
                    calls: vec![ToolCall::new("lost", "act", "{}")],
                },
            );
            request.persist();
            Box::pin(async { Ok(Flow::Continue) })
        }),
    ))
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!((error.kind(), model.calls()), (ErrorKind::History, 0));
    assert!(error.to_string().contains("`lost`"), "{error}");
    assert_valid(&agent);
}

#[tokio::test(start_paused = true)]
async fn an_end_may_go_on_once_and_then_ends_for_good() {
    let log = Log::default();
    let model = script([say("first"), say("second")]);
    let reviewer_log = log.clone();
    let agent = started(
        Agent::builder("agent")
            .model(model.clone())
            .with_lifecycle(probe_at("outer", &log, Point::AfterAgent))
            .with_lifecycle(hook::after_agent(move |_, end| {
                reviewer_log.add(format!("reviewer:{}", end.output().unwrap_or_default()));
                Box::pin(async { Ok(After::Continue("check that again".into())) })
            }))
            .with_lifecycle(probe_at("inner", &log, Point::AfterAgent)),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.output(), report.steps), ("second", 2));
    assert_eq!(
        log.take(),
        ["inner.after_agent(ok)", "reviewer:first", "reviewer:second", "outer.after_agent(ok)"]
    );
    let texts: Vec<_> = agent.history().iter().map(|it| it.text().to_owned()).collect();
    assert_eq!(texts, ["go", "first", "check that again", "second"]);
}

#[tokio::test(start_paused = true)]
async fn an_end_may_not_go_on_with_a_turn_that_failed_nor_change_its_output() {
    let agent = started(
        Agent::builder("agent")
            .model(script([Reply::Fail(ModelErrorKind::Other), say("second")]))
            .with_lifecycle(hook::after_agent(|_, end| {
                assert!(end.content_mut().is_none() && end.output().is_none());
                assert!(end.error().is_some());
                Box::pin(async { Ok(After::Continue("go on".into())) })
            })),
    )
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    assert_eq!(error.report().unwrap().failures, [], "the hook's assertions hold");
}

#[tokio::test(start_paused = true)]
async fn g4_a_turn_over_its_limit_is_timed_out_wherever_it_is() {
    let hang = || Box::pin(std::future::pending::<Result<Flow, hook::HookError>>());
    let stuck_model = || Agent::builder("agent").model(script([Reply::Hang]));
    let stuck_tool = || {
        Agent::builder("agent")
            .model(script([call(&["slow", "slow"])]))
            .tool(slow_tool("slow", secs(3600)))
    };
    let stuck_hook = move || {
        Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(hook::before_agent(move |_, _| hang()))
    };
    for per_request in [false, true] {
        for builder in [stuck_model(), stuck_tool(), stuck_hook()] {
            let log = Log::default();
            let mut builder = builder.with_lifecycle(probe_at("A", &log, Point::AfterAgent));
            if !per_request {
                builder = builder.turn_limit(secs(2));
            }
            let agent = started(builder).await;
            let mut request = agent.request("go");
            if per_request {
                request = request.limit(secs(2));
            }
            let begun = Instant::now();
            let error = request.run().await.unwrap_err();
            assert_eq!(error.outcome(), Outcome::TimedOut);
            assert_eq!(begun.elapsed(), secs(2));
            let ends = log.take();
            assert!(ends.is_empty() || ends == ["A.after_agent(timed_out)"], "{ends:?}");
            assert_valid(&agent);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g4_a_wrap_cannot_carry_a_turn_past_its_limit() {
    let stubborn = hook::wrap_model_call(|_, request, next| {
        Box::pin(async move {
            let result = next.call(request).await;
            Ok(result.unwrap_or_else(|_| ModelResponse::calls([ToolCall::new("c", "act", "{}")])))
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([Reply::Hang]))
            .tool(ok_tool("act"))
            .turn_limit(secs(1))
            .with_lifecycle(stubborn),
    )
    .await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::TimedOut);
    assert_valid(&agent);
}

#[tokio::test(start_paused = true)]
async fn a_model_over_its_limit_fails_the_turn_as_timed_out() {
    let agent =
        started(Agent::builder("agent").model(script([Reply::Hang])).model_limit(ms(30))).await;
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::TimedOut);
    assert_eq!(agent.state(), AgentState::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_token_cancels_the_turns_it_was_given_to() {
    let token = CancelToken::new();
    let agent = started(Agent::builder("agent").model(script([Reply::Hang]))).await;
    let (result, ()) = tokio::join!(agent.request("go").cancel_on(&token).run(), async {
        tokio::time::sleep(ms(5)).await;
        token.cancel();
    });
    assert!(result.unwrap_err().is_cancelled());
    let error: Error = agent.request("again").cancel_on(&token).run().await.unwrap_err();
    assert!(error.is_cancelled(), "a token that is cancelled stays so");
    assert_eq!(agent.state(), AgentState::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_expires_times_out_the_turns_it_was_given_to() {
    let (log, token) = (Log::default(), CancelToken::new());
    let agent = Agent::builder("agent").model(script([Reply::Hang, Reply::Hang]));
    let agent = started(agent.with_lifecycle(probe_at("A", &log, Point::AfterAgent))).await;
    // By way of a child: what is begun for somebody ends with them.
    let child = token.child();
    let (result, ()) = tokio::join!(agent.request("go").cancel_on(&child).run(), async {
        tokio::time::sleep(ms(5)).await;
        token.cancel_for(CancelCause::TimeIsUp);
    });
    assert_eq!(result.unwrap_err().outcome(), Outcome::TimedOut);
    assert_eq!(child.cause(), Some(CancelCause::TimeIsUp));
    assert!(child.is_cancelled());
    assert_eq!(log.take(), ["A.after_agent(timed_out)"]);
    let again = CancelToken::new();
    again.cancel();
    again.cancel_for(CancelCause::TimeIsUp);
    let error = agent.request("again").cancel_on(&again).run().await.unwrap_err();
    assert!(error.is_cancelled(), "it was cancelled before its time was up");
    assert_eq!(agent.state(), AgentState::Ready);
}
