//! What a ready-made hook would run and reach because of what a file tells it.

use super::ItemKind;
use super::collect::Collector;
use serde_json::Value;
use std::path::Path;
use tenure_hooks::ready;

impl Collector<'_> {
    /// Adds what a ready-made hook names: models, commands, addresses; and what it lets a model do.
    pub(super) fn ready_made(&mut self, name: &str, with: &Value, used: &str, dir: &Path) {
        let Some(hook) = ready::find(name) else { return };
        let allows = match name {
            "shell" => Some("the model may run commands, as you, after the hook's own guard"),
            "file_search" => Some("the model may find and read files beneath its roots"),
            _ => None,
        };
        if let Some(allows) = allows {
            let what = format!("{name}: {allows}");
            self.push(ItemKind::Permission, what, None, vec![used.to_owned()]);
        }
        let schema = hook.schema();
        let mut found = Vec::new();
        named(&schema, &schema, with, &mut found);
        let used = format!("{used} ({name})");
        for (format, value) in found {
            match (format, value) {
                ("model", Value::String(model)) => {
                    let loaded = self.loaded;
                    self.model(loaded, Some(model), &used);
                }
                ("url", Value::String(address)) => {
                    let what = format!("{name}: requests go to {address}");
                    self.push(ItemKind::Address, what, None, vec![used.clone()]);
                }
                ("command", Value::Array(words)) => {
                    let argv: Vec<String> =
                        words.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect();
                    self.program(&argv, dir, &used);
                }
                _ => {}
            }
        }
        let mut variables = Vec::new();
        environment(with, &mut variables);
        for (field, variable) in variables {
            self.environment(variable, &format!("`{field}` of the hook {name}"), &used);
        }
    }
}

/// Every variable of the environment that is named: by a field that says so.
fn environment<'v>(value: &'v Value, found: &mut Vec<(&'v str, &'v str)>) {
    for (field, inner) in value.as_object().into_iter().flatten() {
        match inner {
            Value::String(variable) if field.ends_with("_env") => found.push((field, variable)),
            Value::Array(several) if field.ends_with("_env") => {
                found.extend(several.iter().filter_map(|it| Some((&**field, it.as_str()?))));
            }
            inner => environment(inner, found),
        }
    }
    for inner in value.as_array().into_iter().flatten() {
        environment(inner, found);
    }
}

/// Every value whose schema has a format that says what it names.
fn named<'v>(
    root: &Value,
    schema: &Value,
    value: &'v Value,
    found: &mut Vec<(&'static str, &'v Value)>,
) {
    for format in ["model", "url", "command"] {
        if schema["format"] == format && !found.iter().any(|(_, it)| std::ptr::eq(*it, value)) {
            found.push((format, value));
        }
    }
    if let Some(path) = schema["$ref"].as_str()
        && let Some(target) = path.strip_prefix('#').and_then(|path| root.pointer(path))
    {
        named(root, target, value, found);
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for schema in schema[word].as_array().into_iter().flatten() {
            named(root, schema, value, found);
        }
    }
    for (field, inner) in value.as_object().into_iter().flatten() {
        let known = schema["properties"].get(field);
        if let Some(schema) = known.or_else(|| schema.get("additionalProperties")) {
            named(root, schema, inner, found);
        }
    }
    for inner in value.as_array().into_iter().flatten() {
        if let Some(schema) = schema.get("items") {
            named(root, schema, inner, found);
        }
    }
}
