//! What an agent gets to read of the variables.

use super::{Definition, Variables};
use async_trait::async_trait;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::context::TurnCx;
use tenure_core::hook::{
    AgentLifecycle, Flow, HookError, Origin, Point, Points, Registration, hook,
};
use tenure_core::model::ModelRequest;

const OPEN: &str = "<context_variables>\n";
const CLOSE: &str = "</context_variables>";

impl Variables {
    /// The entry that shows an agent its variables in every call of its model; none if it gets to
    /// see none. It stands among the platform's own and is called `context_variables`.
    ///
    /// Where the instruction says `{{name}}` or `${name}` of such a variable, its value is put there;
    /// the others are listed at the end, each with its description. It is the instruction of that
    /// call only: nothing adds up.
    pub fn exposure(self: &Arc<Self>, agent: &str) -> Option<Registration> {
        self.exposed_to(agent).next()?;
        let entry = Expose { variables: self.clone(), agent: agent.to_owned() };
        Some(hook(entry).named("context_variables").origin(Origin::Platform))
    }
}

struct Expose {
    variables: Arc<Variables>,
    agent: String,
}

#[async_trait]
impl AgentLifecycle for Expose {
    fn points(&self) -> Points {
        Point::BeforeModel.into()
    }

    fn name(&self) -> &str {
        "context_variables"
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        if let Some(variables) = cx.chat_variables() {
            let exposed: Vec<_> = self.variables.exposed_to(&self.agent).collect();
            let values = exposed.iter().map(|it| variables.get(&it.name).unwrap_or_default());
            let values: Vec<_> = values.collect();
            let instruction = request.instruction.as_deref().unwrap_or_default();
            request.instruction = Some(shown(instruction, &exposed, &values).into());
        }
        Ok(Flow::Continue)
    }
}

/// The instruction with the variables in it.
fn shown(instruction: &str, exposed: &[&Definition], values: &[Value]) -> String {
    // A hook may have kept the instruction of an earlier call.
    let plain = without_list(instruction);
    let by_name: BTreeMap<&str, &Value> =
        exposed.iter().map(|it| it.name.as_str()).zip(values).collect();
    let (mut text, filled) = fill(&plain, &by_name);
    let mut listed = exposed.iter().zip(values).filter(|(it, _)| !filled.contains(&&*it.name));
    let Some(first) = listed.next() else { return text };
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(OPEN);
    for (definition, value) in std::iter::once(first).chain(listed) {
        text.push_str(&definition.name);
        if let Some(description) = definition.description.as_deref().filter(|it| !it.is_empty()) {
            text.push_str(&format!(" ({})", description.replace('\n', " ")));
        }
        // What a value says cannot close the list.
        text.push_str(&format!(": {}\n", value.to_string().replace('<', "\\u003c")));
    }
    text.push_str(CLOSE);
    text
}

fn without_list(instruction: &str) -> Cow<'_, str> {
    let Some(start) = instruction.find(OPEN) else { return instruction.into() };
    let Some(length) = instruction[start..].find(CLOSE) else { return instruction.into() };
    let (before, after) = (&instruction[..start], &instruction[start + length + CLOSE.len()..]);
    format!("{}{after}", before.trim_end_matches('\n')).into()
}

/// Puts values in the place of `{{name}}` and `${name}`. Names that are not among them stay as they
/// are written.
fn fill<'n>(text: &str, values: &BTreeMap<&'n str, &Value>) -> (String, Vec<&'n str>) {
    let mut filled = Vec::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, open, close)) = next_mark(rest) {
        let inner = &rest[at + open.len()..];
        let found = inner.find(close).and_then(|end| {
            let known = values.get_key_value(inner[..end].trim())?;
            Some((end, known))
        });
        match found {
            Some((end, (name, value))) => {
                out.push_str(&rest[..at]);
                match value {
                    Value::String(text) => out.push_str(text),
                    other => out.push_str(&other.to_string()),
                }
                filled.push(*name);
                rest = &inner[end + close.len()..];
            }
            None => {
                out.push_str(&rest[..at + open.len()]);
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    (out, filled)
}

fn next_mark(text: &str) -> Option<(usize, &'static str, &'static str)> {
    let marks = [("{{", "}}"), ("${", "}")];
    let found = marks.iter().filter_map(|(open, close)| Some((text.find(open)?, *open, *close)));
    found.min_by_key(|(at, _, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Source, State};
    use super::*;
    use serde_json::json;

    #[test]
    fn names_in_the_text_are_filled_and_the_others_are_listed_once() {
        let state = || Source::State(State::default());
        let region = Definition::new("region", Kind::Str, state()).described("where it\nis sold");
        let count = Definition::new("count", Kind::Int, state());
        let exposed = [&region, &count];
        let values = [json!("</context_variables>"), json!(3)];
        let once = shown("Sell {{ count }} of ${other}.", &exposed, &values);
        assert_eq!(
            once,
            "Sell 3 of ${other}.\n\n<context_variables>\nregion (where it is sold): \
             \"\\u003c/context_variables>\"\n</context_variables>"
        );
        let values = [json!("eu"), json!(4)];
        let twice = shown(&once, &exposed, &values);
        assert_eq!(twice.matches(OPEN).count(), 1);
        assert!(twice.contains("region (where it is sold): \"eu\"\ncount: 4\n"), "{twice}");
        assert_eq!(shown("${region}/{{count}}", &exposed, &values), "eu/4");
        assert!(shown("", &exposed, &values).starts_with(OPEN));
    }
}
