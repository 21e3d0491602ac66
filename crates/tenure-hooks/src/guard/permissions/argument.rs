//! Where in the arguments of a call something is: `path`, `options.mode`, `files.*`, `/a.b/0`.

use serde_json::Value;
use std::fmt;

/// The place of an argument: names and positions with dots between them, `*` for every item of a
/// list or an object; or a JSON Pointer, if it begins with `/`.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    text: String,
    parts: Vec<Part>,
}

/// What is at the place of an argument.
#[derive(Debug)]
pub(crate) struct Found<'v> {
    pub(crate) values: Vec<&'v Value>,
    /// Whether it, or something on the way, is not there: at all, or for some items.
    pub(crate) missing: bool,
}

#[derive(Clone, Debug)]
enum Part {
    Named(String),
    Each,
}

impl Argument {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = match text.strip_prefix('/') {
            Some(pointer) => pointer
                .split('/')
                .map(|part| Part::Named(part.replace("~1", "/").replace("~0", "~")))
                .collect(),
            None => text
                .split('.')
                .map(|part| if part == "*" { Part::Each } else { Part::Named(part.to_owned()) })
                .collect(),
        };
        let is_empty = |part: &Part| matches!(part, Part::Named(name) if name.is_empty());
        if !text.starts_with('/') && parts.iter().any(is_empty) {
            return Err(format!("`{text}` names no argument; write `path` or `options.mode`"));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// What is there. The error says what there is on the way that can have nothing in it, or no such
    /// thing.
    pub(crate) fn find<'v>(&self, arguments: &'v Value) -> Result<Found<'v>, String> {
        let mut found = Found { values: vec![arguments], missing: false };
        for part in &self.parts {
            let mut next = Vec::new();
            for value in found.values {
                let one = match (part, value) {
                    (Part::Each, Value::Array(items)) => {
                        next.extend(items);
                        continue;
                    }
                    (Part::Each, Value::Object(fields)) => {
                        next.extend(fields.values());
                        continue;
                    }
                    (Part::Each, other) => {
                        return Err(odd(other, "a list or an object"));
                    }
                    (Part::Named(name), Value::Array(items)) => match name.parse::<usize>() {
                        Ok(at) => items.get(at),
                        Err(_) => return Err(odd(value, "an object")),
                    },
                    (Part::Named(name), Value::Object(fields)) => fields.get(name),
                    (Part::Named(_), other) => return Err(odd(other, "an object")),
                };
                found.missing |= one.is_none();
                next.extend(one);
            }
            found.values = next;
        }
        Ok(found)
    }

    /// Puts `value` in place of what is there.
    pub(crate) fn replace(&self, arguments: &mut Value, value: &Value) {
        replace(&self.parts, arguments, value);
    }
}

/// What is said of a value of another kind than is wanted.
pub(super) fn odd(found: &Value, wanted: &str) -> String {
    format!("it is {} where {wanted} belongs", kind(found))
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn replace(parts: &[Part], at: &mut Value, value: &Value) {
    let Some((part, rest)) = parts.split_first() else {
        at.clone_from(value);
        return;
    };
    match (part, at) {
        (Part::Each, Value::Array(items)) => {
            items.iter_mut().for_each(|item| replace(rest, item, value));
        }
        (Part::Each, Value::Object(fields)) => {
            fields.values_mut().for_each(|field| replace(rest, field, value));
        }
        (Part::Named(name), Value::Array(items)) => {
            if let Some(item) = name.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
                replace(rest, item, value);
            }
        }
        (Part::Named(name), Value::Object(fields)) => {
            if let Some(field) = fields.get_mut(name) {
                replace(rest, field, value);
            }
        }
        _ => {}
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
