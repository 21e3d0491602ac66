//! Diagnostics for programs: one JSON object a line.

use serde_json::{Value, json};

use super::{Diagnostic, Report};

impl Report {
    /// One JSON object a line, each with code, severity, file, line, column, end_line,
    /// end_column, message and help (null where there is none), and of files with entries also the
    /// entry. Lines and columns count from 1, columns in characters; the end is exclusive.
    pub fn to_json_lines(&self) -> String {
        self.iter().map(|diagnostic| format!("{}\n", diagnostic.to_json())).collect()
    }
}

impl Diagnostic {
    /// The diagnostic as a JSON object; see [`Report::to_json_lines`].
    pub fn to_json(&self) -> Value {
        let start = self.source.line_col(self.span.start as usize);
        let end = self.source.line_col(self.span.end.max(self.span.start) as usize);
        let mut object = json!({
            "code": self.code.as_str(),
            "severity": self.severity.as_str(),
            "file": self.source.path().to_string_lossy(),
            "line": start.line,
            "column": start.column,
            "end_line": end.line,
            "end_column": end.column,
            "message": self.message,
            "help": self.help,
        });
        if let (Some(entry), Some(fields)) = (&self.entry, object.as_object_mut()) {
            fields.insert("entry".into(), (**entry).into());
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnostic::Code;
    use crate::source::{Source, Span};

    #[test]
    fn each_diagnostic_is_one_line_with_every_field() {
        let source = Arc::new(Source::new("a.md", "é: 1\nb: 2\n"));
        let mut report = Report::new();
        report.push(
            Diagnostic::new(Code::UnknownTag, &source, Span::new(4, 8), "odd\ntag").help("drop it"),
        );
        report.push(Diagnostic::new(Code::YamlSyntax, &source, Span::new(0, 2), "bad"));
        let text = report.to_json_lines();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("each line is JSON"))
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[1],
            json!({
                "code": "T0116", "severity": "error", "file": "a.md", "line": 1, "column": 4,
                "end_line": 2, "end_column": 3, "message": "odd\ntag", "help": "drop it",
            })
        );
        assert_eq!(lines[0]["help"], Value::Null);
    }
}
