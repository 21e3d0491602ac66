//! Whether arguments are what a tool's schema says, in words that a model can read.
//!
//! It knows what the schema of a Python function has: types, `properties`, `required`,
//! `additionalProperties`, `items`, `prefixItems`, `enum` and `anyOf`. What it does not know takes
//! anything.

use crate::reply::found;
use serde_json::{Map, Value};
use std::fmt;

/// A place in the arguments.
#[derive(Clone, Copy)]
enum Place<'a> {
    Arguments,
    Key(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments => Ok(()),
            Self::Key(Self::Arguments, key) => f.write_str(key),
            Self::Key(outer, key) => write!(f, "{outer}.{key}"),
            Self::Item(outer, at) => write!(f, "{outer}[{at}]"),
        }
    }
}

/// Checks the arguments of a call. The error says what is wrong with the first that is.
pub(super) fn check(schema: &Value, arguments: &Value) -> Result<(), String> {
    check_at(Place::Arguments, schema, arguments)
}

fn check_at(place: Place<'_>, schema: &Value, value: &Value) -> Result<(), String> {
    // A default is good, whatever its type: the function itself has it.
    if schema.get("default") == Some(value) {
        return Ok(());
    }
    if let Some(Value::Array(any)) = schema.get("anyOf") {
        // Of several, the one whose type it has says best what is wrong with it.
        let mut of_its_type = any.iter().filter(|it| has_type(it, value)).peekable();
        if of_its_type.peek().is_none() {
            return Err(wrong(place, schema, value));
        }
        let tried: Vec<_> = of_its_type.map(|it| check_at(place, it, value)).collect();
        if tried.iter().any(Result::is_ok) {
            return Ok(());
        }
        return tried.into_iter().next().unwrap_or(Ok(()));
    }
    let is_listed =
        schema.get("enum").and_then(Value::as_array).is_none_or(|all| all.contains(value));
    if !is_listed || !has_type(schema, value) {
        return Err(wrong(place, schema, value));
    }
    match value {
        Value::Object(object) => check_object(place, schema, object),
        Value::Array(list) => check_list(place, schema, list),
        _ => Ok(()),
    }
}

fn check_object(
    place: Place<'_>,
    schema: &Value,
    object: &Map<String, Value>,
) -> Result<(), String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let property = |key: &str| properties.and_then(|all| all.get(key));
    for key in names(schema.get("required")) {
        if !object.contains_key(key) {
            let must = property(key).map(expected).filter(|it| !it.is_empty());
            let must = must.map(|must| format!("; it must be {must}")).unwrap_or_default();
            return Err(format!("argument `{}` is missing{must}", Place::Key(&place, key)));
        }
    }
    for (key, value) in object {
        let at = Place::Key(&place, key);
        match (property(key), schema.get("additionalProperties")) {
            (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                check_at(at, schema, value)?;
            }
            (None, Some(Value::Bool(false))) => {
                let known: Vec<_> = properties
                    .into_iter()
                    .flat_map(Map::keys)
                    .map(|it| format!("`{it}`"))
                    .collect();
                let known = match known.is_empty() {
                    true => "there are none".to_owned(),
                    false => format!("there are {}", known.join(", ")),
                };
                return Err(format!("argument `{at}` is unknown; {known}"));
            }
            (None, _) => {}
        }
    }
    Ok(())
}

fn check_list(place: Place<'_>, schema: &Value, list: &[Value]) -> Result<(), String> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let size = list.len() as u64;
    if bound("minItems").is_some_and(|least| size < least)
        || bound("maxItems").is_some_and(|most| size > most)
    {
        let of = bound("minItems").or(bound("maxItems")).unwrap_or_default();
        return Err(format!("argument `{place}` must be a list of {of}, but is one of {size}"));
    }
    let first = schema.get("prefixItems").and_then(Value::as_array);
    for (at, value) in list.iter().enumerate() {
        let schema = first.and_then(|first| first.get(at)).or_else(|| schema.get("items"));
        if let Some(schema) = schema {
            check_at(Place::Item(&place, at), schema, value)?;
        }
    }
    Ok(())
}

