//! Several critics: votes, consensus, quorum, events.

use crate::judge::support::*;
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::model::{ModelErrorKind, ModelResponse};
use tenure_hooks::critic::{Consensus, Critic, Judge, OnFailure};
use tenure_models::{Failing, Hanging, Scripted, Slow};
use tenure_testkit::Recorder;

/// A critic that says the same whenever it is asked.
fn always(name: &str, verdict: impl Into<String>) -> Judge {
    let verdict = verdict.into();
    Judge::new(name, Scripted::from_fn(move |_, _| Ok(ModelResponse::text(verdict.clone()))))
}

async fn judged(critic: Critic) -> Result<String, String> {
    let creator = Scripted::from_fn(|_, call| Ok(ModelResponse::text(format!("answer {call}"))));
    let agent = Agent::builder("a").model(creator).with_lifecycle(critic.rounds(0));
    ask(agent, "hello").await.map(|it| it.output().to_owned()).map_err(|it| it.to_string())
}

#[tokio::test]
async fn a_majority_decides_and_a_tie_rejects() {
    let panel = |verdicts: &[&str]| {
        let judges = verdicts.iter().enumerate();
        Critic::panel(judges.map(|(at, verdict)| always(&format!("c{at}"), *verdict)))
    };
    let no = reject("bad");
    assert_eq!(judged(panel(&[APPROVE, APPROVE, &no])).await, Ok("answer 0".to_owned()));
    let refused = judged(panel(&[APPROVE, &no])).await.unwrap_err();
    assert!(refused.contains("Critic rejected: c1: bad"), "{refused}");
    let unanimous = panel(&[APPROVE, APPROVE, &no]).consensus(Consensus::Unanimous);
    assert!(judged(unanimous).await.is_err());
}

#[tokio::test]
async fn a_weighty_critic_can_outvote_two() {
    let panel = |weight| {
        Critic::panel([
            always("chief", APPROVE).weight(weight),
            always("one", reject("bad")),
            always("two", reject("worse")),
        ])
        .consensus(Consensus::Weighted(0.5))
    };
    assert!(judged(panel(3.0)).await.is_ok());
    assert!(judged(panel(2.0)).await.is_err(), "a tie of weights rejects");
}

#[tokio::test]
async fn a_text_of_a_critic_counts_if_the_others_agree() {
    let panel = |third: &str| {
        let mends = always("editor", modify("mended"));
        Critic::panel([mends, always("two", APPROVE), always("three", third)])
    };
    assert_eq!(judged(panel(APPROVE)).await, Ok("mended".to_owned()));
    assert_eq!(judged(panel(&reject("no"))).await, Ok("mended".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn critics_are_asked_at_the_same_time() {
    let slow = |name: &str| {
        let wait = Duration::from_secs(10);
        Judge::new(name, Slow::of(Scripted::new([APPROVE])).by(wait))
    };
    let begun = tokio::time::Instant::now();
    assert!(judged(Critic::panel([slow("a"), slow("b"), slow("c")])).await.is_ok());
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_critic_that_fails_has_no_vote_and_too_few_votes_deny() {
    let fails = || Judge::new("broken", Failing::new(ModelErrorKind::Auth).saying("no key"));
    let hangs = || Judge::new("asleep", Hanging::new());
    let panics = || Judge::new("wild", Scripted::empty().panics("boom"));
    let two = || [always("one", APPROVE), always("two", APPROVE)];
    for broken in [fails(), hangs(), panics()] {
        let panel = Critic::panel(two().into_iter().chain([broken]));
        assert!(judged(panel.clone()).await.is_ok(), "two of three are enough");
        let refused = judged(panel.clone().quorum(3)).await.unwrap_err();
        assert!(refused.contains("2 of 3 critics gave a verdict, and 3 have to"), "{refused}");
        assert!(judged(panel.quorum(3).on_failure(OnFailure::Continue)).await.is_ok());
    }
    let refused = judged(Critic::panel([always("one", APPROVE), fails(), hangs()])).await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("`broken`: no key") && refused.contains("within 40s"), "{refused}");
}

#[tokio::test]
async fn to_be_unanimous_all_have_to_be_there() {
    let panel = |third: Judge| {
        Critic::panel([always("one", APPROVE), always("two", APPROVE), third])
            .consensus(Consensus::Unanimous)
    };
    assert!(judged(panel(always("three", APPROVE))).await.is_ok());
    let broken = || Judge::new("three", Failing::new(ModelErrorKind::Auth));
    let refused = judged(panel(broken())).await.unwrap_err();
    assert!(refused.contains("2 of 3 critics gave a verdict, and 3 have to"), "{refused}");
    assert!(judged(panel(broken()).quorum(2)).await.is_ok(), "unless it is said otherwise");
}

#[tokio::test]
async fn every_vote_is_an_event() {
    let (bus, recorder) = Recorder::with_bus();
    let long = "x".repeat(2_000);
    let panel = Critic::panel([
        Judge::new("strict", Scripted::new([scored(&long, 3), APPROVE.to_owned()])),
        Judge::new("mild", Scripted::new([APPROVE, APPROVE])),
        Judge::new("broken", Failing::new(ModelErrorKind::Auth)),
    ]);
    let agent = Agent::builder("a")
        .model(Scripted::new(["one", "two"]))
        .events(&bus)
        .with_lifecycle(panel.consensus(Consensus::Unanimous).quorum(2));
    assert_eq!(ask(agent, "hello").await.unwrap().output(), "two");
    let votes = recorder.announced("critic.voted");
    let told: Vec<_> =
        votes.iter().map(|it| json!([it["critic"], it["verdict"], it["round"]])).collect();
    assert_eq!(
        told,
        [
            json!(["strict", "reject", 1]),
            json!(["mild", "approve", 1]),
            json!(["strict", "approve", 2]),
            json!(["mild", "approve", 2]),
        ]
    );
    assert_eq!(votes[0]["score"], json!(3.0));
    let critique = votes[0]["critique"].as_str().unwrap();
    assert_eq!(critique.chars().count(), 501, "bounded");
    assert_eq!(votes[1]["critique"], Value::Null);
    let failed = recorder.announced("critic.failed");
    assert_eq!(failed.len(), 2);
    assert_eq!(failed[1]["critic"], "broken");
}
