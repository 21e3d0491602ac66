//! One writes, another judges.

use super::json;
use super::llm::Llm;
use super::progress::{Done, Move, Planner, Progress, Task};
use super::prompt;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tenure_core::model::{ModelError, ModelErrorKind};

/// How good an answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rating {
    /// It has to be written anew.
    Poor,
    /// It needs work.
    Fair,
    /// It will do.
    #[default]
    Good,
    /// There is nothing to say against it.
    Excellent,
}

impl Rating {
    /// Every rating, the best first.
    pub const ALL: [Rating; 4] = [Self::Excellent, Self::Good, Self::Fair, Self::Poor];

    /// The rating's name, as cards spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Excellent => "EXCELLENT",
            Self::Good => "GOOD",
            Self::Fair => "FAIR",
            Self::Poor => "POOR",
        }
    }
}

impl fmt::Display for Rating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Rating {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.trim();
        let found =
            Self::ALL.into_iter().find(|rating| rating.as_str().eq_ignore_ascii_case(wanted));
        found.ok_or_else(|| {
            format!("`{wanted}` is not a rating; use one of EXCELLENT, GOOD, FAIR, POOR")
        })
    }
}

#[derive(Debug)]
pub(super) struct Evaluator {
    pub(super) generator: Arc<str>,
    pub(super) evaluator: Arc<str>,
    pub(super) min_rating: Rating,
    pub(super) max_refinements: usize,
    pub(super) refinement_instruction: Option<Arc<str>>,
}

const GENERATE: &str = "generate";
const EVALUATE: &str = "evaluate";
const CORRECT: &str = "correct";

const FORM: &str = "Answer with one JSON object and nothing else: {\"rating\": \"EXCELLENT\" or \
                    \"GOOD\" or \"FAIR\" or \"POOR\", \"feedback\": \"what to improve\", \
                    \"needs_improvement\": true or false, \"focus_areas\": [\"...\"]}";

/// What the judge said.
#[derive(Debug, PartialEq)]
struct Judgement {
    rating: Rating,
    feedback: String,
    needs_improvement: bool,
}

impl Judgement {
    /// Reads JSON, or else looks for the name of a rating.
    fn read(text: &str) -> Option<Self> {
        if let Some(object) = json::object_in(text)
            && let Ok(rating) = json::text(&object, "rating").parse::<Rating>()
        {
            let focus: Vec<_> = match &object["focus_areas"] {
                Value::Array(areas) => areas.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            let mut feedback = json::text(&object, "feedback").to_owned();
            if !focus.is_empty() {
                feedback.push_str(&format!("\nFocus on: {}", focus.join(", ")));
            }
            let needs_improvement = object["needs_improvement"].as_bool().unwrap_or(true);
            return Some(Self { rating, feedback, needs_improvement });
        }
        let words = text.split(|c: char| !c.is_alphanumeric());
        let rating = words
            .filter_map(|word| Rating::ALL.into_iter().find(|rating| rating.as_str() == word))
            .next()?;
        Some(Self { rating, feedback: text.to_owned(), needs_improvement: true })
    }
}

/// One attempt of the writer, and what the judge said of it.
struct Attempt<'a> {
    answer: &'a str,
    judged: Vec<&'a Done<'a>>,
}

