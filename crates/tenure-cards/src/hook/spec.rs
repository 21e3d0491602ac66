//! What a hook runs: a Python function or a command.

use super::{CommandRef, PythonRef};
use crate::card::Reader;
use crate::diagnostic::{Code, Diagnostic};
use crate::project::ConfineError;
use crate::python::{Found, Misfit, Origin, PythonFiles, Use, context, fit, refusal};
use crate::source::{Node, Span};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Everything that reading a hook needs.
pub struct SpecScope<'a, 'r> {
    /// The file that is read.
    pub reader: &'a mut Reader<'r>,
    /// Where the file is.
    pub origin: Origin<'a>,
    /// The Python files that were read so far.
    pub python: &'a mut PythonFiles,
    /// The names that `use` may say; none if that is known only later.
    pub registered: Option<&'a [String]>,
}

/// The two halves of `file.py:function`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spec<'t> {
    pub(crate) path: &'t str,
    pub(crate) function: &'t str,
}

/// Splits at the last colon; both halves are trimmed and must not be empty.
pub(crate) fn split(text: &str) -> Option<Spec<'_>> {
    let (path, function) = text.rsplit_once(':')?;
    let (path, function) = (path.trim(), function.trim());
    (!path.is_empty() && !function.is_empty()).then_some(Spec { path, function })
}

impl SpecScope<'_, '_> {
    /// The function that `text` names, whatever its parameters. What is wrong is reported.
    pub(crate) fn find(&mut self, text: &str, span: Span) -> Option<Found> {
        let Some(spec) = split(text) else {
            self.bad_spec(text, span);
            return None;
        };
        let source = self.reader.source;
        match self.python.find(&self.origin, spec.path, spec.function, self.reader.report) {
            Ok(found) => Some(found),
            Err(mut error) => {
                let colons = spec.path.split_once(".py:");
                if let (Code::PythonFileMissing, Some((file, function))) = (error.code, colons) {
                    error.help = format!(
                        "a spec has one colon, between the file and the function; write \
                         `{file}.py:{function}`, or `{file}.py:{}`",
                        spec.function
                    );
                } else if error.code == Code::PythonFileMissing && looks_like_module(spec.path) {
                    error.help = format!(
                        "a spec names a file, not a module; write the path, as in \
                         `{}.py:{}`",
                        spec.path.replace('.', "/"),
                        spec.function
                    );
                }
                self.reader.report.push(
                    Diagnostic::new(error.code, source, span, error.message).help(error.help),
                );
                None
            }
        }
    }

    /// The function that `text` names, if it fits `used`.
    #[doc(alias = "load_hook_function")]
    pub fn python(&mut self, text: &str, span: Span, used: Use) -> Option<PythonRef> {
        let found = self.find(text, span)?;
        let spec = split(text).expect("it was found, so it could be split");
        let takes = match fit(found.function(), used) {
            Ok(takes) => takes,
            Err(problem) => {
                let diagnostic = self.describe(&problem, &found, &spec, span, used);
                self.reader.report.push(diagnostic);
                return None;
            }
        };
        let context = context(&takes, used);
        let function = found.callable(takes);
        self.python.note_use(&function, context);
        Some(PythonRef { spec: format!("{}:{}", spec.path, spec.function), function, span })
    }

    /// The command that a list of texts makes.
    pub fn command(&mut self, node: &Node) -> Option<CommandRef> {
        let items = node.list()?;
        let each = "a part of the command";
        let mut argv = Vec::with_capacity(items.len());
        for item in items {
            argv.push(self.reader.text_of(each, item)?);
        }
        let written = items.iter().filter_map(Node::text).map(str::to_owned).collect();
        let Some(program) = argv.first().filter(|program| !program.trim().is_empty()) else {
            self.reader.problem_help(
                Code::BadProgram,
                items.first().map_or(node.span, |first| first.span),
                "the command names no program",
                "write the program first, as in [\"./audit.sh\", \"--strict\"]",
            );
            return None;
        };
        let mut file = None;
        if program.contains('/') {
            let path = self.program(&program.clone(), items[0].span)?;
            argv[0] = path.to_string_lossy().into_owned();
            file = Some(path);
        }
        let dir = self.origin.dir.to_owned();
        Some(CommandRef { argv, written, file, dir, writes: BTreeSet::new() })
    }

