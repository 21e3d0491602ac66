//! One chat is one run: its clones are handles of it, not further chats.

use crate::support::*;
use tenure_core::Outcome;
use tenure_core::agent::Agent;
use tenure_core::chat::{Chat, ChatEnd};
use tenure_core::hook::{self, AgentLifecycle, Flow};
use tokio::time::sleep;

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
