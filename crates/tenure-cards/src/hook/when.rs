//! The condition of a declared hook.

use super::{ordered, sized};
use minijinja::{Environment, Expression, UndefinedBehavior};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;
use tenure_core::ExitReason;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{Cx, PhaseCx, ToolCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::model::ModelResponse;
use tenure_core::tool::ToolRequest;
use tenure_hooks::limit::check_expression;

/// The most that one evaluation may do.
const FUEL: u64 = 100_000;

/// The one evaluator: nothing is loaded, what is not there is an error, and it ends.
static EVALUATOR: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    ordered::teach(&mut environment);
    sized::teach(&mut environment);
    environment
});

/// A strict minijinja expression, compiled once. Comparing things by order that have none with each
/// other, such as a text and a number, is an error.
///
/// It sees `agent` (name, phase), `instance_id`, `point`, `variables` of the chat, the agent's
/// `state`, and what its point has: `tool` (name, description, arguments, effect), `input`,
/// `request` (step, instruction), `response` (text, calls), `outcome`, `output`, `error`, `from`,
/// `to`, `reason`. Where a workflow has a trigger, `trigger` is another name of `point`.
pub struct Condition {
    text: Box<str>,
    compiled: Expression<'static, 'static>,
    mentions: BTreeSet<String>,
}

impl Condition {
    /// Compiles an expression; the error says what is wrong with it.
    pub fn compile(expression: &str) -> Result<Self, String> {
        check_expression(expression).map_err(|error| error.to_string())?;
        let compile = |text: String| {
            EVALUATOR.compile_expression_owned(text).map_err(|error| error.to_string())
        };
        // As it is written first: what is wrong is said of that.
        let written = compile(ordered::without_products(expression))?;
        let mentions = written.undeclared_variables(false).into_iter().collect();
        let compiled = compile(ordered::checked(expression)?)?;
        Ok(Self { text: expression.into(), compiled, mentions })
    }

    /// The expression as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it holds at this moment. Only what it mentions is looked at.
    pub(super) fn holds(&self, moment: &Moment<'_>) -> Result<bool, String> {
        let mut seen = Map::new();
        for name in &self.mentions {
            if let Some(value) = moment.value(name) {
                seen.insert(name.clone(), value);
            }
        }
        self.eval(&seen)
    }

    /// The names that it mentions and that nothing in it sets, in alphabetical order.
    pub fn mentions(&self) -> impl Iterator<Item = &str> {
        self.mentions.iter().map(String::as_str)
    }

    /// Whether it holds where names have these values; `None` is a name that is not there. Only
    /// what it mentions is looked up. The error says why it could not be decided.
    pub fn holds_where(&self, lookup: impl Fn(&str) -> Option<Value>) -> Result<bool, String> {
        let mut seen = Map::new();
        for name in &self.mentions {
            if let Some(value) = lookup(name) {
                seen.insert(name.clone(), value);
            }
        }
        self.eval(&seen)
    }

    /// What it comes to where names have these values, as JSON.
    pub fn value_where(&self, lookup: impl Fn(&str) -> Option<Value>) -> Result<Value, String> {
        let mut seen = Map::new();
        for name in &self.mentions {
            if let Some(value) = lookup(name) {
                seen.insert(name.clone(), value);
            }
        }
        let value = self.result(&seen)?;
        serde_json::to_value(value).map_err(|error| format!("its result is no JSON: {error}"))
    }

    fn eval(&self, seen: &Map<String, Value>) -> Result<bool, String> {
        self.result(seen).map(|value| value.is_true())
    }

    fn result(&self, seen: &Map<String, Value>) -> Result<minijinja::Value, String> {
        let seen = minijinja::Value::from(minijinja::value::Serde(seen));
        let value = self.compiled.eval(seen).map_err(|error| error.to_string())?;
        // Strictness ends at the result: what is not there would count as false, and a guard that
        // asks for it would never be called.
        match value.is_undefined() {
            true => Err("what it names is not there".to_owned()),
            false => Ok(value),
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

/// A call of a hook, as its condition sees it.
pub(super) struct Moment<'a> {
    pub(super) cx: &'a Cx<'a>,
    pub(super) at: At<'a>,
}

/// What the point has.
pub(super) enum At<'a> {
    Plain,
    Shutdown(ExitReason),
    ChatEnd(&'a ChatEnd),
    Input(&'a Input),
    Request { step: usize, instruction: Option<&'a str> },
    Response { step: usize, response: &'a ModelResponse },
    Tool { cx: ToolCx<'a>, request: &'a ToolRequest },
    TurnEnd(&'a TurnEnd<'a>),
    Transition(PhaseCx<'a>),
}

impl Moment<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        let cx = self.cx;
        match name {
            "agent" => Some(json!({
                "name": cx.agent_name(),
                "phase": cx.agent().phase().as_str(),
            })),
            "instance_id" => Some(cx.instance_id().to_string().into()),
            "point" | "trigger" => Some(cx.hook_type().as_str().into()),
            "variables" => Some(match cx.chat_variables() {
                Some(variables) => variables.all().into_iter().collect(),
                None => json!({}),
            }),
            "state" => Some(cx.state_values().into_iter().collect()),
            _ => self.at.value(name),
        }
    }
}

impl At<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        Some(match (self, name) {
            (Self::Shutdown(reason), "reason") => reason.as_str().into(),
            (Self::ChatEnd(end), "outcome") => end.outcome.as_str().into(),
            (Self::ChatEnd(end), "output") => json!(end.output),
            (Self::ChatEnd(end), "error") => json!(end.error.as_ref().map(ToString::to_string)),
            (Self::TurnEnd(end), "outcome") => end.outcome().as_str().into(),
            (Self::TurnEnd(end), "output") => json!(end.output()),
            (Self::TurnEnd(end), "error") => json!(end.error().map(ToString::to_string)),
            (Self::Input(input), "input") => (*input.content.text()).into(),
            (Self::Request { step, instruction }, "request") => {
                json!({ "step": step, "instruction": instruction })
            }
            (Self::Response { step, .. }, "request") => json!({ "step": step }),
            (Self::Response { response, .. }, "response") => json!({
                "text": response.content.text(),
                "calls": response.calls.iter().map(|call| json!({
                    "id": call.id,
                    "name": call.name,
                    "arguments": serde_json::from_str::<Value>(&call.arguments)
                        .unwrap_or_else(|_| call.arguments.as_str().into()),
                })).collect::<Vec<_>>(),
            }),
            (Self::Tool { cx, request }, "tool") => {
                let spec = cx.tool();
                json!({
                    "name": request.name(),
                    "arguments": request.arguments,
                    "effect": spec.map(|spec| spec.effect),
                    "description": spec.map(|spec| &*spec.description),
                })
            }
            (Self::Transition(cx), "from") => cx.from().as_str().into(),
            (Self::Transition(cx), "to") => cx.to().as_str().into(),
            _ => return None,
        })
    }
}
