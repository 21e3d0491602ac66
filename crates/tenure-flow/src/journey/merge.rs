//! How the results of children become one.

use super::{MergeMode, OutputContract};
use crate::chat::{ChatReport, ChatStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// What became of a child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ChildResult {
    pub(super) id: Arc<str>,
    pub(super) name: String,
    pub(super) workflow: Arc<str>,
    /// The status of its chat; `timed_out` if the journey's time was up.
    pub(super) status: Cow<'static, str>,
    /// What it gave, if it succeeded.
    pub(super) output: Result<Value, String>,
}

impl ChildResult {
    pub(super) fn new(
        report: &ChatReport,
        name: String,
        contract: &OutputContract,
        is_late: bool,
    ) -> Self {
        let why = || {
            let error = report.error.as_ref().map(ToString::to_string);
            error.unwrap_or_else(|| format!("it ended as {}", report.status))
        };
        let (status, output) = match report.status {
            ChatStatus::Completed => match fulfil(report, contract) {
                Ok(output) => ("completed", Ok(output)),
                Err(lacks) => ("failed", Err(lacks)),
            },
            ChatStatus::Cancelled if is_late => {
                ("timed_out", Err("it did not end in the journey's time".to_owned()))
            }
            other => (other.as_str(), Err(why())),
        };
        let (id, workflow) = (report.chat_id.clone(), report.flow.clone());
        Self { id, name, workflow, status: status.into(), output }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.output.is_ok()
    }

    fn entry(&self) -> Value {
        let mut entry = json!({
            "child": self.id,
            "name": self.name,
            "workflow": self.workflow,
            "status": self.status,
        });
        let (key, value) = match &self.output {
            Ok(output) => ("output", output.clone()),
            Err(error) => ("error", Value::from(&**error)),
        };
        entry[key] = value;
        entry
    }
}

/// A child's result as its contract has it: what the output lacks is looked for among the child's
/// variables.
fn fulfil(report: &ChatReport, contract: &OutputContract) -> Result<Value, String> {
    let output = super::parts::structured(&report.output)
        .unwrap_or_else(|| Value::from(report.output.as_str()));
    if contract.required.is_empty() && contract.optional.is_empty() {
        return Ok(output);
    }
    let mut fields = match output {
        Value::Object(fields) => fields,
        other => Map::from_iter([("output".to_owned(), other)]),
    };
    for name in contract.required.iter().chain(&contract.optional) {
        if !fields.contains_key(name)
            && let Some(value) = report.variables.get(name)
        {
            fields.insert(name.clone(), value.clone());
        }
    }
    let lacks: Vec<_> = contract.required.iter().filter(|it| !fields.contains_key(*it)).collect();
    match lacks.as_slice() {
        [] => Ok(Value::Object(fields)),
        lacks => Err(format!("its result lacks {lacks:?}, which its output contract requires")),
    }
}

/// Makes one of all, in the order of the children.
pub(super) fn merge(mode: MergeMode, children: &[ChildResult]) -> Value {
    let outputs = children.iter().filter_map(|child| Some((child, child.output.as_ref().ok()?)));
    match mode {
        MergeMode::CollectAll => children.iter().map(ChildResult::entry).collect(),
        MergeMode::Concatenate => {
            let texts: Vec<_> = outputs
                .map(|(_, output)| match output {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
                .collect();
            Value::from(texts.join("\n\n"))
        }
        MergeMode::Structured => {
            let mut merged = Value::Object(Map::new());
            for (child, output) in outputs {
                match output {
                    Value::Object(_) => deep_merge(&mut merged, output),
                    // It has no names of its own, so it goes by that of its child.
                    other => {
                        let named = Map::from_iter([(child.name.clone(), other.clone())]);
                        deep_merge(&mut merged, &Value::Object(named));
                    }
                }
            }
            merged
        }
    }
}

/// Maps are merged, lists follow each other, and of what else collides the later is kept.
fn deep_merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(key) {
                    Some(known) => deep_merge(known, value),
                    None => {
                        into.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from.iter().cloned()),
        (into, from) => *into = from.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(name: &str, output: Result<Value, String>) -> ChildResult {
        let status = if output.is_ok() { "completed" } else { "failed" };
        let (id, workflow, status) = (name.into(), "w".into(), status.into());
        ChildResult { id, name: name.into(), workflow, status, output }
    }

    #[test]
    fn structured_results_are_merged_deeply_and_the_later_child_wins() {
        let children = [
            child("a", Ok(json!({ "x": { "one": 1, "both": "a" }, "list": [1] }))),
            child("b", Err("it broke".into())),
            child("c", Ok(json!({ "x": { "two": 2, "both": "c" }, "list": [2] }))),
            child("d", Ok(json!("words"))),
        ];
        assert_eq!(
            merge(MergeMode::Structured, &children),
            json!({ "x": { "one": 1, "two": 2, "both": "c" }, "list": [1, 2], "d": "words" })
        );
    }

    #[test]
    fn texts_follow_each_other_in_the_order_of_the_children() {
        let children = [
            child("a", Ok(json!("first"))),
            child("b", Err("it broke".into())),
            child("c", Ok(json!({ "n": 3 }))),
        ];
        assert_eq!(merge(MergeMode::Concatenate, &children), json!("first\n\n{\"n\":3}"));
    }

    #[test]
    fn what_is_collected_says_who_failed_and_why() {
        let children = [child("a", Ok(json!(1))), child("b", Err("it broke".into()))];
        assert_eq!(
            merge(MergeMode::CollectAll, &children),
            json!([
                { "child": "a", "name": "a", "workflow": "w", "status": "completed", "output": 1 },
                {
                    "child": "b", "name": "b", "workflow": "w", "status": "failed",
                    "error": "it broke",
                },
            ])
        );
        assert_eq!(merge(MergeMode::Structured, &[]), json!({}));
    }
}
