//! The tree of values that a card's YAML holds.

use super::Span;

/// A key of a mapping. Keys are always text: `on:` is the key "on", not a truth value.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Where the key stands.
    pub span: Span,
    /// Its text.
    pub text: String,
}

/// A value with its place.
///
/// A value that came by an alias has the span of the alias, and what is inside it the spans of the
/// anchored definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where the value stands.
    pub span: Span,
    /// The value.
    pub value: Value,
    /// The text of a scalar that is no [`Value::Text`], as it was written (`0x1F`, `yes`, `~`);
    /// empty for every other value. [`Node::scalar`] gives the text of any scalar.
    pub raw: Box<str>,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: an empty value, `~` or `null`.
    Null,
    /// A truth value; `yes`, `no`, `on` and `off` are truth values too.
    Bool(bool),
    /// A whole number that fits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order written, each key once.
    Map(Vec<(Key, Node)>),
}

impl Value {
    /// What the value is called in messages: "a list", "a number", and so on.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a truth value",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

impl Node {
    /// A node without a written form of its own.
    pub fn new(span: Span, value: Value) -> Self {
        Self { span, value, raw: Box::default() }
    }

    /// The text, if this is text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of any scalar: that of a text, and for the others what was written.
    pub fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Map(_) => None,
            _ => Some(&self.raw),
        }
    }

    /// The entries, if this is a mapping.
    pub fn map(&self) -> Option<&[(Key, Node)]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entry of a mapping with this key.
    pub fn entry(&self, key: &str) -> Option<(&Key, &Node)> {
        let (key, node) = self.map()?.iter().find(|(found, _)| found.text == key)?;
        Some((key, node))
    }

    /// The value of a mapping's entry with this key.
    pub fn field(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, node)| node)
    }

    /// The value as JSON. A number that JSON cannot hold (`.inf`, `.nan`) becomes its text.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Float(value) => serde_json::Number::from_f64(*value)
                .map_or_else(|| Json::String(self.raw.to_string()), Json::Number),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Map(entries) => Json::Object(
                entries.iter().map(|(key, node)| (key.text.clone(), node.to_json())).collect(),
            ),
        }
    }
}
