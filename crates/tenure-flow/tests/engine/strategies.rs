//! What the failure of a turn means, as far as the chat is concerned.

use crate::engine::support::{Log, agent, said};
use std::time::Duration;
use tenure_core::model::{ModelError, ModelErrorKind};
use tenure_flow::contract::ErrorStrategy;
use tenure_flow::route::RoundRobin;
use tenure_flow::{ChatStatus, Flow};
use tenure_models::{Failing, Passthrough, Scripted};
use tokio::time::Instant;

fn overloaded() -> ModelError {
    ModelError::new(ModelErrorKind::Overloaded, "later")
}

#[tokio::test(start_paused = true)]
async fn a_repetition_is_told_the_same_and_remembers_nothing_of_the_failure() {
    let model = Scripted::from_fn(|request, call| match call {
        0 | 1 => Err(overloaded()),
        _ => {
            let heard: Vec<_> = request.messages.iter().map(|it| it.text().to_owned()).collect();
            Ok(tenure_core::model::ModelResponse::text(format!("{heard:?}")))
        }
    });
    let log = Log::new();
    let flow = Flow::builder("one").agent(log.agent("a", model)).events(&log.bus);
    let retry = ErrorStrategy::Retry { attempts: 3, backoff: Duration::from_secs(1) };
    let began = Instant::now();
    let report =
        flow.error_strategy(retry).max_turns(3).build().expect("a flow").run("hello").await;
    assert_eq!(report.status, ChatStatus::MaxTurns);
    assert_eq!(said(&report), [("user", "hello"), ("a", "[\"hello\"]")]);
    assert_eq!((report.metrics.retries, report.metrics.failed_steps), (2, 2));
    assert_eq!(began.elapsed(), Duration::from_secs(3), "one second, and then two");
    // Each of them is a turn, and is announced as one.
    assert_eq!(log.announced(&["select_speaker"]).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn continue_leaves_out_and_fallback_steps_in() {
    for (strategy, status, words) in [
        (ErrorStrategy::FailFast, ChatStatus::Failed, vec![("user", "go")]),
        (ErrorStrategy::Continue, ChatStatus::MaxTurns, vec![("user", "go"), ("b", "go")]),
        (ErrorStrategy::Fallback, ChatStatus::MaxTurns, vec![("user", "go"), ("b", "go")]),
    ] {
        let flow = Flow::builder("two").agent(agent("a", Failing::new(ModelErrorKind::Auth)));
        let flow = flow.agent(agent("b", Passthrough::new())).router(RoundRobin);
        let report =
            flow.error_strategy(strategy).max_turns(2).build().expect("a flow").run("go").await;
        assert_eq!(report.status, status, "{strategy}: {:?}", report.error);
        assert_eq!(said(&report), words, "{strategy}");
        let error = report.error.unwrap().to_string();
        if status == ChatStatus::Failed {
            assert!(error.contains("agent `a`"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_turn_that_was_refused_ends_the_chat_whatever_the_strategy() {
    let retry = ErrorStrategy::Retry { attempts: 3, backoff: Duration::ZERO };
    for strategy in [ErrorStrategy::Continue, ErrorStrategy::Fallback, retry] {
        let denies = tenure_core::hook::before_agent(|_, _| {
            Box::pin(async { Err(tenure_core::Error::denied("not in this house").into()) })
        });
        let own = tenure_core::agent::Agent::builder("a").model(Passthrough::new());
        let own = own.with_lifecycle(denies).blueprint().expect("it can be built");
        let flow = Flow::builder("one").agent(own).agent(agent("b", Passthrough::new()));
        let flow = flow.error_strategy(strategy).max_turns(4).build().expect("a flow");
        let report = flow.run("go").await;
        assert_eq!((report.status, report.turns), (ChatStatus::Failed, 1), "{strategy:?}");
        assert_eq!(report.outcome, tenure_core::Outcome::Denied, "{strategy:?}");
    }
}
