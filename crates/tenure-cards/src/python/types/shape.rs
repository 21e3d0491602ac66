//! Schemas put together.

use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::Expr;
use serde_json::{Value, json};

use super::literal;

/// The schema of what fits one of several.
pub(super) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    let mut flat: Vec<Value> = Vec::new();
    for mut schema in schemas {
        let inner = match schema.get_mut("anyOf") {
            Some(Value::Array(inner)) => std::mem::take(inner),
            _ => vec![schema],
        };
        for each in inner {
            if !flat.contains(&each) {
                flat.push(each);
            }
        }
    }
    match flat.len() {
        // `{}` takes anything, so the others add nothing.
        _ if flat.iter().any(|schema| schema == &json!({})) => json!({}),
        1 => flat.remove(0),
        _ => json!({ "anyOf": flat }),
    }
}

/// The schema of one of these values.
pub(super) fn enumeration(values: Vec<Value>) -> Value {
    let of = |is: fn(&Value) -> bool, name: &str| {
        values.iter().all(is).then(|| json!({ "type": name, "enum": values }))
    };
    if values.is_empty() {
        return json!({});
    }
    of(Value::is_string, "string")
        .or_else(|| of(Value::is_boolean, "boolean"))
        .or_else(|| of(Value::is_i64, "integer"))
        .unwrap_or_else(|| json!({ "enum": values }))
}

/// The keyword of a call.
pub(super) fn keyword<'e>(call: &'e ast::ExprCall, name: &str) -> Option<&'e Expr> {
    let mut keywords = call.arguments.keywords.iter();
    let found = keywords.find(|it| it.arg.as_ref().is_some_and(|arg| arg.as_str() == name));
    found.map(|it| &it.value)
}

/// The description in an argument of `Annotated`: a text, or `Field(description="...")`.
pub(super) fn description(note: &Expr) -> Option<String> {
    let text = match note {
        Expr::Call(call) => keyword(call, "description")?,
        other => other,
    };
    match text {
        Expr::StringLiteral(text) => Some(text.value.to_str().to_owned()),
        _ => None,
    }
}

/// What `Field` calls a bound, for numbers, texts and lists.
const BOUNDS: &[(&str, [&str; 3])] = &[
    ("ge", ["minimum", "", ""]),
    ("gt", ["exclusiveMinimum", "", ""]),
    ("le", ["maximum", "", ""]),
    ("lt", ["exclusiveMaximum", "", ""]),
    ("multiple_of", ["multipleOf", "", ""]),
    ("min_length", ["", "minLength", "minItems"]),
    ("max_length", ["", "maxLength", "maxItems"]),
    ("pattern", ["", "pattern", ""]),
];

/// Adds the bounds that `Field(ge=1, max_length=5)` gives.
pub(super) fn constrain(schema: &mut Value, note: &Expr) {
    let (Expr::Call(call), Some(map)) = (note, schema.as_object_mut()) else { return };
    let place = match map.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => 0,
        Some("string") => 1,
        Some("array") => 2,
        _ => return,
    };
    for (name, keys) in BOUNDS {
        let bound = keyword(call, name).and_then(literal);
        if let Some(bound) = bound.filter(|_| !keys[place].is_empty()) {
            map.insert(keys[place].to_owned(), bound);
        }
    }
}
