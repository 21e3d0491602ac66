//! Tables as the text of a `tenure.toml`.

use toml::de::{DeTable, DeValue};

/// The reader of a written configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The program.
    Program,
    /// A person: values that may be secrets are left out.
    Person,
}

/// Writes the tables: what is no table first, then each table under its name.
pub(super) fn toml(table: &DeTable<'_>, reader: Reader) -> String {
    let mut text = String::new();
    write(table, "", reader, &mut text);
    text
}

fn write(table: &DeTable<'_>, path: &str, reader: Reader, text: &mut String) {
    let is_table = |value: &DeValue<'_>| value.is_table();
    let plain = || table.iter().filter(|(_, value)| !is_table(value.get_ref()));
    if !path.is_empty() && plain().next().is_some() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}[{path}]\n"));
    }
    let is_given = path.ends_with(".headers") || path.ends_with(".env");
    for (name, value) in plain() {
        let mut value = said(value.get_ref());
        if is_given && reader == Reader::Person && !value.contains("${") {
            value = "\"***\"".to_owned();
        }
        text.push_str(&format!("{} = {value}\n", key(name.get_ref())));
    }
    for (name, value) in table {
        if let Some(inner) = value.get_ref().as_table() {
            let name = key(name.get_ref());
            let path = if path.is_empty() { name } else { format!("{path}.{name}") };
            write(inner, &path, reader, text);
        }
    }
}

fn said(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(said) => said.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| said(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        // Neither a date nor a table in a list comes from the YAML of a configuration.
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Table(_) => "{}".to_owned(),
    }
}

/// A name, in quotes if it needs them.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(plain) { name.to_owned() } else { quoted(name) }
}

/// A text in quotes. What JSON escapes is escaped in the same way here.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
