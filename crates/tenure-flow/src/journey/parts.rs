//! The parts of a structured output: one child each.

use crate::output::unfenced;
use serde_json::{Map, Value};

/// Where the parts of an output are, if it is an object.
const LISTS: [&str; 9] = [
    "children",
    "tasks",
    "sub_tasks",
    "subtasks",
    "workflows",
    "modules",
    "agents",
    "items",
    "parts",
];

/// What a part tells its child first.
const MESSAGES: [&str; 6] =
    ["initial_message", "message", "prompt", "task", "instructions", "description"];

/// One part of an output.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// What the child is called in results.
    pub(super) name: Option<String>,
    /// The workflow that the part itself names.
    pub(super) workflow: Option<String>,
    pub(super) initial_agent: Option<String>,
    pub(super) message: String,
    pub(super) variables: Map<String, Value>,
}

impl Part {
    fn new(value: &Value) -> Self {
        let text = |names: &[&str]| {
            names.iter().find_map(|name| value.get(name)?.as_str().map(str::to_owned))
        };
        let message = match value {
            Value::String(text) => text.clone(),
            other => text(&MESSAGES).unwrap_or_else(|| other.to_string()),
        };
        let variables = ["context_variables", "context"]
            .iter()
            .find_map(|name| value.get(name)?.as_object().cloned())
            .unwrap_or_default();
        Self {
            name: text(&["name", "id", "task_id"]),
            workflow: text(&["workflow", "workflow_name", "generator_workflow"]),
            initial_agent: text(&["initial_agent"]),
            message,
            variables,
        }
    }
}

/// The JSON that an agent answered with: an object or a list, possibly fenced.
pub(super) fn structured(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(unfenced(text)).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

/// The parts: the items of the list; of an object those of the first list that has one of the names
/// above, else those of its only list; else the whole object is the only part.
pub(super) fn parts(output: &Value) -> Vec<Part> {
    let list = match output {
        Value::Array(items) => Some(items),
        Value::Object(fields) => {
            let named = LISTS.iter().find_map(|name| fields.get(*name)?.as_array());
            let mut lists = fields.values().filter_map(Value::as_array);
            named.or_else(|| lists.next().filter(|_| lists.next().is_none()))
        }
        _ => None,
    };
    match list {
        Some(items) => items.iter().map(Part::new).collect(),
        None => vec![Part::new(output)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(output: Value) -> Vec<String> {
        parts(&output).into_iter().map(|part| part.message).collect()
    }

    #[test]
    fn parts_are_found_where_outputs_have_them() {
        assert_eq!(messages(json!(["a", "b"])), ["a", "b"]);
        assert_eq!(messages(json!({ "note": "x", "tasks": ["a"], "other": [1, 2] })), ["a"]);
        assert_eq!(messages(json!({ "pages": [{ "prompt": "a" }, { "task": "b" }] })), ["a", "b"]);
        assert_eq!(messages(json!({ "message": "only" })), ["only"]);
        assert_eq!(messages(json!({ "x": [1], "y": [2] })), [r#"{"x":[1],"y":[2]}"#]);
        assert!(parts(&json!({ "tasks": [] })).is_empty());
    }

    #[test]
    fn a_part_says_who_does_it_and_with_what() {
        let part = json!({
            "name": "first", "workflow": "W", "initial_agent": "a", "message": "go",
            "context": { "k": 1 },
        });
        let part = Part::new(&part);
        assert_eq!(part.name.as_deref(), Some("first"));
        assert_eq!(part.workflow.as_deref(), Some("W"));
        assert_eq!(part.initial_agent.as_deref(), Some("a"));
        assert_eq!((part.message.as_str(), &part.variables["k"]), ("go", &json!(1)));
    }

    #[test]
    fn only_objects_and_lists_are_structured() {
        assert_eq!(structured("```json\n{\"a\":1}\n```"), Some(json!({ "a": 1 })));
        assert_eq!(structured(" [1] "), Some(json!([1])));
        assert_eq!(structured("7"), None);
        assert_eq!(structured("well, {"), None);
    }
}
