//! One writes, another judges.

use crate::compose::support::*;
use tenure_cards::compose::{Composition, Member, Rating};

fn evaluator(min_rating: Rating, max_refinements: usize) -> Composition {
    Composition::Evaluator {
        generator: name("writer"),
        evaluator: name("judge"),
        min_rating,
        max_refinements,
        refinement_instruction: Some(name("Shorter, please.")),
    }
}

fn drafts(asked: &Asked) -> Member {
    member("writer", asked, |_, call| Ok(format!("draft {}", call + 1)))
}

#[tokio::test(start_paused = true)]
async fn it_stops_at_the_first_answer_that_is_good_enough() {
    let asked = Asked::default();
    let judge = saying(
        "judge",
        &asked,
        [r#"{"rating": "POOR", "feedback": "too long", "focus_areas": ["verbs"]}"#, "GOOD"],
    );
    let stage = staged(evaluator(Rating::Good, 5), &[drafts(&asked), judge]).await;
    assert_eq!(stage.answer("a poem").await, "draft 2");
    assert_eq!(asked.who(), ["writer", "judge", "writer", "judge"]);
    let second = &asked.of("writer")[1];
    for part in ["Shorter, please.", "a poem", "draft 1", "rating='POOR'", "too long", "verbs"] {
        assert!(second.contains(part), "{part} is missing in {second}");
    }
    let judged = &asked.of("judge")[0];
    assert!(judged.contains("a poem") && judged.contains("draft 1"), "{judged}");
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn after_the_last_refinement_the_best_answer_counts_and_the_latest_of_equals() {
    for (ratings, best) in
        [(["POOR", "FAIR", "POOR"], "draft 2"), (["FAIR", "POOR", "FAIR"], "draft 3")]
    {
        let asked = Asked::default();
        let judge = saying("judge", &asked, ratings);
        let stage = staged(evaluator(Rating::Good, 2), &[drafts(&asked), judge]).await;
        assert_eq!(stage.answer("go").await, best, "{ratings:?}");
        assert_eq!(asked.of("writer").len(), 3, "one answer and two refinements");
        stage.over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_sees_no_need_to_improve_is_believed() {
    let asked = Asked::default();
    let judge = saying("judge", &asked, [r#"{"rating": "FAIR", "needs_improvement": false}"#]);
    let stage = staged(evaluator(Rating::Excellent, 3), &[drafts(&asked), judge]).await;
    assert_eq!(stage.answer("go").await, "draft 1");
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_gives_no_rating_is_asked_once_more_and_then_it_fails() {
    let asked = Asked::default();
    let judge = saying("judge", &asked, ["hm", "EXCELLENT"]);
    let stage = staged(evaluator(Rating::Good, 3), &[drafts(&asked), judge]).await;
    assert_eq!(stage.answer("go").await, "draft 1");
    assert!(asked.of("judge")[1].contains("could not be read as a rating:\n\nhm"));
    stage.over().await;

    let judge = saying("judge", &asked, ["hm", "well"]);
    let stage = staged(evaluator(Rating::Good, 3), &[drafts(&asked), judge]).await;
    assert_eq!(
        stage.failure("go").await,
        "agent `judge` (evaluator) was asked twice and gave no rating; it has to say EXCELLENT, \
         GOOD, FAIR or POOR, but said: well"
    );
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_writer_or_a_judge_that_fails_is_named() {
    let asked = Asked::default();
    let failing = |who: &str| member(who, &asked, |_, _| Err("out of ink".to_owned()));
    let stage = staged(evaluator(Rating::Good, 3), &[failing("writer"), failing("judge")]).await;
    assert_eq!(stage.failure("go").await, "agent `writer` (generator) failed: out of ink");
    stage.over().await;
    let stage = staged(evaluator(Rating::Good, 3), &[drafts(&asked), failing("judge")]).await;
    assert_eq!(stage.failure("go").await, "agent `judge` (evaluator) failed: out of ink");
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn many_refinements_are_not_cut_short() {
    let asked = Asked::default();
    let judge = saying("judge", &asked, ["POOR"]);
    let stage = staged(evaluator(Rating::Good, 30), &[drafts(&asked), judge]).await;
    assert_eq!(stage.answer("go").await, "draft 31");
    stage.over().await;
}
