//! JSON as the same tree as YAML, with places.
//!
//! JSON is almost YAML, but not quite: tabs indent, `\ud83d\ude80` is one character, and a comment
//! is a mistake that deserves a sentence of its own. So it has a reader of its own, under the same
//! bounds.

use super::{Key, MAX_DEPTH, MAX_NODES, Node, Source, Span, Value};
use crate::diagnostic::{Code, Diagnostic, Report};
use std::collections::HashSet;
use std::sync::Arc;

/// Reads a source as JSON. What is wrong goes to the report; the result is the value as far as it
/// could be read, and `None` if nothing could be made of it. Comments and commas too many are
/// reported and passed over, so that what is wrong behind them is found as well.
pub fn parse_json(source: &Arc<Source>, report: &mut Report) -> Option<Node> {
    let text = source.text();
    let at = source.bom_len();
    let mut reader = Json { source, report, text, at, nodes: 0, depth: 0, comments: Vec::new() };
    let node = reader.document();
    reader.say_comments();
    node
}

/// The reader cannot go on; why is in the report.
struct Stopped;

struct Json<'a> {
    source: &'a Arc<Source>,
    report: &'a mut Report,
    text: &'a str,
    at: usize,
    nodes: usize,
    depth: usize,
    /// Where comments are.
    comments: Vec<Span>,
}

