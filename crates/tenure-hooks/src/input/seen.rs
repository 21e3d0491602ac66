//! What conditions and templates in options get to see, and how they are evaluated: strictly, within
//! bounds, and with no way to anything outside.

use super::reads::Reads;
use crate::ready::Pattern;
use crate::words::{bounded, evaluator, expression};
use minijinja::Environment;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tenure_core::context::TurnCx;
use tenure_core::message::Message;
use tenure_core::model::ModelRequest;

/// What is seen where a turn begins.
pub(crate) const AT_TURN: &[&str] = &["agent", "user", "variables", "state", "input", "now"];
/// What is seen before a model call.
pub(crate) const AT_MODEL: &[&str] =
    &["agent", "user", "variables", "state", "input", "now", "step", "tools", "chars", "usage"];

static EVALUATOR: LazyLock<Environment<'static>> = LazyLock::new(evaluator);

/// Refuses names that are never there. It would fail at the first call else.
fn check(mentions: &HashSet<String>, seen: &[&str]) -> Result<(), String> {
    let functions: Vec<_> = EVALUATOR.globals().map(|(name, _)| name.to_owned()).collect();
    let known = |name: &str| seen.contains(&name) || functions.iter().any(|it| it == name);
    match mentions.iter().filter(|name| !known(name)).min() {
        Some(name) => Err(format!("it mentions `{name}`, and sees only: {}", seen.join(", "))),
        None => Ok(()),
    }
}

/// A strict expression, compiled once.
pub(crate) struct Expression {
    text: Box<str>,
    compiled: minijinja::Expression<'static, 'static>,
    reads: Reads,
}

