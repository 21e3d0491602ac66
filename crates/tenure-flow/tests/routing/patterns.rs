//! Round robin and chance.

use crate::routing::support::*;
use std::collections::BTreeSet;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_flow::route::{Random, RoundRobin};
use tenure_flow::{ChatReport, ChatStatus, FlowBuilder, StartupMode};

fn answers(text: &'static str) -> impl Fn(&PendingAsk) -> Option<Answer> {
    move |_| Some(Answer::Respond(text.to_owned()))
}

#[tokio::test]
async fn round_robin_begins_with_the_initial_agent_and_goes_round() {
    let flow = cast(&["a", "b", "c"]).router(RoundRobin).initial_agent("b").max_turns(4);
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::MaxTurns);
    assert_eq!(chosen(&report)[..4], ["b", "c", "a", "b"]);
    assert_eq!(report.routing[0].fallback.as_deref(), Some("c"));
}

#[tokio::test]
async fn a_person_is_the_last_of_each_round() {
    let flow = cast(&["a", "b", "c"]).router(RoundRobin).initial_agent("b").max_turns(6);
    let flow = flow.user(true).on_ask(answers("well")).build().expect("a flow");
    let report = flow.run("go").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    assert_eq!(chosen(&report)[..8], ["b", "c", "a", "user", "b", "c", "a", "user"]);
    assert_eq!(reason(&report, 3), "the round is over, round robin");
}

#[tokio::test]
async fn where_nobody_is_there_nobody_is_part_of_the_round() {
    let own = |names: &[&str]| {
        let flow = cast(names).user(true).on_ask(answers("well")).max_turns(6);
        flow.startup_mode(StartupMode::BackendOnly)
    };
    let flow = own(&["a", "b"]).router(RoundRobin).build().expect("a flow");
    let report = flow.run("go").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    assert_eq!(chosen(&report)[..6], ["a", "b", "a", "b", "a", "b"]);
    for seed in 0..5 {
        let report = random(own(&["a", "b"]), seed).await;
        assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.routing);
        assert!(!chosen(&report).contains(&"user"));
    }
}

async fn random(flow: FlowBuilder, seed: u64) -> ChatReport {
    let flow = flow.router(Random).build().expect("a flow");
    flow.chat().message("go").seed(seed).run().await
}

#[tokio::test]
async fn chance_is_the_same_for_the_same_seed_and_another_for_another() {
    let names = ["a", "b", "c", "d"];
    let run = async |seed| {
        let report = random(cast(&names).max_turns(20), seed).await;
        chosen(&report).iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()
    };
    let first = run(7).await;
    assert_eq!(first, run(7).await);
    let mut all = BTreeSet::from([first]);
    for seed in 8..16 {
        all.insert(run(seed).await);
    }
    assert_eq!(all.len(), 9, "nine seeds, nine orders");
}

#[tokio::test]
async fn chance_lets_everybody_speak_and_nobody_twice_in_a_row() {
    let flow = cast(&["a", "b", "c"]).user(true).on_ask(answers("well")).max_turns(60);
    let report = random(flow, 1).await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    let chosen = chosen(&report);
    for pair in chosen.windows(2) {
        assert_ne!(pair[0], pair[1], "{chosen:?}");
    }
    for name in ["a", "b", "c", "user"] {
        let times = chosen.iter().filter(|it| **it == name).count();
        assert!(times > 8, "{name} {times}: {chosen:?}");
    }
}

#[tokio::test]
async fn chance_begins_with_the_initial_agent_and_knows_how_to_be_alone() {
    for seed in 0..5 {
        let report = random(cast(&["a", "b", "c"]).initial_agent("c").max_turns(2), seed).await;
        assert_eq!(chosen(&report)[0], "c");
        assert_eq!(reason(&report, 0), "it is the initial agent");
    }
    let report = random(cast(&["a"]).max_turns(3), 0).await;
    assert_eq!(chosen(&report), ["a", "a", "a", "a"]);
    assert_eq!(reason(&report, 1), "there is nobody else, at random");
}

#[tokio::test]
async fn chance_is_drawn_anew_after_the_person() {
    let flow = cast(&["a", "b", "c"]).user(true).on_ask(answers("well")).max_turns(60);
    let report = random(flow, 1).await;
    let chosen = chosen(&report);
    let pairs = chosen.windows(2).filter(|pair| pair[0] == "user");
    let after: BTreeSet<_> = pairs.map(|pair| pair[1]).collect();
    // The person's turn is not counted; the draw that led to it must not be made once again.
    assert_eq!(after, BTreeSet::from(["a", "b", "c"]), "{chosen:?}");
}
