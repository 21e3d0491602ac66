//! The field `tool_input_schema`.

use super::{Reader, present};
use crate::diagnostic::Code;
use crate::source::{Node, Value as Tree};
use serde_json::Value;

/// What an agent takes when it is a tool: a JSON Schema of type object.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSchema(Value);

impl InputSchema {
    /// The schema.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    pub(super) fn read(tree: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let node = reader.mapping(tree, "tool_input_schema")?;
        match node.field("type") {
            Some(kind) if kind.text() == Some("object") => {}
            Some(kind) => reader.problem_help(
                Code::BadInputSchema,
                kind.span,
                "the type of a tool's input must be `object`",
                "write `type: object` and list the parameters under `properties`",
            ),
            None => reader.problem_help(
                Code::BadInputSchema,
                node.span,
                "the schema does not say `type: object`",
                "add `type: object`",
            ),
        }
        let properties = reader.mapping(node, "properties");
        for (key, property) in properties.and_then(Node::map).unwrap_or_default() {
            if !matches!(property.value, Tree::Map(_) | Tree::Bool(_)) {
                reader.problem_help(
                    Code::BadInputSchema,
                    property.span,
                    format!("the property `{}` must be a schema", key.text),
                    "write for example `{ type: string, description: what it is }`",
                );
            }
        }
        for (name, span) in reader.texts(node, "required").unwrap_or_default() {
            let Some(property) = properties.and_then(|map| map.field(&name)) else {
                reader.problem_help(
                    Code::BadInputSchema,
                    span,
                    format!("`{name}` is required, but is not one of the properties"),
                    format!("describe `{name}` under `properties`, or remove it from `required`"),
                );
                continue;
            };
            if property.map().is_some() && present(property, "description").is_none() {
                reader.problem_help(
                    Code::UndescribedParameter,
                    property.span,
                    format!("`{name}` is required, but nothing says what it is"),
                    "add a `description`: it is all that a model knows of it",
                );
            }
        }
        Some(Self(reader.json(node)))
    }
}
