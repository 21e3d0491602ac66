//! What a critic says, read strictly.

use serde::{Deserialize, Serialize};

/// The highest score; the lowest is 0.
const BEST: f64 = 10.0;

/// How a critic answers, as it is told.
pub(super) const FORM: &str = "\
Answer with one JSON object and nothing else. It has one of these forms:\n\
{\"verdict\": \"approve\", \"score\": 8}\n\
{\"verdict\": \"reject\", \"critique\": \"what is wrong and how to mend it\", \"score\": 3}\n\
{\"verdict\": \"modify\", \"text\": \"the whole answer as it should be\", \"score\": 6}\n\
`score` is a number from 0 (useless) to 10 (perfect) and may be left out. `critique` may stand \
beside every verdict, and has to stand beside `reject`.";

/// What a critic decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Decision {
    /// The answer is good as it is.
    #[serde(alias = "continue")]
    Approve,
    /// It is to be made again.
    Reject,
    /// It is to be replaced.
    Modify,
}

impl Decision {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Modify => "modify",
        }
    }
}

/// A verdict with what belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verdict {
    pub(super) verdict: Decision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) critique: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<f64>,
}

impl Verdict {
    /// Reads what a critic said. The error says what is wrong with it, so that it can be told.
    pub(super) fn read(said: &str) -> Result<Self, String> {
        let mut verdict: Self = serde_json::from_str(unfenced(said.trim()))
            .map_err(|error| format!("it is not the JSON object that was asked for: {error}"))?;
        for part in [&mut verdict.critique, &mut verdict.text] {
            if part.as_ref().is_some_and(|text| text.trim().is_empty()) {
                *part = None;
            }
        }
        match verdict.verdict {
            Decision::Reject if verdict.critique.is_none() => {
                return Err("it rejects without a `critique`".to_owned());
            }
            Decision::Modify if verdict.text.is_none() => {
                return Err("it modifies without a `text`".to_owned());
            }
            Decision::Approve | Decision::Reject if verdict.text.is_some() => {
                return Err("it has a `text`, which only `modify` has".to_owned());
            }
            _ => {}
        }
        match verdict.score {
            Some(score) if !(0.0..=BEST).contains(&score) => {
                Err(format!("its score is {score}, which is not from 0 to {BEST}"))
            }
            _ => Ok(verdict),
        }
    }

    /// Whether it lets something go on.
    pub(super) fn accepts(&self) -> bool {
        self.verdict != Decision::Reject
    }
}

/// What stands in a fence, if all of it does. Models like to put JSON in one.
fn unfenced(said: &str) -> &str {
    let inside = said.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some(inside) = inside else { return said };
    inside.strip_prefix("json").unwrap_or(inside).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read() {
        let read = |said| Verdict::read(said).map(|it| it.verdict);
        assert_eq!(read(r#"{"verdict": "approve"}"#), Ok(Decision::Approve));
        assert_eq!(read(r#" {"verdict": "continue", "score": 10} "#), Ok(Decision::Approve));
        assert_eq!(read(r#"{"verdict": "reject", "critique": "too long"}"#), Ok(Decision::Reject));
        assert_eq!(
            read("```json\n{\"verdict\": \"modify\", \"text\": \"x\"}\n```"),
            Ok(Decision::Modify)
        );
    }

    #[test]
    fn what_is_no_verdict_is_refused_with_what_is_wrong() {
        let wrong = |said: &str| Verdict::read(said).unwrap_err();
        for (said, why) in [
            ("I approve", "not the JSON object"),
            (r#"{"verdict": "approve"} Well done."#, "not the JSON object"),
            (r#"{"verdict": "maybe"}"#, "unknown variant"),
            (r#"{"verdict": "approve", "mood": 1}"#, "unknown field"),
            (r#"{"verdict": "approve", "verdict": "reject"}"#, "duplicate field"),
            (r#"{"verdict": "reject", "critique": " "}"#, "without a `critique`"),
            (r#"{"verdict": "modify"}"#, "without a `text`"),
            (r#"{"verdict": "approve", "text": "x"}"#, "only `modify` has"),
            (r#"{"verdict": "approve", "score": 11}"#, "not from 0 to 10"),
            (r#"{"verdict": "approve", "score": -1}"#, "not from 0 to 10"),
        ] {
            let error = wrong(said);
            assert!(error.contains(why), "{said}: {error}");
        }
    }
}
