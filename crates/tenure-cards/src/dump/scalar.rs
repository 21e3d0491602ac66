//! Text as a YAML scalar.

use crate::source::{Node, Value, resolve_plain};

/// The text as the shortest scalar that reads back as this text, on one line, also inside braces.
pub(super) fn inline(text: &str) -> String {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let plain =
        text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric() || first == b'_')
            && text.bytes().all(word)
            && matches!(resolve_plain(text), Value::Text(_));
    if plain { text.to_owned() } else { quoted(text) }
}

/// The text in double quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for found in text.chars() {
        match found {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if needs_escape(found) => {
                let code = u32::from(found);
                if code > 0xffff {
                    out.push_str(&format!("\\U{code:08X}"));
                } else {
                    out.push_str(&format!("\\u{code:04X}"));
                }
            }
            _ => out.push(found),
        }
    }
    out.push('"');
    out
}

/// The entry `key` with the text as a block, or in double quotes if a block cannot hold it; each
/// line indented by `indent`, ended by a line break.
pub(super) fn entry(key: &str, text: &str, indent: &str) -> String {
    let fits = !text.is_empty()
        && !text.starts_with([' ', '\t', '\n'])
        && !text.ends_with([' ', '\t', '\n'])
        && !text.chars().any(|found| !matches!(found, '\n' | '\t') && needs_escape(found));
    if !fits {
        return format!("{indent}{key}: {}\n", quoted(text));
    }
    let mut out = format!("{indent}{key}: |-\n");
    for line in text.split('\n') {
        if !line.is_empty() {
            out.push_str(indent);
            out.push_str("  ");
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// Any value in braces, brackets and quotes.
pub(super) fn flow(node: &Node) -> String {
    match &node.value {
        Value::Null if node.raw.is_empty() => "null".to_owned(),
        Value::Text(text) => inline(text),
        Value::List(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Map(entries) => {
            let pair = |(key, node): &(crate::source::Key, Node)| {
                format!("{}: {}", quoted(&key.text), flow(node))
            };
            format!("{{{}}}", entries.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        _ => node.raw.to_string(),
    }
}

/// Whether a character cannot stand for itself in every YAML reader.
fn needs_escape(found: char) -> bool {
    found.is_control()
        || matches!(found, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}
