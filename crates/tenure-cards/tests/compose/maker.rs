//! One is asked again and again, and the answers vote.

use crate::compose::support::*;
use std::num::NonZeroUsize;
use tenure_cards::compose::{Composition, MatchStrategy};

fn maker(k: usize, max_samples: usize, match_strategy: MatchStrategy) -> Composition {
    let some = |n| NonZeroUsize::new(n).expect("more than zero");
    Composition::Maker {
        worker: name("w"),
        k: some(k),
        max_samples: some(max_samples),
        match_strategy,
        red_flag_max_length: Some(20),
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_that_leads_by_k_wins() {
    for (votes, winner, samples) in [
        (vec!["x", "x", "x"], "x", 3),
        (vec!["x", "y", "x", "x", "x"], "x", 5),
        (vec!["x", "y", "y", "x", "x", "x", "x"], "x", 7),
    ] {
        let asked = Asked::default();
        let said: Vec<_> = votes.iter().map(|vote| (*vote).to_owned()).collect();
        let worker = member("w", &asked, move |_, call| Ok(said[call].clone()));
        let stage = staged(maker(3, 50, MatchStrategy::Exact), &[worker]).await;
        assert_eq!(stage.answer("go").await, winner, "{votes:?}");
        assert_eq!(asked.all().len(), samples, "no more are asked than can decide: {votes:?}");
        stage.over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_compared_as_the_strategy_says_and_given_as_they_came() {
    for (strategy, votes, winner) in [
        (MatchStrategy::Exact, ["a", "A", "a"], "a"),
        (MatchStrategy::Normalized, ["Yes  Sir", "yes sir", "no"], "Yes  Sir"),
        (
            MatchStrategy::Structured,
            [r#"{"a":1,"b":2}"#, r#"{"b":2, "a":1}"#, "{}"],
            r#"{"a":1,"b":2}"#,
        ),
    ] {
        let asked = Asked::default();
        let worker = saying("w", &asked, votes);
        let stage = staged(maker(2, 10, strategy), &[worker]).await;
        assert_eq!(stage.answer("go").await, winner, "{strategy:?}");
        stage.over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_too_long_and_samples_that_fail_are_not_counted() {
    let asked = Asked::default();
    let worker = member("w", &asked, |_, call| match call {
        0 => Ok("far too long to be a good answer".to_owned()),
        1 => Err("no ink".to_owned()),
        _ => Ok("ok".to_owned()),
    });
    let stage = staged(maker(2, 10, MatchStrategy::Exact), &[worker]).await;
    assert_eq!(stage.answer("go").await, "ok");
    assert_eq!(asked.all().len(), 4);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_winner_the_error_says_the_tally() {
    let asked = Asked::default();
    let worker = member("w", &asked, |_, call| match call {
        0 => Err("no ink".to_owned()),
        1 => Ok("x".repeat(30)),
        odd if odd % 2 == 1 => Ok("x".to_owned()),
        _ => Ok("y".to_owned()),
    });
    let stage = staged(maker(3, 7, MatchStrategy::Exact), &[worker]).await;
    assert_eq!(
        stage.failure("go").await,
        "no answer of agent `w` leads by 3 after 7 samples: 3 votes for `y`, 2 votes for `x`, \
         1 too long, 1 failed, the last with: no ink"
    );
    assert_eq!(asked.all().len(), 7);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn samples_do_not_see_one_another() {
    use tenure_core::agent::Agent;
    use tenure_core::model::ModelResponse;
    use tenure_models::Scripted;
    let counting =
        Scripted::from_fn(|request, _| Ok(ModelResponse::text(request.messages.len().to_string())));
    let worker = built(Agent::builder("w").model(counting));
    let stage = staged(maker(3, 9, MatchStrategy::Exact), &[worker]).await;
    assert_eq!([stage.answer("go").await, stage.answer("go").await], ["1", "1"]);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_lead_of_one_less_than_k_is_no_answer() {
    for k in [2, 3, 4] {
        let asked = Asked::default();
        // One vote for another answer, so that k votes are a lead of k - 1.
        let worker =
            member("w", &asked, |_, call| Ok(if call == 0 { "y" } else { "x" }.to_owned()));
        let stage = staged(maker(k, k + 1, MatchStrategy::Exact), &[worker]).await;
        let failure = stage.failure("go").await;
        assert!(failure.starts_with(&format!("no answer of agent `w` leads by {k} ")), "{failure}");
        assert_eq!(asked.all().len(), k + 1);
        stage.over().await;
    }
}
