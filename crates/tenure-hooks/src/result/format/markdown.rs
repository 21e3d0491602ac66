//! Markdown out of what is none yet.

use super::json;
use serde_json::{Map, Value};

/// An answer as Markdown: JSON as lists and tables, everything else as it is, with a block of code
/// closed that was left open.
pub(super) fn markdown(answer: &str) -> String {
    let text = answer.trim();
    match serde_json::from_str(text).ok().or_else(|| only_block(text)) {
        Some(value @ (Value::Object(_) | Value::Array(_))) => {
            let mut out = String::new();
            write(&value, 0, &mut out);
            out.trim_end().to_owned()
        }
        _ => closed(text),
    }
}

/// JSON that is all there is beside its fence.
fn only_block(text: &str) -> Option<Value> {
    let is_fence = text.starts_with("```") && text.ends_with("```");
    (is_fence && text.matches("```").count() == 2).then(|| json::find(text))?
}

/// The text with its last block of code closed.
fn closed(text: &str) -> String {
    let mut open: Option<String> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = mark.map_or(0, |mark| line.chars().take_while(|c| *c == mark).count());
        match (&open, mark) {
            (None, Some(mark)) if length >= 3 => open = Some(mark.to_string().repeat(length)),
            (Some(fence), _) if line.trim_end().starts_with(fence.as_str()) => {
                let is_end = line.trim_end().chars().all(|c| fence.starts_with(c));
                open = if is_end { None } else { open };
            }
            _ => {}
        }
    }
    match open {
        Some(fence) => format!("{text}\n{fence}"),
        None => text.to_owned(),
    }
}

fn write(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Array(items) if depth == 0 && is_table(items) => table(items, out),
        Value::Array(items) => {
            for item in items {
                entry(&indent, "", item, depth, out);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                entry(&indent, &format!("**{key}**: "), value, depth, out);
            }
        }
        scalar => out.push_str(&shown(scalar)),
    }
}

fn entry(indent: &str, label: &str, value: &Value, depth: usize, out: &mut String) {
    let line = match value {
        Value::Object(_) | Value::Array(_) if !is_empty(value) => label.trim_end().to_owned(),
        scalar => format!("{label}{}", shown(scalar).replace('\n', &format!("\n{indent}  "))),
    };
    out.push_str(&format!("{indent}- {line}\n"));
    if matches!(value, Value::Object(_) | Value::Array(_)) && !is_empty(value) {
        write(value, depth + 1, out);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Whether all of them are objects of the same fields, with nothing nested in them.
fn is_table(items: &[Value]) -> bool {
    let rows: Option<Vec<&Map<String, Value>>> = items.iter().map(Value::as_object).collect();
    let Some(rows) = rows else { return false };
    let Some(first) = rows.first().filter(|row| !row.is_empty()) else { return false };
    rows.iter().all(|row| {
        row.keys().eq(first.keys())
            && row.values().all(|it| !matches!(it, Value::Object(_) | Value::Array(_)))
    })
}

fn table(items: &[Value], out: &mut String) {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', "<br>");
    let rows: Vec<_> = items.iter().filter_map(Value::as_object).collect();
    let Some(first) = rows.first() else { return };
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&line(first.keys().map(|key| cell(key)).collect()));
    out.push_str(&line(vec!["---".to_owned(); first.len()]));
    for row in rows {
        out.push_str(&line(row.values().map(|value| cell(&shown(value))).collect()));
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        Value::Object(_) | Value::Array(_) => "none".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::markdown;

    #[test]
    fn json_becomes_lists_and_tables() {
        let answer = r#"{"name": "x", "parts": ["a", {"b": 1}], "none": []}"#;
        let lines: Vec<_> = markdown(answer).lines().map(str::to_owned).collect();
        for expected in
            ["- **name**: x", "- **parts**:", "  - a", "    - **b**: 1", "- **none**: none"]
        {
            assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:?}");
        }
        let table = markdown("```json\n[{\"a\": 1, \"b\": \"x|y\"}, {\"a\": 2, \"b\": null}]\n```");
        assert_eq!(table, "| a | b |\n| --- | --- |\n| 1 | x\\|y |\n| 2 | none |");
    }

    #[test]
    fn a_text_stays_and_its_code_is_closed() {
        assert_eq!(markdown("# a\n\n*b*\n"), "# a\n\n*b*");
        assert_eq!(markdown("```rust\nlet a;"), "```rust\nlet a;\n```");
        assert_eq!(markdown("```\na\n```"), "```\na\n```");
        assert_eq!(markdown("~~~~\n```\na"), "~~~~\n```\na\n~~~~");
    }
}
