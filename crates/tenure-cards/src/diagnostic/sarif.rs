//! Diagnostics for code-scanning tools: SARIF 2.1.0.

use serde_json::{Value, json};

use super::{Code, Diagnostic, Report, Severity};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

impl Report {
    /// One SARIF 2.1.0 log with one run: the whole table of codes as rules, and a result for each
    /// diagnostic. Columns are Unicode code points; a remedy is appended to the message.
    pub fn to_sarif(&self) -> Value {
        json!({
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "tenure",
                    "version": env!("CARGO_PKG_VERSION"),
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": Code::ALL.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
                } },
                "columnKind": "unicodeCodePoints",
                "results": self.iter().map(result).collect::<Vec<_>>(),
            }],
        })
    }
}

fn rule(code: Code) -> Value {
    json!({
        "id": code.as_str(),
        "name": code.name(),
        "shortDescription": { "text": code.meaning() },
        "defaultConfiguration": { "level": level(code.severity()) },
    })
}

fn result(diagnostic: &Diagnostic) -> Value {
    let start = diagnostic.source.line_col(diagnostic.span.start as usize);
    let end = diagnostic.source.line_col(diagnostic.span.end.max(diagnostic.span.start) as usize);
    let text = match &diagnostic.help {
        Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let index = Code::ALL.iter().position(|code| *code == diagnostic.code);
    let mut location = json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(&diagnostic.source.path().to_string_lossy()) },
        "region": {
            "startLine": start.line,
            "startColumn": start.column,
            "endLine": end.line,
            "endColumn": end.column,
        },
    } });
    if let (Some(entry), Some(fields)) = (&diagnostic.entry, location.as_object_mut()) {
        fields.insert("logicalLocations".into(), json!([{ "fullyQualifiedName": **entry }]));
    }
    json!({
        "ruleId": diagnostic.code.as_str(),
        "ruleIndex": index,
        "level": level(diagnostic.severity),
        "message": { "text": text },
        "locations": [location],
    })
}

fn level(severity: Severity) -> &'static str {
    severity.as_str()
}

/// The path as a URI reference: relative stays relative, absolute becomes `file://`; everything
/// that a URI cannot hold is percent-encoded.
fn uri(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let mut uri = String::new();
    if path.starts_with('/') {
        uri.push_str("file://");
    } else if path.split('/').next().is_some_and(|first| first.contains(':')) {
        uri.push_str("./");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b':' => {
                uri.push(byte as char);
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::{Source, Span};

    #[test]
    fn the_log_has_the_rules_and_the_place_of_each_result() {
        let source = Arc::new(Source::new("my cards/a.md", "x: 1\n"));
        let mut report = Report::new();
        report.push(
            Diagnostic::new(Code::UnknownTag, &source, Span::new(3, 4), "odd").help("drop it"),
        );
        let log = report.to_sarif();
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().expect("rules are a list");
        assert_eq!(rules.len(), Code::ALL.len());
        let result = &run["results"][0];
        let index = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert_eq!(result["message"]["text"], "odd\nhelp: drop it");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "my%20cards/a.md");
        assert_eq!(
            place["region"],
            json!({ "startLine": 1, "startColumn": 4, "endLine": 1, "endColumn": 5 })
        );
    }

    #[test]
    fn an_empty_report_is_still_a_valid_log() {
        let log = Report::new().to_sarif();
        assert_eq!(log["runs"][0]["results"], json!([]));
    }

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("a/b#c.md"), "a/b%23c.md");
        assert_eq!(uri("/x/ä.md"), "file:///x/%C3%A4.md");
        assert_eq!(uri("a:b.md"), "./a:b.md");
    }
}
