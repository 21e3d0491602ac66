//! Whether an answer has the form that was asked for.
//!
//! This is the part of JSON Schema that forms are made of: `type`, `enum`, `const`, `required`,
//! `properties`, `additionalProperties: false`, `items`, the bounds of numbers, texts and lists, and of
//! the formats `date`, `date-time`, `email` and `uri`.
//! Whatever else a schema says is not looked at, and so refuses nothing.

use serde_json::{Map, Value};
use std::fmt;

/// Why an answer does not have the form that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfit {
    /// Where in the answer: `address.city`, `tags[2]`, or nothing for the whole of it.
    pub field: String,
    /// What was found, and what is wanted.
    pub reason: String,
}

impl Misfit {
    fn new(field: &str, reason: impl Into<String>) -> Self {
        Self { field: field.to_owned(), reason: reason.into() }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.reason),
            field => write!(f, "`{field}`: {}", self.reason),
        }
    }
}

impl std::error::Error for Misfit {}

/// How deep an answer is looked at. Nobody fills in a form that is deeper.
const DEEPEST: usize = 32;

/// Whether `value` fits `schema`.
///
/// ```
/// use serde_json::json;
/// use tenure_core::ask::check;
///
/// let schema = json!({ "type": "object", "required": ["city"],
///                      "properties": { "city": { "type": "string" } } });
/// assert!(check(&schema, &json!({ "city": "Bern" })).is_ok());
/// let misfit = check(&schema, &json!({ "city": 3 })).unwrap_err();
/// assert_eq!(misfit.field, "city");
/// ```
pub fn check(schema: &Value, value: &Value) -> Result<(), Misfit> {
    check_at("", schema, value, 0)
}

/// Whether a reply in words fits `schema`: as it is where a text is wanted, else as JSON.
pub fn check_text(schema: &Value, text: &str) -> Result<(), Misfit> {
    read_text(schema, text).map(drop)
}

/// What a reply in words says, if it fits `schema`.
pub fn read_text(schema: &Value, text: &str) -> Result<Value, Misfit> {
    let as_text = Value::String(text.to_owned());
    let whole = check(schema, &as_text);
    if whole.is_ok() {
        return Ok(as_text);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) => check(schema, &value).map(|()| value),
        Err(_) if wants(schema, "string") => whole.map(|()| as_text),
        Err(error) => {
            let wanted = kinds(schema).join(" or ");
            let wanted = if wanted.is_empty() { "JSON".to_owned() } else { wanted };
            Err(Misfit::new("", format!("this is not JSON ({error}); wanted is {wanted}")))
        }
    }
}

/// The types that the schema names.
fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn wants(schema: &Value, kind: &str) -> bool {
    kinds(schema).contains(&kind)
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        // 3.0 is a whole number in JSON Schema.
        "integer" => match value.as_f64() {
            Some(number) => value.is_i64() || value.is_u64() || number.fract() == 0.0,
            None => false,
        },
        // A type that does not exist refuses nothing.
        _ => true,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn check_at(at: &str, schema: &Value, value: &Value, depth: usize) -> Result<(), Misfit> {
    if depth > DEEPEST {
        return Err(Misfit::new(at, "this is nested too deeply"));
    }
    let kinds = kinds(schema);
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(kind, value)) {
        let (found, wanted) = (kind_of(value), kinds.join(" or "));
        return Err(Misfit::new(at, format!("this is {found}; wanted is {wanted}")));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(shown).collect();
        let reason = format!("{} is not one of {}", shown(value), allowed.join(", "));
        return Err(Misfit::new(at, reason));
    }
    if let Some(wanted) = schema.get("const")
        && wanted != value
    {
        return Err(Misfit::new(at, format!("this must be {}", shown(wanted))));
    }
    check_bounds(at, schema, value)?;
    if let (Some(format), Value::String(text)) = (schema.get("format"), value)
        && let Some(wanted) = format.as_str().and_then(|format| super::format::misfit(format, text))
    {
        return Err(Misfit::new(at, format!("{} is not {wanted}", shown(value))));
    }
    match value {
        Value::Object(fields) => check_object(at, schema, fields, depth),
        Value::Array(items) => {
            let Some(schema) = schema.get("items").filter(|items| items.is_object()) else {
                return Ok(());
            };
            items.iter().enumerate().try_for_each(|(index, item)| {
                check_at(&format!("{at}[{index}]"), schema, item, depth + 1)
            })
        }
        _ => Ok(()),
    }
}