    /// Reads `writes`: the files that the command `run` writes, beneath the project, whether they are there or not.
    pub fn writes(&mut self, node: &Node, run: Option<&CommandRef>) -> Vec<PathBuf> {
        let program = run.and_then(|command| command.file.clone());
        let mut files = Vec::new();
        for (text, span) in self.names(node, "writes") {
            match self.origin.project.confine_new(self.origin.dir, Path::new(&text)) {
                Ok(file) if Some(&file) == program.as_ref() => self.reader.problem_help(
                    Code::Contradiction,
                    span,
                    format!(
                        "`{text}` is the program that runs, so it cannot be a file that it writes"
                    ),
                    "a program that changed is not started; name only files that it writes",
                ),
                Ok(file) => files.push(file),
                Err(error) => {
                    let error = refusal(&text, error, self.origin.project);
                    self.reader.problem_help(error.code, span, error.message, error.help);
                }
            }
        }
        files
    }

    /// The project's own program of this path.
    fn program(&mut self, program: &str, span: Span) -> Option<std::path::PathBuf> {
        let bare = Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned());
        let bare = bare.unwrap_or_default();
        let path = match self.origin.project.confine(self.origin.dir, Path::new(program)) {
            Ok(path) => path,
            Err(ConfineError::Missing) => {
                self.reader.problem_help(
                    Code::BadProgram,
                    span,
                    format!("there is no program `{program}`"),
                    format!(
                        "paths start from the folder of this file; a bare name such as `{bare}` is \
                         looked up in PATH"
                    ),
                );
                return None;
            }
            Err(error) => {
                let mut error = refusal(program, error, self.origin.project);
                if error.code == Code::OutsideProject {
                    error.help = format!(
                        "put the program into the project, or write the bare name `{bare}`, which \
                         is looked up in PATH"
                    );
                }
                self.reader.problem_help(error.code, span, error.message, error.help);
                return None;
            }
        };
        let problem = match path.metadata() {
            Ok(meta) if !meta.is_file() => Some("is not a file"),
            Ok(meta) if !is_executable(&meta) => Some("is not executable"),
            Ok(_) => None,
            Err(_) => Some("cannot be looked at"),
        };
        if let Some(problem) = problem {
            let help = match problem {
                "is not executable" => format!(
                    "run `chmod +x {program}`, or name its interpreter first, as in [\"sh\", \
                     \"{program}\"]"
                ),
                _ => "name a program".to_owned(),
            };
            self.reader.problem_help(
                Code::BadProgram,
                span,
                format!("`{program}` {problem}"),
                help,
            );
            return None;
        }
        Some(path)
    }

    fn bad_spec(&mut self, text: &str, span: Span) {
        let text = text.trim();
        let (message, help) = if text.is_empty() {
            ("the spec is empty".to_owned(), "write `file.py:function`".to_owned())
        } else if !text.contains(':') && (text.contains(' ') || is_a_program(text)) {
            let parts: Vec<String> =
                text.split_whitespace().map(|part| format!("\"{part}\"")).collect();
            (
                format!("`{text}` is not of the form `file.py:function`"),
                format!("a command is written as a list: [{}]", parts.join(", ")),
            )
        } else if !text.contains(':') {
            (
                format!("`{text}` names no function"),
                format!("write `file.py:function`, as in `{text}:main`"),
            )
        } else {
            (
                format!("`{text}` is not of the form `file.py:function`"),
                "write a file, a colon and the name of a function".to_owned(),
            )
        };
        self.reader.problem_help(Code::BadSpec, span, message, help);
    }

    fn describe(
        &self,
        problem: &Misfit<'_>,
        found: &Found,
        spec: &Spec<'_>,
        span: Span,
        used: Use,
    ) -> Diagnostic {
        let name = spec.function;
        let source = self.reader.source;
        let at = |at: Span| format!("see line {} of {}", found.line(at), spec.path);
        match problem {
            Misfit::NoContext => Diagnostic::new(
                Code::ParametersDoNotFit,
                source,
                span,
                format!("`{name}` does not take the context"),
            )
            .label(at(found.function().span))
            .help(format!("write `{}`", signature(name, used))),
            Misfit::NoNext(point) => Diagnostic::new(
                Code::NextMissing,
                source,
                span,
                format!("`{name}` is called at {point}, but does not take `next`"),
            )
            .label(at(found.function().span))
            .help(format!("write `def {name}(ctx, next):` and return what `next` gives")),
            Misfit::TooFew(values) => Diagnostic::new(
                Code::ParametersDoNotFit,
                source,
                span,
                format!("`{name}` takes less than it is given"),
            )
            .label(at(found.function().span))
            .help(format!("write `def {name}({}):`", values.join(", "))),
            Misfit::PositionalOnly(parameter) => Diagnostic::new(
                Code::ParametersDoNotFit,
                source,
                span,
                format!("`{name}` takes `{}` by position only", parameter.name),
            )
            .label(at(parameter.span))
            .help("remove the `/`: a hook is given its parameters by name"),
            Misfit::Unknown { parameter, given } => {
                let wanted = &parameter.name;
                let help = match (wanted.as_str(), given.as_slice()) {
                    ("next", _) => "`next` is given only at points that wrap a call: \
                                    wrap_model_call, wrap_tool_call"
                        .to_owned(),
                    (_, []) => format!("remove `{wanted}`, or give it a default"),
                    (_, given) if !matches!(used, Use::Hook(_)) => format!(
                        "remove `{wanted}`, or give it a default; {} can be taken",
                        crate::card::list_words(given, "and")
                    ),
                    (_, given) => format!(
                        "remove `{wanted}`, or give it a default; beside the context, {} can be \
                         taken",
                        crate::card::list_words(given, "and")
                    ),
                };
                Diagnostic::new(
                    Code::ParametersDoNotFit,
                    source,
                    span,
                    match used {
                        Use::LifecycleTool => {
                            format!(
                                "`{name}` takes `{wanted}`, which a lifecycle tool is not given"
                            )
                        }
                        _ => format!("`{name}` takes `{wanted}`, which a hook is not given here"),
                    },
                )
                .label(at(parameter.span))
                .help(help)
            }
        }
    }
}