#[async_trait]
impl Planner for Evaluator {
    fn kind(&self) -> &'static str {
        "evaluator_optimizer"
    }

    async fn next(&self, progress: &Progress<'_>, _llm: &mut Llm<'_>) -> Result<Move, ModelError> {
        let Self { generator, evaluator, .. } = self;
        let mut attempts: Vec<Attempt<'_>> = Vec::new();
        for done in progress.done() {
            if done.role == GENERATE {
                let answer = done.answer(&format!("agent `{generator}` (generator)"))?;
                attempts.push(Attempt { answer, judged: Vec::new() });
            } else if let Some(attempt) = attempts.last_mut() {
                done.answer(&format!("agent `{evaluator}` (evaluator)"))?;
                attempt.judged.push(done);
            }
        }
        let mut best: Option<(Rating, &str)> = None;
        let mut last = None;
        for attempt in &attempts {
            let judgement = attempt.judged.iter().find_map(|done| Judgement::read(done.content));
            if let Some(judgement) = &judgement
                && best.is_none_or(|(rating, _)| judgement.rating >= rating)
            {
                best = Some((judgement.rating, attempt.answer));
            }
            last = Some((attempt, judgement));
        }
        let Some((attempt, judgement)) = last else {
            return Ok(Move::ask(Task::new(GENERATE, generator, progress.request)));
        };
        let Some(judgement) = judgement else {
            return self.judge(progress, attempt);
        };
        if judgement.rating >= self.min_rating || !judgement.needs_improvement {
            return Ok(Move::Answer(attempt.answer.to_owned()));
        }
        if attempts.len() > self.max_refinements {
            let (_, answer) = best.unwrap_or((judgement.rating, attempt.answer));
            return Ok(Move::Answer(answer.to_owned()));
        }
        let message = self.refinement(progress.request, attempt.answer, &judgement);
        Ok(Move::ask(Task::new(GENERATE, generator, message)))
    }
}

impl Evaluator {
    /// Has the newest attempt judged; a judge whose words cannot be read is asked once more.
    fn judge(&self, progress: &Progress<'_>, attempt: &Attempt<'_>) -> Result<Move, ModelError> {
        let evaluator = &self.evaluator;
        let asked = prompt::joined([
            "Rate the following response to the request.".to_owned(),
            prompt::request(progress.request),
            prompt::response(&self.generator, attempt.answer),
        ]);
        match &*attempt.judged {
            [] => Ok(Move::ask(Task::new(EVALUATE, evaluator, format!("{asked}\n\n{FORM}")))),
            [said] => {
                let message = format!(
                    "{asked}\n\nYour last answer could not be read as a rating:\n\n{}\n\n{FORM}",
                    said.content
                );
                Ok(Move::ask(Task::new(CORRECT, evaluator, message)))
            }
            [.., said] => Err(ModelError::new(
                ModelErrorKind::Malformed,
                format!(
                    "agent `{evaluator}` (evaluator) was asked twice and gave no rating; it has to \
                     say EXCELLENT, GOOD, FAIR or POOR, but said: {}",
                    shortened(said.content)
                ),
            )),
        }
    }

    fn refinement(&self, request: &str, answer: &str, judgement: &Judgement) -> String {
        let instruction = self.refinement_instruction.as_deref().unwrap_or(
            "Improve your previous response. Address the feedback, and keep what is good.",
        );
        prompt::joined([
            instruction.to_owned(),
            prompt::request(request),
            format!("<fastagent:previous>\n{answer}\n</fastagent:previous>"),
            format!(
                "<fastagent:feedback rating='{}'>\n{}\n</fastagent:feedback>",
                judgement.rating, judgement.feedback
            ),
        ])
    }
}

/// The beginning of what somebody said, for a message.
pub(super) fn shortened(text: &str) -> String {
    const LENGTH: usize = 200;
    let mut short: String = text.chars().take(LENGTH).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judgement_is_read_from_json_fences_and_words() {
        for (text, rating) in [
            (r#"{"rating": "good", "feedback": "f"}"#, Some(Rating::Good)),
            ("```json\n{\"rating\": \"POOR\"}\n```", Some(Rating::Poor)),
            ("Overall: FAIR, because", Some(Rating::Fair)),
            ("rating=EXCELLENT", Some(Rating::Excellent)),
            ("this is not good at all", None),
            ("GOODNESS", None),
            ("", None),
        ] {
            assert_eq!(Judgement::read(text).map(|it| it.rating), rating, "{text}");
        }
    }

    #[test]
    fn focus_areas_are_part_of_the_feedback() {
        let text = r#"{"rating":"FAIR","feedback":"dull","focus_areas":["verbs","end"]}"#;
        let judgement = Judgement::read(text).expect("it is JSON");
        assert_eq!(judgement.feedback, "dull\nFocus on: verbs, end");
    }
}
