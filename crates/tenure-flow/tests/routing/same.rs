//! The same script and the same seed give the same log.

use crate::routing::support::*;
use serde_json::json;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_flow::Flow;
use tenure_flow::route::{Pattern, Routing, Selector};
use tenure_models::Scripted;
use tenure_testkit::Recorder;

/// Everything that a chat says on its bus, without times and ids, phases included.
async fn run(pattern: Pattern, seed: u64) -> String {
    let (bus, recorder) = Recorder::with_bus();
    let picks = ["b", "nonsense", "d", "a", "user", "c", "c", "b", "a", "terminate"];
    let flow = ["a", "b", "c", "d"].iter().fold(Flow::builder("stage"), |flow, name| {
        let patches = [json!({ "n": 1 }), json!({ "n": 2 }), json!({ "n": 3, "name": name })];
        flow.agent(built(speaker(name).with_lifecycle(sets(patches)).events(&bus)))
    });
    let routing = Routing::new(pattern)
        .selector(Selector::new(SELECTOR))
        .handoffs([
            when("a", "b", "${n} < 2"),
            when("a", "user", "${n} == 2"),
            after("a", "terminate"),
            after("b", "c"),
            before("c", "d", "${n} > 1"),
            when("d", "c", "${missing}"),
            after("d", "a"),
            after("c", "a"),
            after("user", "a"),
        ])
        .reply_limit("d", 2);
    let flow = flow
        .helper(built(Selector::agent(SELECTOR).model(Scripted::new(picks)).events(&bus)))
        .router(routing.router().expect("a router"))
        .user(true)
        .on_ask(|_: &PendingAsk| Some(Answer::Respond("well".to_owned())))
        .max_turns(12)
        .events(&bus)
        .build()
        .expect("a flow");
    flow.chat().id("chat").message("go").seed(seed).run().await;
    let heard = recorder.events();
    assert!(heard.iter().filter(|it| it.name() == "select_speaker").count() > 4);
    heard.iter().map(|event| line(event) + "\n").collect()
}

#[tokio::test]
async fn the_same_script_and_seed_give_the_same_event_log() {
    for pattern in Pattern::ALL {
        let first = run(pattern, 42).await;
        for _ in 0..3 {
            assert_eq!(first, run(pattern, 42).await, "{pattern}");
        }
    }
}

#[tokio::test]
async fn another_seed_gives_another_log_where_chance_decides_and_nowhere_else() {
    assert_ne!(run(Pattern::Random, 1).await, run(Pattern::Random, 2).await);
    for pattern in [Pattern::Default, Pattern::Auto, Pattern::RoundRobin] {
        assert_eq!(run(pattern, 1).await, run(pattern, 2).await, "{pattern}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_chats_at_once_give_the_log_of_one() {
    let alone = run(Pattern::Random, 9).await;
    let all = futures_util::future::join_all((0..16).map(|_| run(Pattern::Random, 9))).await;
    assert!(all.iter().all(|log| *log == alone));
}
