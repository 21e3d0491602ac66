//! Conditions that a model judges.

use super::view::View;
use super::{HandoffKind, HandoffRule};
use crate::chat::is_final;
use crate::route::RouteCx;
use crate::route::selector::{Selector, conversation, cut};
use serde_json::json;
use std::fmt::Write;
use tenure_core::Error;

/// What the model said of the conditions of one source: asked once, when the first of them is
/// reached.
pub(super) struct Judge<'a> {
    pub(super) selector: Option<&'a Selector>,
    pub(super) view: &'a View,
    /// Every rule of the source, each with its place in the whole list.
    pub(super) rules: &'a [(usize, &'a HandoffRule)],
    /// The place of the rule whose condition holds; the outer `None` is: not asked yet.
    verdict: Option<Option<usize>>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        selector: Option<&'a Selector>,
        view: &'a View,
        rules: &'a [(usize, &'a HandoffRule)],
    ) -> Self {
        Self { selector, view, rules, verdict: None }
    }

    /// Whether the condition of the rule at this place is the one that holds.
    pub(super) async fn holds(&mut self, cx: &RouteCx<'_>, place: usize) -> Result<bool, Error> {
        let verdict = match self.verdict {
            Some(verdict) => verdict,
            None => *self.verdict.insert(self.ask(cx).await?),
        };
        Ok(verdict == Some(place))
    }

    /// The place of the rule whose condition holds, of those that a model judges.
    async fn ask(&self, cx: &RouteCx<'_>) -> Result<Option<usize>, Error> {
        let mut asked = Vec::new();
        let mut question = String::from("Which of these statements is true now?\n");
        for (place, rule) in self.rules {
            let HandoffKind::Model { condition } = &rule.kind else { continue };
            match condition.fill(|name| self.view.value(cx, name)) {
                Ok(statement) => {
                    asked.push((*place, *rule));
                    let _ = writeln!(question, "{}. {}", asked.len(), cut(&statement, 1_000));
                }
                Err(error) => could_not_tell(cx, *place, rule, &error),
            }
        }
        if asked.is_empty() {
            return Ok(None);
        }
        let fails = |error: &str| {
            for (place, rule) in &asked {
                could_not_tell(cx, *place, rule, error);
            }
            Ok(None)
        };
        let Some(selector) = self.selector else {
            return fails("there is no model to judge it; give the flow a selector");
        };
        question.push('\n');
        question.push_str(&conversation(cx.messages));
        question.push_str(
            "\nAnswer with the number of the first statement that is true, or with `none` if none \
             of them is. Answer nothing else.",
        );
        let count = asked.len();
        let answered = match selector.ask(cx, &question, |answer| number(answer, count)).await {
            Ok(answered) => answered,
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => return fails(&format!("the model failed: {error}")),
        };
        match answered.value {
            Ok(number) => Ok(number.map(|number| asked[number - 1].0)),
            Err(wrong) => {
                let (times, answer) = (answered.times, cut(answered.answer.trim(), 200));
                fails(&format!("the model said \"{answer}\" ({times} answers), but {wrong}"))
            }
        }
    }
}

/// Says that a condition could not be evaluated: its rule does not hold, and the chat goes on.
pub(super) fn could_not_tell(cx: &RouteCx<'_>, place: usize, rule: &HandoffRule, error: &str) {
    let (number, condition) = (place + 1, rule.condition().unwrap_or_default());
    tracing::error!(
        rule = number,
        condition,
        "a handoff condition could not be evaluated: {error}"
    );
    cx.announce("handoff.error", || {
        json!({
            "rule": number,
            "source": rule.source.as_str(),
            "target": rule.target,
            "condition": condition,
            "error": error,
        })
    });
}

/// The number that an answer says, or none. The error says what is wrong with the answer.
fn number(answer: &str, count: usize) -> Result<Option<usize>, String> {
    let words = answer.split(|it: char| !it.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut numbers = Vec::new();
    let mut says_none = false;
    for word in words {
        says_none |= word.eq_ignore_ascii_case("none");
        if let Ok(number) = word.parse::<usize>()
            && !numbers.contains(&number)
        {
            numbers.push(number);
        }
    }
    match (&numbers[..], says_none) {
        ([], true) | ([0], _) => Ok(None),
        ([number], false) if (1..=count).contains(number) => Ok(Some(*number)),
        ([], false) => Err("that is neither a number nor `none`".to_owned()),
        ([number], false) => Err(format!("there is no statement {number}, only 1 to {count}")),
        _ => Err("that says more than one thing".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn an_answer_is_a_number_or_none_also_in_a_sentence() {
        for (answer, expected) in [
            ("2", Some(2)),
            (" 2.\n", Some(2)),
            ("Statement 2 is true.", Some(2)),
            ("**2**", Some(2)),
            ("none", None),
            ("None of them.", None),
            ("0", None),
        ] {
            assert_eq!(number(answer, 3), Ok(expected), "{answer}");
        }
    }

    #[test]
    fn an_answer_that_says_something_else_is_refused_with_the_reason() {
        for (answer, expected) in [
            ("4", "there is no statement 4, only 1 to 3"),
            ("", "that is neither a number nor `none`"),
            ("yes", "that is neither a number nor `none`"),
            ("1 and 3", "that says more than one thing"),
            ("none, or 1", "that says more than one thing"),
        ] {
            assert_eq!(number(answer, 3), Err(expected.to_owned()), "{answer}");
        }
    }
}