impl Json<'_> {
    fn document(&mut self) -> Option<Node> {
        let node = self.value().ok()?;
        self.space();
        if self.at < self.text.len() {
            let (from, to) = (self.at, self.at + self.peek().map_or(0, char::len_utf8));
            self.report_at(
                Code::JsonSyntax,
                Span::new(from, to),
                "there is something behind the end of the JSON",
                "a file holds one object; remove what follows it",
            );
        }
        Some(node)
    }

    /// Complains of all comments at once: who writes one writes more.
    fn say_comments(&mut self) {
        let Some(first) = self.comments.first().copied() else { return };
        let (message, help) = match self.comments.len() - 1 {
            0 => (
                "JSON has no comments".to_owned(),
                "remove it; in a .yaml file `# ...` is a comment",
            ),
            more => (
                format!("JSON has no comments, and this file has {more} more of them"),
                "remove them; in a .yaml file `# ...` is a comment",
            ),
        };
        self.report_at(Code::JsonSyntax, first, message, help);
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn report_at(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) {
        self.report.push(Diagnostic::new(code, self.source, span, message).help(help));
    }

    fn wrong(&mut self, message: impl Into<String>, help: &str) -> Stopped {
        let span = Span::new(self.at, self.at + self.peek().map_or(0, char::len_utf8));
        self.report_at(Code::JsonSyntax, span, message, help);
        Stopped
    }

    /// What stands here, for a message.
    fn here(&self) -> String {
        match self.peek() {
            Some(found) => format!("`{found}`"),
            None => "the end of the file".to_owned(),
        }
    }

    /// Skips white space, and comments, which are complained of at the end.
    fn space(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            let rest = &self.text[self.at..];
            let length = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find('\n').unwrap_or(rest.len())
            } else if let Some(inner) = rest.strip_prefix("/*") {
                inner.find("*/").map_or(rest.len(), |end| end + 4)
            } else {
                return;
            };
            self.comments.push(Span::new(self.at, self.at + length));
            self.at += length;
        }
    }

    fn value(&mut self) -> Result<Node, Stopped> {
        self.space();
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let span = Span::at(self.at);
            let message = format!("the file has more than {MAX_NODES} values");
            self.report_at(Code::TooManyNodes, span, message, "split it");
            return Err(Stopped);
        }
        let start = self.at;
        match self.peek() {
            Some('{') => self.nested(start, Self::object),
            Some('[') => self.nested(start, Self::array),
            Some('"') => {
                let text = self.string()?;
                Ok(Node::new(Span::new(start, self.at), Value::Text(text)))
            }
            Some(first) if first == '-' || first.is_ascii_alphanumeric() => self.word(start),
            Some('\'') => {
                Err(self.wrong("a text in JSON is in double quotes", "write \"...\" for '...'"))
            }
            _ => {
                let message = format!("expected a value, found {}", self.here());
                Err(self.wrong(
                    message,
                    "write a text in quotes, a number, true, false, null, [] or {}",
                ))
            }
        }
    }

    fn nested(
        &mut self,
        start: usize,
        read: impl FnOnce(&mut Self) -> Result<Value, Stopped>,
    ) -> Result<Node, Stopped> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("this is nested more than {MAX_DEPTH} deep");
            self.report_at(Code::TooDeep, Span::at(start), message, "make it flatter");
            return Err(Stopped);
        }
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(Node::new(Span::new(start, self.at), value))
    }

    /// After an item: whether another one follows, or `close` ended the list.
    fn goes_on(&mut self, close: char) -> Result<bool, Stopped> {
        self.space();
        match self.peek() {
            Some(',') => {
                let comma = self.at;
                self.at += 1;
                self.space();
                if self.peek() != Some(close) {
                    return Ok(true);
                }
                let message = format!("a comma stands before `{close}`");
                self.report_at(Code::JsonSyntax, Span::new(comma, comma + 1), message, "remove it");
                self.at += 1;
                Ok(false)
            }
            Some(found) if found == close => {
                self.at += 1;
                Ok(false)
            }
            _ => {
                let message = format!("expected `,` or `{close}`, found {}", self.here());
                Err(self.wrong(message, "entries are separated by commas"))
            }
        }
    }

    fn array(&mut self) -> Result<Value, Stopped> {
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value()?);
            if !self.goes_on(']')? {
                return Ok(Value::List(items));
            }
        }
    }

    fn object(&mut self) -> Result<Value, Stopped> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen = HashSet::new();
        self.space();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(Value::Map(entries));
        }
        loop {
            self.space();
            let start = self.at;
            if self.peek() != Some('"') {
                let message = format!("expected a key in double quotes, found {}", self.here());
                return Err(self.wrong(message, "write \"key\": value"));
            }
            let text = self.string()?;
            let key = Key { span: Span::new(start, self.at), text };
            self.space();
            if self.peek() != Some(':') {
                let message = format!("expected `:` behind the key, found {}", self.here());
                return Err(self.wrong(message, "write \"key\": value"));
            }
            self.at += 1;
            let value = self.value()?;
            if seen.insert(key.text.clone()) {
                entries.push((key, value));
            } else {
                let message = format!("`{}` is given twice", key.text);
                self.report_at(Code::DuplicateKey, key.span, message, "remove one of them");
            }
            if !self.goes_on('}')? {
                return Ok(Value::Map(entries));
            }
        }
    }

    /// A number, true, false or null.
    fn word(&mut self, start: usize) -> Result<Node, Stopped> {
        let rest = &self.text[start..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_');
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let word = &rest[..length];
        let value = match word {
            "null" => Some(Value::Null),
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => match serde_json::from_str::<serde_json::Number>(word) {
                Ok(number) => match number.as_i64() {
                    Some(int) => Some(Value::Int(int)),
                    None => number.as_f64().map(Value::Float),
                },
                Err(_) => None,
            },
        };
        let Some(value) = value else {
            let help = match word {
                "True" | "False" | "None" => "write true, false or null",
                _ => "a text is in double quotes",
            };
            let span = Span::new(start, start + length);
            self.report_at(Code::JsonSyntax, span, format!("`{word}` is not a value"), help);
            return Err(Stopped);
        };
        self.at = start + length;
        Ok(Node { span: Span::new(start, self.at), value, raw: word.into() })
    }

    fn string(&mut self) -> Result<String, Stopped> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let mut escaped = false;
        for (at, found) in rest.char_indices() {
            match found {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.at = start + 1 + at + 1;
                    return self.unescaped(start);
                }
                '\n' => break,
                _ => {}
            }
        }
        let line = rest.find('\n').unwrap_or(rest.len());
        let span = Span::new(start, start + 1 + line);
        let help = "close it with `\"`; a line break in it is written `\\n`";
        self.report_at(Code::JsonSyntax, span, "the text is not closed on its line", help);
        Err(Stopped)
    }

    /// What the quoted text from `start` to here stands for.
    fn unescaped(&mut self, start: usize) -> Result<String, Stopped> {
        let quoted = &self.text[start..self.at];
        serde_json::from_str(quoted).map_err(|error| {
            let error = error.to_string();
            let why = error.split(" at line ").next().unwrap_or(&error).to_owned();
            let message = format!("the text cannot be read: {why}");
            let span = Span::new(start, self.at);
            let help = "write `\\\\` for a backslash and `\\t` for a tab";
            self.report_at(Code::JsonSyntax, span, message, help);
            Stopped
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<serde_json::Value>, Vec<String>) {
        let source = Arc::new(Source::new("a.json", text));
        let mut report = Report::new();
        let node = parse_json(&source, &mut report);
        let said = report.iter().map(|it| {
            let at = it.source.line_col(it.span.start as usize);
            format!("{}:{} {}", at.line, at.column, it.message)
        });
        (node.map(|node| node.to_json()), said.collect())
    }

    #[test]
    fn json_is_read_as_json() {
        let text = "\u{feff}{\n\t\"a\": [1, -2.5e3, true, null],\r\n\t\"b\\n\": \"\\ud83d\\ude80 \\/ é\"\n}\n";
        let (value, said) = read(text);
        assert_eq!(said, [""; 0]);
        let expected = serde_json::json!({"a": [1, -2500.0, true, null], "b\n": "🚀 / é"});
        assert_eq!(value, Some(expected));
    }

    #[test]
    fn comments_and_stray_commas_are_told_and_passed_over() {
        let (value, said) = read("{ \"a\": [ /* one */ 1, ], // two\n \"b\": 2, }");
        assert_eq!(value, Some(serde_json::json!({"a": [1], "b": 2})));
        assert_eq!(
            said,
            [
                "1:10 JSON has no comments, and this file has 1 more of them",
                "1:21 a comma stands before `]`",
                "2:8 a comma stands before `}`",
            ]
        );
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        for (text, expected) in [
            ("", "1:1 expected a value, found the end of the file"),
            ("{\"a\" 1}", "1:6 expected `:` behind the key, found `1`"),
            ("{a: 1}", "1:2 expected a key in double quotes, found `a`"),
            ("[1 2]", "1:4 expected `,` or `]`, found `2`"),
            ("[True]", "1:2 `True` is not a value"),
            ("['a']", "1:2 a text in JSON is in double quotes"),
            ("[\"a]\n", "1:2 the text is not closed on its line"),
            ("[\"\\x\"]", "1:2 the text cannot be read: invalid escape"),
            ("{\"a\": 1, \"a\": 2}", "1:10 `a` is given twice"),
            ("{} {}", "1:4 there is something behind the end of the JSON"),
            ("[01]", "1:2 `01` is not a value"),
        ] {
            assert_eq!(read(text).1, [expected], "{text}");
        }
        let deep = "[".repeat(MAX_DEPTH + 1);
        assert!(read(&deep).1[0].contains("nested more than"));
        let many = format!("[{}1]", "1,".repeat(MAX_NODES));
        assert!(read(&many).1[0].contains("more than 100000 values"));
    }
}
