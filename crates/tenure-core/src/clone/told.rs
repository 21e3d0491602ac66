//! The message of a clone, made from the arguments of a call.
//!
//! Models do not keep to the schema of an agent as they do to that of a function. They say the task
//! under another name, or say nothing else than the task. What they mean is clear then, and a clone
//! that reads it gets further than a model that is told to try again.

use super::ChildOptions;
use crate::tool::ToolError;
use serde_json::{Map, Value};

/// The argument of a tool whose clone is told one text.
const MESSAGE: &str = "message";

impl ChildOptions {
    /// The message that a call's arguments make.
    ///
    /// Without a schema it is `message`, or the only argument if that is a text, or else all of them as
    /// JSON; with one, all of them as JSON, except that the bare text of a call stays what it is.
    pub(super) fn told(&self, arguments: &Value) -> Result<String, ToolError> {
        let mut rest = arguments.as_object().cloned().unwrap_or_default();
        rest.retain(|name, _| !self.keeps(name));
        let only = only_text(&rest);
        match (self.takes_message(), rest.get(MESSAGE), only) {
            (true, Some(Value::String(message)), _) => Ok(message.clone()),
            (true, Some(Value::Null), None) => Err(missing()),
            (true, Some(parts @ (Value::Object(_) | Value::Array(_))), None) if rest.len() == 1 => {
                Ok(parts.to_string())
            }
            (true, Some(other), None) => Err(ToolError::new(format!(
                "argument `message` must be a string, but it is {other}"
            ))),
            (true, _, Some((_, text))) => Ok(text.to_owned()),
            (true, ..) if rest.is_empty() => Err(missing()),
            (false, _, Some((MESSAGE, text))) if !self.has(MESSAGE) => Ok(text.to_owned()),
            _ => Ok(Value::Object(rest).to_string()),
        }
    }

    /// Returns the arguments that go into the clone's state, by key.
    pub(super) fn kept<'a>(
        &'a self,
        arguments: &'a Value,
    ) -> impl Iterator<Item = (String, Value)> + 'a {
        let named = self.state_arguments.iter();
        named.filter_map(|name| Some((format!("_{name}"), arguments.get(&**name)?.clone())))
    }

    fn keeps(&self, argument: &str) -> bool {
        self.state_arguments.iter().any(|name| **name == *argument)
    }

    /// Returns `true` if a call has one text to say.
    fn takes_message(&self) -> bool {
        let Some(schema) = &self.parameters else { return true };
        let properties = schema["properties"].as_object();
        let mut told = properties.into_iter().flat_map(Map::keys).filter(|name| !self.keeps(name));
        told.next().is_some_and(|name| name == MESSAGE) && told.next().is_none()
    }

    /// Returns `true` if the schema has an argument of this name.
    fn has(&self, argument: &str) -> bool {
        self.parameters.as_ref().is_some_and(|it| it["properties"].get(argument).is_some())
    }
}

/// The only argument, if it is a text.
fn only_text(arguments: &Map<String, Value>) -> Option<(&str, &str)> {
    let mut entries = arguments.iter();
    match (entries.next(), entries.next()) {
        (Some((name, Value::String(text))), None) => Some((name, text)),
        _ => None,
    }
}

fn missing() -> ToolError {
    ToolError::new("argument `message` is missing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_model_says_to_an_agent_is_found_in_its_arguments() {
        let schema = |names: &[&str]| {
            let properties: Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
            ChildOptions::default().parameters(json!({ "properties": properties }))
        };
        let plain = ChildOptions::default();
        let message = schema(&["message"]);
        let shaped = schema(&["goal", "depth"]);
        let both = schema(&["message", "depth"]);
        let moded = schema(&["message", "mode"]).state_argument("mode");
        for (options, arguments, expected) in [
            (&plain, json!({ "message": "x" }), Ok("x")),
            (&plain, json!({ "message": "x", "more": 1 }), Ok("x")),
            (&plain, json!({ "message": "" }), Ok("")),
            (&plain, json!({ "task": "x" }), Ok("x")),
            (&plain, json!({ "message": { "a": 1 } }), Ok("{\"a\":1}")),
            (
                &plain,
                json!({ "message": 5 }),
                Err("argument `message` must be a string, but it is 5"),
            ),
            (&plain, json!({ "task": { "a": 1 } }), Ok("{\"task\":{\"a\":1}}")),
            (&plain, json!({ "b": "x", "a": 1 }), Ok("{\"b\":\"x\",\"a\":1}")),
            (&plain, json!({ "message": null }), Err("argument `message` is missing")),
            (&plain, json!({}), Err("argument `message` is missing")),
            (&message, json!({ "message": "x" }), Ok("x")),
            (&shaped, json!({ "goal": "x" }), Ok("{\"goal\":\"x\"}")),
            (&shaped, json!({ "message": "x" }), Ok("x")),
            (&shaped, json!({}), Ok("{}")),
            (&both, json!({ "message": "x" }), Ok("{\"message\":\"x\"}")),
            (&moded, json!({ "message": "x", "mode": "fast" }), Ok("x")),
        ] {
            let told = options.told(&arguments).map_err(|error| error.to_string());
            let told = told.map(|text| {
                // The order of keys is that of the build.
                serde_json::from_str::<Value>(&text).map_or(text, |value| value.to_string())
            });
            let expected = expected.map(|text| {
                serde_json::from_str::<Value>(text).map_or(text.to_owned(), |it| it.to_string())
            });
            assert_eq!(told, expected.map_err(str::to_owned), "{arguments}");
        }
        let arguments = json!({ "mode": "fast" });
        let kept: Vec<_> = moded.kept(&arguments).collect();
        assert_eq!(kept, [("_mode".to_owned(), json!("fast"))]);
    }
}
