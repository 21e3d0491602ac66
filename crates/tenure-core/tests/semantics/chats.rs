//! One chat is one run: its clones are handles of it, not further chats.

use crate::semantics::support::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::agent::Agent;
use tenure_core::chat::{Chat, ChatEnd, Declarations};
use tenure_core::drive::Input;
use tenure_core::hook::{self, AgentLifecycle, Flow};
use tenure_core::state::{StateOwnership, StateViolation};
use tenure_core::{Error, Outcome};
use tokio::time::sleep;

type Patch = [(String, Value)];

fn begins(log: &Log) -> impl AgentLifecycle + use<> {
    let log = log.clone();
    hook::before_chat(move |_| {
        log.add("before_chat");
        Box::pin(async { Ok(Flow::Continue) })
    })
}

fn ends(log: &Log) -> impl AgentLifecycle + use<> {
    let log = log.clone();
    hook::after_chat(move |_, end: &ChatEnd| {
        log.add(format!("after_chat({})", end.outcome));
        Box::pin(async { Ok(()) })
    })
}

async fn chat(log: &Log) -> Chat {
    let builder = Agent::builder("agent").model(script([]));
    let agent = started(builder.with_lifecycle(begins(log)).with_lifecycle(ends(log))).await;
    Chat::new("chat", [agent])
}

#[tokio::test(start_paused = true)]
async fn g1_a_chat_that_is_running_is_not_run_a_second_time() {
    let log = Log::default();
    let chat = chat(&log).await;
    let (other, second_ran) = (chat.clone(), Count::default());
    let (first, second) = tokio::join!(
        chat.run(async |_: &Chat| {
            sleep(secs(1)).await;
            Ok("first")
        }),
        async {
            sleep(ms(10)).await;
            let second = other.run(async |_: &Chat| {
                second_ran.up();
                Ok("second")
            });
            let second = second.await;
            assert_eq!(log.lines(), ["before_chat"], "the refusal ends nobody else's chat");
            second
        }
    );
    assert_eq!((first.value, first.end.outcome), (Some("first"), Outcome::Ok));
    assert_eq!((second.value, second_ran.get()), (None, 0), "the second is refused");
    assert_ne!(second.end.outcome, Outcome::Ok);
    let error = second.end.error.expect("a typed error says why");
    assert!(!error.to_string().is_empty());
    assert_eq!(log.take(), ["before_chat", "after_chat(ok)"], "the first's ends run once");
}

#[tokio::test(start_paused = true)]
async fn g1_a_second_run_that_is_dropped_does_not_end_the_first() {
    let log = Log::default();
    let chat = chat(&log).await;
    let other = chat.clone();
    let (first, ()) = tokio::join!(
        chat.run(async |_: &Chat| {
            sleep(secs(1)).await;
            Ok(())
        }),
        async {
            sleep(ms(10)).await;
            let second = other.run(async |_: &Chat| -> Result<(), tenure_core::Error> {
                std::future::pending().await
            });
            let _ = tokio::time::timeout(ms(10), second).await;
            sleep(ms(10)).await;
            assert_eq!(log.lines(), ["before_chat"]);
        }
    );
    assert_eq!(first.end.outcome, Outcome::Ok);
    assert_eq!(log.take(), ["before_chat", "after_chat(ok)"]);
}

#[tokio::test(start_paused = true)]
async fn chats_beside_each_other_share_id_and_variables_and_end_each_by_itself() {
    let log = Log::default();
    let first = chat(&log).await.with_variable("topic", "tea");
    let beside = first.beside([]).with_variable("guests", 2);
    assert_eq!((beside.id(), beside.variable("topic")), (first.id(), Some("tea".into())));
    assert_eq!(first.variables()["guests"], 2);
    let result = beside.run(async |_: &Chat| Ok(())).await;
    assert_eq!(result.end.outcome, Outcome::Ok);
    assert!(log.lines().is_empty(), "the agents of the other one are not called");
    first.run(async |_: &Chat| Ok(())).await;
    assert_eq!(log.take(), ["before_chat", "after_chat(ok)"]);
}

/// `total` follows from `count`, and `limit` is nobody's to write.
struct Declared;

impl Declarations for Declared {
    fn check(&self, patch: &Patch, _: &BTreeMap<String, Value>) -> Result<(), Error> {
        match patch.iter().find(|(key, _)| key == "limit" || key == "total") {
            Some((key, _)) => {
                let (owner, actor) = (StateOwnership::Orchestrator, StateOwnership::Agent);
                Err(StateViolation { key: key.clone(), owner, actor }.into())
            }
            None => Ok(()),
        }
    }

    fn settle(&self, changed: &[String], variables: &mut BTreeMap<String, Value>) {
        if changed.iter().any(|key| key == "count") {
            let count = variables.get("count").and_then(Value::as_i64).unwrap_or_default();
            variables.insert("total".to_owned(), (count * 2).into());
        }
    }
}

#[tokio::test]
async fn g9_declared_variables_are_written_as_declared_and_a_patch_whole_or_not_at_all() {
    let agent = started(Agent::builder("agent").model(script([]))).await;
    let chat = Chat::declared("chat", Arc::new(Declared), [agent]);
    chat.set_variables([("limit".to_owned(), 3.into()), ("count".to_owned(), 1.into())]);
    assert_eq!((chat.variable("limit"), chat.variable("total")), (Some(3.into()), Some(2.into())));
    let variables = chat.context_variables();
    let patch = [("count".to_owned(), 5.into()), ("limit".to_owned(), 9.into())];
    let error = variables.update(patch).expect_err("the limit is not theirs");
    assert_eq!(error.state_violation().map(|it| &*it.key), Some("limit"));
    assert_eq!(chat.variable("count"), Some(1.into()), "nothing of the patch was written");
    variables.set("count", 5).expect("it is theirs");
    assert_eq!(chat.variable("total"), Some(10.into()), "what follows is there at once");
    variables.set("scratch", "x").expect("what is not declared is scratch");
    let beside = chat.beside([]);
    assert!(beside.context_variables().set("limit", 1).is_err(), "the rules come along");
}

#[tokio::test]
async fn what_others_said_comes_before_the_text_of_the_turn() {
    let agent = started(Agent::builder("agent").model(script([]))).await;
    let input = Input::text("and you?").after(vec!["a: one".into(), "b: two".into()]);
    let report = agent.run(input).await.expect("it answers");
    let said: Vec<_> = report.history().iter().take(3).map(|it| it.text().to_owned()).collect();
    assert_eq!(said, ["a: one", "b: two", "and you?"]);
}

#[tokio::test]
async fn a_chat_whose_turns_are_used_up_ends_as_such() {
    let log = Log::default();
    let result = chat(&log).await.run(async |_: &Chat| Err::<(), _>(Error::max_turns(3))).await;
    assert_eq!(result.end.outcome, Outcome::MaxTurns);
    assert_eq!(log.take(), ["before_chat", "after_chat(max_turns)"]);
    let denied = Error::orchestration("agent `a` could not go on").because(Error::denied("no"));
    assert!(denied.is_denied(), "what led to it decides what it is");
}
