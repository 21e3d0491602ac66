//! What is said, and what people answer, as changes of states.

use super::template::dotted;
use super::{Definition, Source, Transition, Trigger, Variables};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::chat::ContextVariables;
use tenure_core::context::ToolCx;

/// The name of the event that announces a [`Change`].
pub const CONTEXT_CHANGED: &str = "context.changed";

/// A variable that changed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The variable.
    pub name: String,
    /// What it was.
    pub from: Value,
    /// What it is.
    pub to: Value,
    /// Why: `agent_text <agent>`, `ui_response <tool>`, `computed`, `data_reference`.
    pub cause: String,
}

impl Change {
    /// The change as the event [`CONTEXT_CHANGED`] has it.
    pub fn data(&self) -> Value {
        json!({ "name": self.name, "from": self.from, "to": self.to, "cause": self.cause })
    }
}

/// What a message did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Heard {
    /// What changed, in the order of the declarations; what follows from it behind.
    pub changes: Vec<Change>,
    /// Whether people do not get to see the message.
    pub hidden: bool,
}

impl Variables {
    /// Changes what a message of an agent changes; `user` is the person. Each change is to be
    /// announced as [`CONTEXT_CHANGED`] by whoever has the chat.
    pub fn after_message(
        &self,
        variables: &ContextVariables<'_>,
        agent: &str,
        text: &str,
    ) -> Result<Heard, Error> {
        let mut heard = Heard::default();
        let mut patch = Vec::new();
        for (definition, transition) in self.transitions() {
            let Trigger::AgentText { agent: speaker, matches, ui_hidden } = &transition.trigger
            else {
                continue;
            };
            // What is not this agent's is not even looked at.
            if speaker != agent || !matches.matches(text) {
                continue;
            }
            if !leads_on(transition, definition, variables) {
                continue;
            }
            heard.hidden |= *ui_hidden;
            let to = transition.to.clone().unwrap_or(Value::Bool(true));
            if !patch.iter().any(|(name, _)| *name == definition.name) {
                patch.push((definition.name.clone(), to));
            }
        }
        heard.changes = self.write(variables, patch, &format!("agent_text {agent}"))?;
        Ok(heard)
    }

    /// Changes what an answer of a person to a UI tool changes. Each change is to be announced as
    /// [`CONTEXT_CHANGED`] by whoever has the chat.
    pub fn after_ui_response(
        &self,
        variables: &ContextVariables<'_>,
        tool: &str,
        response: &Value,
    ) -> Result<Vec<Change>, Error> {
        let mut patch: Vec<(String, Value)> = Vec::new();
        for (definition, transition) in self.transitions() {
            let Trigger::UiResponse { tool: asked, response_key } = &transition.trigger else {
                continue;
            };
            if asked != tool || patch.iter().any(|(name, _)| *name == definition.name) {
                continue;
            }
            let Some(value) = dotted(response, response_key.as_deref().unwrap_or("")) else {
                continue;
            };
            if !leads_on(transition, definition, variables) {
                continue;
            }
            let to = match &transition.to {
                // With a key, an answer that says no does not lead on; without, any does.
                Some(_) if response_key.is_some() && is_no(value) => continue,
                Some(to) => to.clone(),
                None => definition.kind.coerce(value.clone()).map_err(|error| {
                    let name = &definition.name;
                    Error::invalid(format!(
                        "context variable `{name}` cannot be set from what `{tool}` got: {error}"
                    ))
                })?,
            };
            patch.push((definition.name.clone(), to));
        }
        self.write(variables, patch, &format!("ui_response {tool}"))
    }

    /// What a UI tool does with an answer: [`Variables::after_ui_response`]. The tool announces the
    /// changes.
    pub fn ui_response(
        self: &Arc<Self>,
        tool: impl Into<String>,
    ) -> impl Fn(&ToolCx<'_>, &Value) -> Result<Vec<Change>, Error> + Send + Sync + 'static {
        let (all, tool) = (self.clone(), tool.into());
        move |cx, response| match cx.chat_variables() {
            Some(variables) => all.after_ui_response(&variables, &tool, response),
            None => Ok(Vec::new()),
        }
    }

    fn transitions(&self) -> impl Iterator<Item = (&Definition, &Transition)> {
        self.definitions.iter().flat_map(|definition| {
            let triggers = match &definition.source {
                Source::State(state) => state.triggers.as_slice(),
                _ => &[],
            };
            triggers.iter().map(move |transition| (definition, transition))
        })
    }

    fn write(
        &self,
        variables: &ContextVariables<'_>,
        patch: Vec<(String, Value)>,
        cause: &str,
    ) -> Result<Vec<Change>, Error> {
        if patch.is_empty() {
            return Ok(Vec::new());
        }
        let before = variables.all();
        variables.update(patch.clone())?;
        let after = variables.all();
        let names: Vec<_> = patch.into_iter().map(|(name, _)| name).collect();
        Ok(self.changes(&before, &after, &names, cause))
    }

    /// What of `names` is another value now, and what was computed from it.
    pub(super) fn changes(
        &self,
        before: &BTreeMap<String, Value>,
        after: &BTreeMap<String, Value>,
        names: &[String],
        cause: &str,
    ) -> Vec<Change> {
        let direct = names.iter().map(|name| (name.as_str(), cause));
        let computed = self.formulas.iter().map(|it| (it.name.as_str(), "computed"));
        direct
            .chain(computed)
            .filter_map(|(name, cause)| {
                let value =
                    |of: &BTreeMap<String, Value>| of.get(name).cloned().unwrap_or_default();
                let (from, to) = (value(before), value(after));
                let (name, cause) = (name.to_owned(), cause.to_owned());
                (from != to).then_some(Change { name, from, to, cause })
            })
            .collect()
    }
}

/// Whether the variable has the value that the change begins with.
fn leads_on(
    transition: &Transition,
    definition: &Definition,
    variables: &ContextVariables<'_>,
) -> bool {
    let from = transition.from.as_ref();
    from.is_none_or(|from| variables.get(&definition.name).unwrap_or_default() == *from)
}

fn is_no(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false))
}
