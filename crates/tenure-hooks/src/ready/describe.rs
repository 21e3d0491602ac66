//! Options as people read them: a row for each.

use super::{Bench, Ready};
use serde_json::Value;
use tenure_core::hook::Registration;

/// One option of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionRow {
    /// Its name, as in `edits[].keep`.
    pub name: String,
    /// What it is: `a number`, `a time`, `"trim" or "summarise"`.
    pub kind: String,
    /// What it is if it is left out, as JSON; none, if there is no such value.
    pub default: Option<String>,
    /// Whether it has to be given.
    pub required: bool,
    /// What it is for.
    pub about: String,
}

impl Ready {
    /// A row for each option, those of nested tables after the table.
    pub fn options(&self) -> Vec<OptionRow> {
        let schema = self.schema();
        let mut rows = Vec::new();
        fields(&schema, &schema, "", 0, &mut rows);
        rows
    }

    /// The hook as its example makes it, for whoever describes it.
    pub fn sample(&self) -> Option<Registration> {
        let with = serde_json::from_str(self.about.example).ok()?;
        self.make(&with, &Bench::new()).ok()
    }
}

/// No table nests deeper than this.
const DEEPEST: usize = 4;

fn fields(root: &Value, schema: &Value, path: &str, depth: usize, rows: &mut Vec<OptionRow>) {
    let schema = resolved(root, schema);
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let name_here = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let default = field.get("default").filter(|it| !it.is_null()).map(ToString::to_string);
        rows.push(OptionRow {
            name: name_here.clone(),
            kind: kind(root, field, 0),
            default,
            required: required.contains(&name.as_str()),
            about: match about(root, field) {
                // Of a variant that is one field, what is said is said of the variant.
                text if text.is_empty() => about(root, schema),
                text => text,
            },
        });
        if depth < DEEPEST {
            inside(root, field, &name_here, depth, rows);
        }
    }
}

/// The fields of the tables that a field holds.
fn inside(root: &Value, field: &Value, path: &str, depth: usize, rows: &mut Vec<OptionRow>) {
    let field = resolved(root, field);
    if field["properties"].is_object() {
        fields(root, field, path, depth + 1, rows);
    }
    if let Some(items) = field.get("items") {
        inside(root, items, &format!("{path}[]"), depth, rows);
    }
    if let Some(values) = field.get("additionalProperties").filter(|it| it.is_object()) {
        inside(root, values, &format!("{path}.*"), depth, rows);
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for variant in field[word].as_array().into_iter().flatten() {
            let before = rows.len();
            inside(root, variant, path, depth, rows);
            // Variants of one table may have fields in common.
            let mut seen: Vec<String> = rows[..before].iter().map(|row| row.name.clone()).collect();
            let mut at = before;
            while at < rows.len() {
                if seen.contains(&rows[at].name) {
                    rows.remove(at);
                } else {
                    seen.push(rows[at].name.clone());
                    at += 1;
                }
            }
        }
    }
}

fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let target = schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?));
    target.unwrap_or(schema)
}

fn about(root: &Value, field: &Value) -> String {
    let own = field["description"].as_str();
    let text = own.or_else(|| resolved(root, field)["description"].as_str()).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kind(root: &Value, schema: &Value, depth: usize) -> String {
    if depth > DEEPEST {
        return "a value".to_owned();
    }
    let schema = resolved(root, schema);
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    if let Some(values) = schema["enum"].as_array() {
        return either(values.iter().filter(|it| !it.is_null()).map(ToString::to_string));
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        if let Some(variants) = schema[word].as_array() {
            let kinds = variants.iter().filter(|it| it["type"] != "null");
            return either(kinds.map(|it| kind(root, it, depth + 1)));
        }
    }
    match schema["format"].as_str() {
        Some("model") => return "a model".to_owned(),
        Some("path") => return "a path".to_owned(),
        Some("url") => return "an address".to_owned(),
        Some("time") => return "a time".to_owned(),
        Some("regex") => return "a pattern".to_owned(),
        Some("command") => return "a command".to_owned(),
        _ => {}
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let named = types.into_iter().filter(|it| *it != "null").map(|it| match it {
        "string" => "a text".to_owned(),
        "integer" => "a whole number".to_owned(),
        "number" => "a number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => format!("a list of {}", plural(&kind(root, items, depth + 1))),
            None => "a list".to_owned(),
        },
        _ => match schema.get("additionalProperties").filter(|it| it.is_object()) {
            Some(values) => format!("a table of {}", plural(&kind(root, values, depth + 1))),
            None => "a table".to_owned(),
        },
    });
    let named = either(named);
    if named.is_empty() { "anything".to_owned() } else { named }
}

fn either(kinds: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for kind in kinds {
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

fn plural(kind: &str) -> String {
    match kind {
        "a path" => "paths".to_owned(),
        "a text" => "texts".to_owned(),
        "a table" => "tables".to_owned(),
        "a model" => "models".to_owned(),
        "a pattern" => "patterns".to_owned(),
        "a command" => "commands".to_owned(),
        "a number" => "numbers".to_owned(),
        other => format!("values, each {other}"),
    }
}
