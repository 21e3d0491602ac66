//! Functions that entries name: a file, and a function in it.

use super::part::head;
use std::path::Path;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{SpecScope, nearest, present};
use tenure_cards::source::{Node, Span};

/// A function as an entry names it.
pub(super) struct Named {
    /// `file.py:function`, from the workflow's folder.
    pub(super) spec: String,
    /// The file as it is written.
    pub(super) file: String,
    /// The function as it is written.
    pub(super) function: String,
    /// Where the function is written.
    pub(super) span: Span,
}

/// The function that `file_field` and `function` of an entry name. The file is in the workflow's
/// folder or in `tools/` in it.
pub(super) fn named(
    scope: &mut SpecScope<'_, '_>,
    node: &Node,
    file_field: &str,
    what: &str,
) -> Option<Named> {
    let mut missing = false;
    for field in [file_field, "function"] {
        if present(node, field).is_none() {
            let span = node.entry(field).map_or(head(node), |(key, _)| key.span);
            let message = format!("this {what} has no `{field}`");
            let help = match field {
                "function" => "add `function`, the name of a function in that file",
                _ => "add the Python file, which is in the workflow's folder or in tools/ in it",
            };
            scope.reader.problem_help(Code::MissingField, span, message, help);
            missing = true;
        }
    }
    let file = present(node, file_field).and_then(|it| scope.reader.words_of(file_field, it));
    let function = present(node, "function").and_then(|it| scope.reader.words_of("function", it));
    if missing {
        return None;
    }
    let (file, function) = (file?.trim().to_owned(), function?.trim().to_owned());
    let file_span = present(node, file_field)?.span;
    let path = found(scope, &file, file_span)?;
    let span = present(node, "function")?.span;
    Some(Named { spec: format!("{path}:{function}"), file, function, span })
}

/// Where the file is, from the workflow's folder.
fn found(scope: &mut SpecScope<'_, '_>, file: &str, span: Span) -> Option<String> {
    let dir = scope.origin.dir;
    let inner = format!("tools/{file}");
    let is_there = |path: &str| dir.join(path).symlink_metadata().is_ok();
    match (is_there(file), is_there(&inner)) {
        (true, false) => Some(file.to_owned()),
        (false, true) => Some(inner),
        (true, true) => {
            let message = format!("there is `{file}` in the workflow's folder and in tools/");
            let help = format!("remove one of the two, or write `{inner}` to mean that one");
            scope.reader.problem_help(Code::FileTwice, span, message, help);
            None
        }
        (false, false) => {
            let files = python_files(dir);
            let near = nearest(file, files.iter().map(String::as_str));
            let (message, help) = match near {
                Some(near) => (format!("there is no file `{file}`"), format!("did you mean `{near}`?")),
                None => (
                    format!("there is no file `{file}`, and none in tools/ either"),
                    "a file is looked for in the workflow's folder and in tools/ in it; correct the \
                     name, or create the file"
                        .to_owned(),
                ),
            };
            scope.reader.problem_help(Code::PythonFileMissing, span, message, help);
            None
        }
    }
}

/// The Python files of the folder and of `tools/`, by their bare names.
fn python_files(dir: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for folder in [dir.to_owned(), dir.join("tools")] {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        files.extend(names.filter(|name| name.ends_with(".py")));
    }
    files.sort();
    files
}