fn check_object(
    at: &str,
    schema: &Value,
    fields: &Map<String, Value>,
    depth: usize,
) -> Result<(), Misfit> {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            return Err(Misfit::new(&below(name), "this is required, and not there"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    for (name, value) in fields {
        match properties.and_then(|properties| properties.get(name)) {
            Some(schema) => check_at(&below(name), schema, value, depth + 1)?,
            None if is_closed => return Err(Misfit::new(&below(name), "there is no such field")),
            None => {}
        }
    }
    Ok(())
}

fn check_bounds(at: &str, schema: &Value, value: &Value) -> Result<(), Misfit> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let wrong = |what: String| Err(Misfit::new(at, what));
    let (size, least, most, unit) = match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if let Some(limit) = bound("exclusiveMinimum").filter(|limit| number <= *limit) {
                return wrong(format!("this must be more than {limit}"));
            }
            if let Some(limit) = bound("exclusiveMaximum").filter(|limit| number >= *limit) {
                return wrong(format!("this must be less than {limit}"));
            }
            (number, bound("minimum"), bound("maximum"), "")
        }
        Value::String(text) => {
            let length = text.chars().count() as f64;
            (length, bound("minLength"), bound("maxLength"), " characters")
        }
        Value::Array(items) => (items.len() as f64, bound("minItems"), bound("maxItems"), " items"),
        _ => return Ok(()),
    };
    if let Some(least) = least.filter(|least| size < *least) {
        return wrong(format!("this must be at least {least}{unit}"));
    }
    if let Some(most) = most.filter(|most| size > *most) {
        return wrong(format!("this must be at most {most}{unit}"));
    }
    Ok(())
}

/// A value as a message has it, short.
fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn misfit(schema: &Value, value: Value) -> String {
        check(schema, &value).expect_err("it does not fit").to_string()
    }

    #[test]
    fn an_object_is_held_against_its_fields() {
        let schema = json!({
            "type": "object",
            "required": ["city"],
            "additionalProperties": false,
            "properties": {
                "city": { "type": "string", "minLength": 1 },
                "days": { "type": "integer", "minimum": 1, "maximum": 14 },
                "pace": { "enum": ["slow", "fast"] },
                "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 2 },
                "home": { "type": "object", "properties": { "zip": { "type": "string" } } },
            },
        });
        let fits = json!({ "city": "Bern", "days": 3.0, "pace": "slow", "tags": ["a"] });
        assert_eq!(check(&schema, &fits), Ok(()));
        let table = [
            (json!([]), "this is a list; wanted is object"),
            (json!({}), "`city`: this is required, and not there"),
            (json!({ "city": 3 }), "`city`: this is a number; wanted is string"),
            (json!({ "city": "" }), "`city`: this must be at least 1 characters"),
            (json!({ "city": "B", "days": 0 }), "`days`: this must be at least 1"),
            (json!({ "city": "B", "days": 1.5 }), "`days`: this is a number; wanted is integer"),
            (json!({ "city": "B", "pace": "so" }), "`pace`: so is not one of slow, fast"),
            (json!({ "city": "B", "tags": [1] }), "`tags[0]`: this is a number; wanted is string"),
            (json!({ "city": "B", "tags": ["", "", ""] }), "`tags`: this must be at most 2 items"),
            (
                json!({ "city": "B", "home": { "zip": 1 } }),
                "`home.zip`: this is a number; wanted is string",
            ),
            (json!({ "city": "B", "town": 1 }), "`town`: there is no such field"),
        ];
        for (value, said) in table {
            assert_eq!(misfit(&schema, value), said);
        }
    }

    #[test]
    fn a_reply_in_words_is_text_where_text_is_wanted_and_json_elsewhere() {
        let text = json!({ "type": "string" });
        assert_eq!(read_text(&text, "3"), Ok(json!("3")));
        let number = json!({ "type": "integer" });
        assert_eq!(read_text(&number, "3"), Ok(json!(3)));
        let said = read_text(&number, "many").expect_err("no number").to_string();
        assert!(said.starts_with("this is not JSON") && said.ends_with("wanted is integer"));
        let choice = json!({ "type": "string", "enum": ["a", "b"] });
        let said = read_text(&choice, "c").expect_err("no choice").to_string();
        assert_eq!(said, "c is not one of a, b");
        assert_eq!(read_text(&json!({}), "anything"), Ok(json!("anything")));
    }

    #[test]
    fn what_a_schema_says_beyond_forms_refuses_nothing() {
        let schema =
            json!({ "type": "no such type", "oneOf": [{ "type": "null" }], "format": "x" });
        assert_eq!(check(&schema, &json!("anything")), Ok(()));
        assert_eq!(check(&json!(true), &json!(3)), Ok(()));
    }

    #[test]
    fn an_answer_that_is_nested_without_end_is_refused() {
        let mut schema = json!({ "type": "object" });
        let mut value = json!({});
        for _ in 0..40 {
            schema = json!({ "type": "object", "properties": { "a": schema } });
            value = json!({ "a": value });
        }
        assert!(misfit(&schema, value).ends_with("this is nested too deeply"));
    }
}
