//! History files: what an agent has already said and heard when it starts.

mod delimited;
mod json;

use super::{Card, Reader};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::ConfineError;
use crate::python::{Origin, refusal};
use crate::source::{self, Node, Source, Span, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::message::{History, HistoryDefect, Message};

/// A history file of a card: it exists and holds a valid conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HistoryFile {
    /// Where it is.
    pub path: PathBuf,
    /// The path as the card writes it.
    pub written: String,
    /// What it holds.
    pub history: History,
}

/// The conversation that a card's `messages` hold together, in order.
pub fn load_history(card: &Card) -> History {
    card.messages.iter().flat_map(|file| file.history.iter()).cloned().collect()
}

/// Reads the field `messages`: one path or a list of them.
pub(super) fn read(tree: &Node, reader: &mut Reader<'_>, origin: &Origin<'_>) -> Vec<HistoryFile> {
    let Some(node) = super::present(tree, "messages") else { return Vec::new() };
    let paths = match &node.value {
        Value::Text(_) => reader.words_of("messages", node).map(|path| vec![(path, node.span)]),
        _ => reader.texts_of("messages", node),
    };
    let paths = paths.unwrap_or_default();
    paths.into_iter().filter_map(|(path, span)| file(path, span, reader, origin)).collect()
}

fn file(
    written: String,
    span: Span,
    reader: &mut Reader<'_>,
    origin: &Origin<'_>,
) -> Option<HistoryFile> {
    let path = match origin.project.confine(origin.dir, Path::new(&written)) {
        Ok(path) => path,
        Err(ConfineError::Missing) => {
            reader.problem_help(
                Code::HistoryMissing,
                span,
                format!("there is no history file `{written}`"),
                "paths start from the folder of this file; correct the path, or create the file",
            );
            return None;
        }
        Err(error) => {
            let error = refusal(&written, error, origin.project);
            reader.problem_help(error.code, span, error.message, error.help);
            return None;
        }
    };
    let shown = crate::project::plain(&origin.shown.join(&written));
    let source = source::read(&path, shown, reader.report)?;
    match parse(&source) {
        Ok(history) => Some(HistoryFile { path, written, history }),
        Err(problem) => {
            let diagnostic =
                Diagnostic::new(Code::BadHistory, &source, problem.span, problem.message);
            reader.report.push(diagnostic.help(problem.help));
            None
        }
    }
}

/// What is wrong with a history file.
#[derive(Debug)]
struct Problem {
    span: Span,
    message: String,
    help: &'static str,
}

impl Problem {
    fn new(span: Span, message: impl Into<String>, help: &'static str) -> Self {
        Self { span, message: message.into(), help }
    }
}

fn parse(source: &Arc<Source>) -> Result<History, Problem> {
    let is_json = source.path().extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
    let messages = if is_json { json::parse(source) } else { delimited::parse(source) }?;
    if let Some(defect) = HistoryDefect::find(&messages) {
        return Err(Problem::new(
            Span::at(0),
            format!("the conversation cannot be continued: {defect}"),
            "give every tool call its result right behind it, or remove the call",
        ));
    }
    Ok(messages.into_iter().collect::<History>())
}

type Parsed = Result<Vec<Message>, Problem>;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Vec<Message>, String> {
        let source = Arc::new(Source::new(name, text));
        match parse(&source) {
            Ok(history) => Ok(history.iter().cloned().collect()),
            Err(problem) => Err(problem.message),
        }
    }

    #[test]
    fn delimited_text_and_json_hold_the_same_conversation() {
        let expected = Ok(vec![Message::user("hi\nthere"), Message::assistant("hello")]);
        assert_eq!(read("h.txt", "---USER\nhi\nthere\n---ASSISTANT\nhello\n"), expected);
        assert_eq!(
            read("h.md", "\u{feff}---USER\r\nhi\r\nthere\r\n---ASSISTANT\r\nhello"),
            expected
        );
        let list = r#"[{"role":"user","content":"hi\nthere"},
                       {"role":"assistant","content":[{"type":"text","text":"hello"}]}]"#;
        assert_eq!(read("h.json", list), expected);
        assert_eq!(read("h.JSON", &format!("{{\"messages\":{list}}}")), expected);
    }

    #[test]
    fn text_without_delimiters_is_what_the_user_said() {
        assert_eq!(read("h.txt", "just this\n"), Ok(vec![Message::user("just this")]));
    }

    #[test]
    fn tool_calls_keep_their_results() {
        let text = r#"{"messages":[
            {"role":"user","content":"go"},
            {"role":"assistant","content":[],"tool_calls":{"c1":{"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}}},
            {"role":"user","content":[],"tool_results":{"c1":{"content":[{"type":"text","text":"2"}],"isError":false}}},
            {"role":"assistant","content":"done"}]}"#;
        let messages = read("h.json", text).expect("it is valid");
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[1].calls()[0].arguments, r#"{"a":1}"#);
        assert_eq!(messages[2].text(), "2");
    }

    #[test]
    fn what_is_no_conversation_is_refused() {
        for (name, text, part) in [
            ("h.json", "{", "is not JSON"),
            ("h.json", "5", "a list of messages"),
            ("h.json", "[5]", "message 1"),
            ("h.json", r#"[{"role":"robot","content":"x"}]"#, "role"),
            ("h.json", r#"[{"role":"user","content":[{"type":"image","data":""}]}]"#, "image"),
            (
                "h.json",
                r#"[{"role":"assistant","content":"","tool_calls":{"c":{"params":{"name":"x"}}}}]"#,
                "no result",
            ),
            ("h.txt", "", "is empty"),
            ("h.txt", "---USER\nhi\n---RESOURCE\nx.png\n", "RESOURCE"),
        ] {
            let error = read(name, text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