fn signature(name: &str, used: Use) -> String {
    use tenure_core::hook::Point;
    let wraps = |point| matches!(point, Point::WrapModelCall | Point::WrapToolCall);
    match used {
        Use::Hook(points) if points.iter().all(wraps) => format!("def {name}(ctx, next):"),
        _ => format!("def {name}(ctx):"),
    }
}

fn looks_like_module(path: &str) -> bool {
    let odd = |part: &str| part.is_empty() || part.contains([':', ' ']);
    !path.contains('/') && !path.ends_with(".py") && path.contains('.') && !path.split('.').any(odd)
}

/// Whether somebody means a program and not a Python file.
fn is_a_program(text: &str) -> bool {
    text.starts_with("./") && !text.ends_with(".py") || text.ends_with(".sh")
}

#[cfg(unix)]
fn is_executable(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    meta.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_split_at_its_last_colon_and_both_halves_are_trimmed() {
        for (text, expected) in [
            ("a.py:f", Some(("a.py", "f"))),
            (" a.py : f ", Some(("a.py", "f"))),
            ("odd:name.py:f", Some(("odd:name.py", "f"))),
            ("a.py", None),
            ("a.py:", None),
            (":f", None),
            ("", None),
        ] {
            let found = split(text).map(|spec| (spec.path, spec.function));
            assert_eq!(found, expected, "{text}");
        }
    }
}
