//! What the votes of several critics come to.

use super::verdict::{Decision, Verdict};
use serde::{Deserialize, Serialize};

/// When the votes of several critics let an answer pass. A tie never does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Consensus {
    /// More than half of the votes are for it.
    #[default]
    Majority,
    /// All votes are for it.
    Unanimous,
    /// The votes for it have more than this share of the weight of all votes: from 0 to 1.
    Weighted(f64),
}

/// What one critic said in one round; without a verdict it did not vote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Vote {
    pub(super) critic: String,
    pub(super) weight: f64,
    /// The verdict, or why there is none.
    pub(super) verdict: Result<Verdict, String>,
}

/// What the votes come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ruling {
    /// The answer passes; with another text, if a critic has given one.
    Accepted(Option<String>),
    /// It does not.
    Rejected { critique: String, score: Option<f64> },
    /// There are too few votes.
    Undecided(String),
}

/// Counts the votes.
pub(super) fn rule(votes: &[Vote], consensus: Consensus, quorum: usize) -> Ruling {
    let cast: Vec<_> = votes
        .iter()
        .filter_map(|vote| vote.verdict.as_ref().ok().map(|verdict| (vote, verdict)))
        .collect();
    // Nobody's consent is no consent.
    if cast.len() < quorum.max(1) {
        let missing = votes.iter().filter_map(|vote| {
            vote.verdict.as_ref().err().map(|why| format!("`{}`: {why}", vote.critic))
        });
        let missing: Vec<_> = missing.collect();
        return Ruling::Undecided(format!(
            "{} of {} critics gave a verdict, and {} have to ({})",
            cast.len(),
            votes.len(),
            quorum.max(1),
            missing.join("; ")
        ));
    }
    let weight = |accepting: bool| -> f64 {
        cast.iter()
            .filter(|(_, verdict)| !accepting || verdict.accepts())
            .map(|(vote, _)| vote.weight)
            .sum()
    };
    let accepting = cast.iter().filter(|(_, verdict)| verdict.accepts()).count();
    let accepted = match consensus {
        Consensus::Majority => accepting * 2 > cast.len(),
        Consensus::Unanimous => accepting == cast.len(),
        Consensus::Weighted(share) => weight(true) > share * weight(false),
    };
    if accepted {
        return Ruling::Accepted(text_of(&cast));
    }
    let named = votes.len() > 1;
    let critiques = cast.iter().filter(|(_, verdict)| !verdict.accepts()).map(|(vote, verdict)| {
        let critique = verdict.critique.as_deref().unwrap_or_default();
        if named { format!("{}: {critique}", vote.critic) } else { critique.to_owned() }
    });
    Ruling::Rejected { critique: critiques.collect::<Vec<_>>().join("\n"), score: score_of(&cast) }
}

/// The text of the weightiest critic that has given one; of equals the first.
fn text_of(cast: &[(&Vote, &Verdict)]) -> Option<String> {
    let mut best: Option<(f64, &str)> = None;
    for (vote, verdict) in cast.iter().filter(|(_, it)| it.verdict == Decision::Modify) {
        if let Some(text) = &verdict.text
            && best.is_none_or(|(weight, _)| vote.weight > weight)
        {
            best = Some((vote.weight, text));
        }
    }
    best.map(|(_, text)| text.to_owned())
}

/// The mean of the scores, by weight; none if nobody has given one.
fn score_of(cast: &[(&Vote, &Verdict)]) -> Option<f64> {
    let scored = cast.iter().filter_map(|(vote, verdict)| Some((vote.weight, verdict.score?)));
    let (sum, weight) =
        scored.fold((0.0, 0.0), |(sum, all), (weight, score)| (sum + weight * score, all + weight));
    (weight > 0.0).then(|| sum / weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(said: &str, weight: f64) -> Vote {
        let verdict = match said {
            "fails" => Err("it failed".to_owned()),
            said => Verdict::read(said),
        };
        Vote { critic: said.len().to_string(), weight, verdict }
    }

    const YES: &str = r#"{"verdict": "approve", "score": 9}"#;
    const NO: &str = r#"{"verdict": "reject", "critique": "no", "score": 3}"#;

    fn passes(votes: &[(&str, f64)], consensus: Consensus) -> bool {
        let votes: Vec<_> = votes.iter().map(|(said, weight)| vote(said, *weight)).collect();
        matches!(rule(&votes, consensus, 1), Ruling::Accepted(_))
    }

    #[test]
    fn a_majority_is_more_than_half_and_a_tie_rejects() {
        let majority = |votes| passes(votes, Consensus::Majority);
        assert!(majority(&[(YES, 1.0), (YES, 1.0), (NO, 1.0)]));
        assert!(!majority(&[(YES, 1.0), (NO, 1.0)]));
        assert!(majority(&[(YES, 1.0), ("fails", 1.0)]), "who fails has no vote");
    }

    #[test]
    fn one_voice_breaks_unanimity() {
        assert!(passes(&[(YES, 1.0), (YES, 1.0)], Consensus::Unanimous));
        assert!(!passes(&[(YES, 1.0), (YES, 1.0), (NO, 0.1)], Consensus::Unanimous));
    }

    #[test]
    fn weights_count_and_a_tie_of_weights_rejects() {
        let weighted = |votes| passes(votes, Consensus::Weighted(0.5));
        assert!(weighted(&[(YES, 3.0), (NO, 1.0), (NO, 1.0)]));
        assert!(!weighted(&[(YES, 2.0), (NO, 1.0), (NO, 1.0)]));
        assert!(!passes(&[(YES, 3.0), (NO, 1.0)], Consensus::Weighted(0.75)));
    }

    #[test]
    fn too_few_votes_are_no_ruling() {
        let votes = [vote(YES, 1.0), vote("fails", 1.0), vote("fails", 1.0)];
        let Ruling::Undecided(why) = rule(&votes, Consensus::Majority, 2) else { panic!() };
        assert!(why.contains("1 of 3 critics gave a verdict, and 2 have to"), "{why}");
        assert!(matches!(rule(&[], Consensus::Unanimous, 0), Ruling::Undecided(_)));
    }

    #[test]
    fn the_weightiest_text_is_taken_and_scores_are_averaged_by_weight() {
        let modify = |text: &str, weight| {
            vote(&format!(r#"{{"verdict": "modify", "text": "{text}"}}"#), weight)
        };
        let votes = [modify("light", 1.0), modify("heavy", 2.0), modify("heavy too", 2.0)];
        assert_eq!(
            rule(&votes, Consensus::Majority, 1),
            Ruling::Accepted(Some("heavy".to_owned()))
        );
        let votes = [vote(YES, 1.0), vote(NO, 2.0)];
        let Ruling::Rejected { score, .. } = rule(&votes, Consensus::Majority, 1) else { panic!() };
        assert_eq!(score, Some(5.0));
    }
}