impl Expression {
    /// Compiles it. The error says what is wrong, also with names that are never there.
    pub(crate) fn compile(text: &str, seen: &[&'static str]) -> Result<Self, String> {
        let compiled = expression(&EVALUATOR, text)
            .map_err(|error| format!("`{text}` is no expression: {error}"))?;
        let mentions = compiled.undeclared_variables(false);
        check(&mentions, seen)?;
        let reads = Reads::of_expression(text, &mentions, seen);
        Ok(Self { text: text.into(), compiled, reads })
    }

    /// Whether it holds. What cannot be decided is an error.
    pub(crate) fn holds(&self, moment: &Moment<'_>) -> Result<bool, String> {
        Ok(self.value(moment)?.is_true())
    }

    /// What it comes to.
    pub(crate) fn value(&self, moment: &Moment<'_>) -> Result<minijinja::Value, String> {
        let (sight, clock) = self.reads.sight(|name| moment.look(name));
        let value = self.compiled.eval(self.reads.values(sight, clock));
        match value.map_err(|error| format!("`{}` cannot be decided: {error}", self.text))? {
            // Strictness ends at the result.
            value if value.is_undefined() => {
                Err(format!("`{}` cannot be decided: what it names is not there", self.text))
            }
            value => Ok(value),
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

/// A strict template. It reads no files, includes nothing, and does a bounded amount of work.
pub(crate) struct Template {
    environment: Environment<'static>,
    reads: Reads,
    last: Mutex<Option<Said>>,
}

/// What a template said, and what it saw then.
struct Said {
    sight: Vec<Option<Value>>,
    text: Arc<str>,
}

const TEMPLATE: &str = "template";

impl Template {
    /// Compiles it. The error says what is wrong, also with names that are never there.
    pub(crate) fn compile(text: &str, seen: &[&'static str]) -> Result<Self, String> {
        let mut environment = evaluator();
        let compiled = bounded(text)
            .and_then(|text| environment.add_template_owned(TEMPLATE, text.to_owned()));
        compiled.map_err(|error| format!("it is no template: {error}"))?;
        let template = environment.get_template(TEMPLATE).map_err(|error| error.to_string())?;
        let mentions = template.undeclared_variables(false);
        check(&mentions, seen)?;
        let reads = Reads::of_template(text, &mentions, seen);
        Ok(Self { environment, reads, last: Mutex::default() })
    }

    /// What it says now, without the white space around it. As long as it sees the same it says the
    /// same, so that it is asked again only once something has changed.
    pub(crate) fn render(&self, moment: &Moment<'_>) -> Result<Arc<str>, String> {
        let (sight, clock) = self.reads.sight(|name| moment.look(name));
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(said) = last().as_ref().filter(|said| said.sight == sight) {
            return Ok(said.text.clone());
        }
        let values = self.reads.values(sight.clone(), clock);
        let rendered = self.environment.get_template(TEMPLATE).and_then(|it| it.render(values));
        let rendered =
            rendered.map_err(|error| format!("the template cannot be rendered: {error}"))?;
        let text: Arc<str> = rendered.trim().into();
        *last() = Some(Said { sight, text: text.clone() });
        Ok(text)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("reads", &self.reads).finish_non_exhaustive()
    }
}

/// A moment of a turn, as conditions and templates see it.
pub(crate) struct Moment<'a> {
    pub(crate) cx: TurnCx<'a>,
    pub(crate) input: &'a str,
    pub(crate) request: Option<&'a ModelRequest>,
}

impl<'a> Moment<'a> {
    /// The beginning of a turn.
    pub(crate) fn of_turn(cx: TurnCx<'a>, input: &'a str) -> Self {
        Self { cx, input, request: None }
    }

    /// A model call that is about to be made.
    pub(crate) fn of_request(cx: TurnCx<'a>, request: &'a ModelRequest) -> Self {
        Self { cx, input: said(request), request: Some(request) }
    }

    /// What is seen under a name. The time is not among it.
    fn look(&self, name: &str) -> Option<Value> {
        let cx = &self.cx;
        Some(match name {
            "agent" => json!({ "name": cx.config().name }),
            "user" => user_of(cx).unwrap_or_default().into(),
            "variables" => match cx.chat_variables() {
                Some(variables) => variables.all().into_iter().collect(),
                None => json!({}),
            },
            "state" => cx.state_values().into_iter().collect(),
            "input" => self.input.into(),
            "step" => cx.step_number().into(),
            "tools" => self.request?.tools.iter().map(|tool| json!(&*tool.name)).collect(),
            "chars" => chars_of(self.request?).into(),
            "usage" => {
                let usage = cx.usage();
                json!({
                    "input": usage.input,
                    "output": usage.output,
                    "total": usage.total(),
                    "cost": usage.cost.usd(),
                })
            }
            _ => return None,
        })
    }
}

/// What the user said last.
pub(crate) fn said(request: &ModelRequest) -> &str {
    let mut last = "";
    for message in request.messages.iter() {
        if let Message::User { content } = message {
            last = content.text();
        }
    }
    last
}

/// How many characters a model gets to read: instruction and messages.
pub(crate) fn chars_of(request: &ModelRequest) -> usize {
    let instruction = request.instruction.as_deref().map_or(0, |text| text.chars().count());
    let messages = request.messages.iter().map(|message| {
        let calls = message.calls().iter().map(|call| call.arguments.chars().count());
        message.text().chars().count() + calls.sum::<usize>()
    });
    instruction + messages.sum::<usize>()
}

/// Who the turn is for: as the chat says, else as the orchestrator does.
pub(crate) fn user_of(cx: &TurnCx<'_>) -> Option<String> {
    let in_chat = cx.chat_variables().and_then(|variables| variables.get("user_id"));
    let user = match in_chat {
        Some(Value::String(user)) => user,
        Some(Value::Null) | None => cx.context()?.user_id().to_owned(),
        Some(other) => other.to_string(),
    };
    (!user.is_empty()).then_some(user)
}

/// A pattern that is written in Rust.
pub(crate) fn pattern(text: &str) -> Result<Pattern, String> {
    let text: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
        text.into_deserializer();
    Pattern::deserialize(text).map_err(|error| error.to_string())
}

/// The first `most` characters of a text.
pub(crate) fn first_chars(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_never_there_is_refused_before_it_is_asked() {
        let refused = Expression::compile("inpt == 'x'", AT_TURN).unwrap_err();
        assert!(refused.contains("`inpt`") && refused.contains("input"), "{refused}");
        assert!(Expression::compile("input ==", AT_TURN).is_err());
        assert!(Expression::compile("range(3) | length == input | length", AT_TURN).is_ok());
        assert!(Template::compile("{{ step }}", AT_TURN).is_err());
        assert!(Template::compile("{{ step }}", AT_MODEL).is_ok());
    }

    #[test]
    fn a_template_reaches_nothing_outside() {
        for reach in ["{% include 'secret.txt' %}", "{% import 'x' as x %}", "{% extends 'x' %}"] {
            assert!(Template::compile(reach, AT_MODEL).is_err(), "{reach}");
        }
    }
}