fn has_type(schema: &Value, value: &Value) -> bool {
    match schema.get("type").and_then(Value::as_str) {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => {
            // A number is whole however it is written.
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    }
}

fn wrong(place: Place<'_>, schema: &Value, value: &Value) -> String {
    let (must, is) = (expected(schema), found(value));
    match place {
        Place::Arguments => format!("the arguments must be {must}, but are {is}"),
        place => format!("argument `{place}` must be {must}, but is {is}"),
    }
}

/// What a schema takes, in words; empty if it takes anything.
fn expected(schema: &Value) -> String {
    if let Some(Value::Array(any)) = schema.get("anyOf") {
        return any.iter().map(expected).collect::<Vec<_>>().join(" or ");
    }
    if let Some(Value::Array(all)) = schema.get("enum") {
        return all.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ");
    }
    let words = match schema.get("type").and_then(Value::as_str) {
        Some("null") => "null",
        Some("boolean") => "true or false",
        Some("string") => "a text",
        Some("number") => "a number",
        Some("integer") => "an integer",
        Some("array") => "a list",
        Some("object") => "an object",
        _ => "",
    };
    words.to_owned()
}

fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_said() {
        let spot = json!({ "type": "object", "properties": { "x": { "type": "integer" } },
                           "required": ["x"] });
        let schema = json!({
            "type": "object",
            "properties": {
                "x": { "type": "integer" },
                "ratio": { "type": "number" },
                "name": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "size": { "type": "string", "enum": ["small", "big"] },
                "late": { "type": "integer", "default": null },
                "yes": { "type": "boolean" },
                "spots": { "type": "array", "items": spot },
                "pair": { "type": "array", "minItems": 2, "maxItems": 2,
                          "prefixItems": [{ "type": "integer" }, { "type": "string" }] },
                "table": { "type": "object", "additionalProperties": { "type": "integer" } },
                "any": { "description": "whatever" },
                "one": { "anyOf": [{ "type": "string" }, { "type": "array",
                                   "items": { "type": "integer" } }] },
            },
            "required": ["x"],
            "additionalProperties": false,
        });
        for good in [
            json!({ "x": 1 }),
            json!({ "x": 2.0, "ratio": 1, "name": null, "late": null, "any": [1, {}] }),
            json!({ "x": 1, "ratio": 0.5, "name": "n", "size": "big", "late": 3, "yes": false }),
            json!({ "x": 1, "spots": [{ "x": 1, "y": 2 }], "pair": [1, "a"], "table": { "a": 1 } }),
            json!({ "x": 1, "one": [1, 2] }),
        ] {
            assert_eq!(check(&schema, &good), Ok(()), "{good}");
        }
        for (bad, said) in [
            (json!({}), "argument `x` is missing; it must be an integer"),
            (
                json!({ "x": "notint" }),
                "argument `x` must be an integer, but is the text \"notint\"",
            ),
            (json!({ "x": 1.5 }), "argument `x` must be an integer, but is the number 1.5"),
            (json!({ "x": null }), "argument `x` must be an integer, but is null"),
            (json!({ "x": true }), "argument `x` must be an integer, but is true"),
            (json!({ "x": 1, "name": 5 }), "`name` must be a text or null, but is the number 5"),
            (json!({ "x": 1, "size": "huge" }), "must be \"small\" or \"big\", but is the text"),
            (json!({ "x": 1, "yes": 1 }), "`yes` must be true or false, but is the number 1"),
            (json!({ "x": 1, "spots": [{}] }), "argument `spots[0].x` is missing"),
            (json!({ "x": 1, "spots": {} }), "`spots` must be a list, but is an object"),
            (json!({ "x": 1, "pair": [1] }), "`pair` must be a list of 2, but is one of 1"),
            (json!({ "x": 1, "pair": [1, 2] }), "`pair[1]` must be a text"),
            (json!({ "x": 1, "table": { "a": "b" } }), "`table.a` must be an integer"),
            (json!({ "x": 1, "one": [1, "b"] }), "`one[1]` must be an integer"),
            (json!({ "x": 1, "y": 2 }), "argument `y` is unknown; there are `x`"),
            (json!([]), "the arguments must be an object, but are a list of 0"),
        ] {
            let why = check(&schema, &bad).expect_err("it is wrong");
            assert!(why.contains(said), "{bad}: {why}");
        }
        assert_eq!(check(&json!({}), &json!({ "a": 1 })), Ok(()));
    }
}
