//! Queries with placeholders: `{{runtime.app_id}}` and `{{variable.field}}`.

use super::database::Query;
use super::provided::ENTERPRISE_ID;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tenure_core::chat::Chat;

/// The parts of a text that stand between `{{` and `}}`, trimmed.
pub(super) fn placeholders(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start + 2..].find("}}") else { break };
        found.push(rest[start + 2..start + 2 + length].trim());
        rest = &rest[start + 2 + length + 2..];
    }
    found
}

/// The variable that a placeholder names, and the path in it.
pub(super) fn target(placeholder: &str) -> (&str, &str) {
    let placeholder = match placeholder.strip_prefix("runtime.") {
        Some(rest) => rest,
        None => placeholder.strip_prefix("variables.").unwrap_or(placeholder),
    };
    placeholder.split_once('.').unwrap_or((placeholder, ""))
}

/// What is wrong with a query, if anything: the reason, and what to do.
pub(super) fn check(
    template: &Map<String, Value>,
    is_known: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    for (field, value) in template {
        if field.starts_with('$') {
            let message = format!("the query has the operator `{field}`");
            let help = "a query is a list of fields and the values that they have to have";
            return Some((message, help.to_owned()));
        }
        let text = match value {
            Value::String(text) => text,
            Value::Array(_) | Value::Object(_) => {
                let message = format!("the query compares `{field}` with {}", super::shown(value));
                let help = "compare with a text, a number, true, false or null; a field of a field \
                            is written `outer.inner`";
                return Some((message, help.to_owned()));
            }
            _ => continue,
        };
        for placeholder in placeholders(text) {
            let (name, _) = target(placeholder);
            let is_runtime = placeholder.starts_with("runtime.");
            let is_system = Chat::system_keys().contains(&name) || name == ENTERPRISE_ID;
            if is_runtime && !is_system {
                let message = format!("the query mentions `{placeholder}`, which there is not");
                let keys: Vec<_> =
                    Chat::system_keys().iter().map(|key| format!("runtime.{key}")).collect();
                return Some((message, format!("there are {}", keys.join(", "))));
            }
            if !is_system && !is_known(name) {
                let message = format!(
                    "the query mentions `{name}`, which is no variable that is known before it"
                );
                let help = "name a config, static, file or state variable, or a data_reference \
                            that is declared before this one";
                return Some((message, help.to_owned()));
            }
        }
    }
    None
}

/// The query with everything in its place. The error says what was not there.
pub(super) fn fill(
    template: &Map<String, Value>,
    variables: &BTreeMap<String, Value>,
) -> Result<Query, String> {
    let mut query = Query::new();
    for (field, value) in template {
        let value = match value {
            Value::String(text) => fill_text(text, variables)?,
            other => other.clone(),
        };
        if value.is_array() || value.is_object() {
            let shown = super::shown(&value);
            return Err(format!("the query compares `{field}` with {shown}, which has parts"));
        }
        query = query.with(field.clone(), value);
    }
    Ok(query)
}

fn fill_text(text: &str, variables: &BTreeMap<String, Value>) -> Result<Value, String> {
    let found = placeholders(text);
    // A placeholder alone is its value, of whatever type.
    if let [only] = found.as_slice()
        && text.trim().starts_with("{{")
        && text.trim().ends_with("}}")
        && text.trim().len() == text.trim()[2..].find("}}").map_or(0, |end| end + 4)
    {
        return lookup(only, variables);
    }
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    for placeholder in found {
        let Some((before, after)) = rest.split_once("{{") else { break };
        filled.push_str(before);
        match lookup(placeholder, variables)? {
            Value::String(text) => filled.push_str(&text),
            other => filled.push_str(&other.to_string()),
        }
        rest = after.split_once("}}").map_or("", |(_, rest)| rest);
    }
    filled.push_str(rest);
    Ok(Value::from(filled))
}

fn lookup(placeholder: &str, variables: &BTreeMap<String, Value>) -> Result<Value, String> {
    let (name, path) = match target(placeholder) {
        (ENTERPRISE_ID, path) if !variables.contains_key(ENTERPRISE_ID) => ("app_id", path),
        named => named,
    };
    let whole = variables.get(name).ok_or_else(|| format!("`{name}` has no value"))?;
    Ok(dotted(whole, path).cloned().unwrap_or_default())
}

/// The part of a value at a dotted path; the whole of it if the path is empty.
pub(super) fn dotted<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    path.split('.').try_fold(value, |at, key| match at {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_placeholder_alone_keeps_its_type_and_others_are_text() {
        let variables = BTreeMap::from([
            ("app_id".to_owned(), json!("shop")),
            ("order".to_owned(), json!({ "id": 7, "lines": [{ "sku": "x" }] })),
        ]);
        let template = map(json!({
            "app": "{{ runtime.app_id }}", "id": "{{order.id}}", "name": "{{app_id}}-{{order.id}}",
            "sku": "{{order.lines.0.sku}}", "open": true, "gone": "{{order.none}}"
        }));
        let query = fill(&template, &variables).expect("all is there");
        let filled: Map<String, Value> =
            query.fields().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        assert_eq!(
            Value::Object(filled),
            json!({ "app": "shop", "id": 7, "name": "shop-7", "sku": "x", "open": true,
                    "gone": null })
        );
        let parts = map(json!({ "id": "{{order}}" }));
        assert!(fill(&parts, &variables).is_err_and(|error| error.contains("which has parts")));
    }

    #[test]
    fn operators_parts_and_unknown_names_are_refused() {
        let said = |value: Value| check(&map(value), |name| name == "region").map(|it| it.0);
        assert_eq!(said(json!({ "a": "{{region}}", "b": "{{runtime.user_id}}" })), None);
        for (query, part) in [
            (json!({ "$or": [] }), "the operator `$or`"),
            (json!({ "a": { "$gt": 1 } }), "compares `a` with {\"$gt\":1}"),
            (json!({ "a": "{{runtime.tenant}}" }), "mentions `runtime.tenant`"),
            (json!({ "a": "x {{none.y}}" }), "mentions `none`"),
        ] {
            let said = said(query).expect("it is wrong");
            assert!(said.contains(part), "{said}");
        }
    }
}
