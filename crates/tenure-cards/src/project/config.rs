//! `tenure.toml`.

use super::shown;
use crate::card::list_words;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::nearest::nearest;
use crate::source::{self, Source, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::hook::Limit;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What `tenure.toml` says.
///
/// ```toml
/// [hooks]
/// env = ["DATABASE_URL"]        # variables that hooks get beside the usual ones
///
/// [python]
/// interpreter = ".venv/bin/python"
///
/// [limits]
/// hook = "30s"                  # also: end, ends, turn, model, tool
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ProjectConfig {
    /// `hooks.env`: names of environment variables that hooks get beside the usual ones.
    pub hook_env: Vec<String>,
    /// `python.interpreter`: the interpreter, relative to the project.
    pub interpreter: Option<PathBuf>,
    /// `limits.hook`: each call of a hook.
    pub hook_limit: Option<Limit>,
    /// `limits.end`: each call of a hook at the end of a scope.
    pub end_limit: Option<Limit>,
    /// `limits.ends`: all calls at the end of a scope together.
    pub ends_limit: Option<Limit>,
    /// `limits.turn`: a turn.
    pub turn_limit: Option<Limit>,
    /// `limits.model`: a model call.
    pub model_limit: Option<Limit>,
    /// `limits.tool`: a tool call.
    pub tool_limit: Option<Limit>,
}

const TABLES: &[&str] = &["hooks", "python", "limits"];
const LIMITS: &[&str] = &["hook", "end", "ends", "turn", "model", "tool"];

/// Reads `file`, which stands in the resolved folder `root`. What is wrong goes to `report`.
pub(super) fn read(
    root: &Path,
    file: &Path,
    here: Option<&Path>,
    report: &mut Report,
) -> (ProjectConfig, Option<Arc<str>>) {
    if file.canonicalize().is_ok_and(|real| !real.starts_with(root)) {
        // Nothing of what it leads to is read, so nothing of it is shown.
        let source = Arc::new(Source::new(shown(file, here), ""));
        let message = "tenure.toml is a link that leads out of the project";
        let diagnostic = Diagnostic::new(Code::LinkOutsideProject, &source, Span::at(0), message);
        report.push(diagnostic.help("put the file itself into the project"));
        return (ProjectConfig::default(), None);
    }
    let Some(source) = source::read(file, shown(file, here), report) else {
        return (ProjectConfig::default(), None);
    };
    let text = source.shared_text();
    let config = parse(&source, root, report);
    (config, Some(text))
}

fn parse(source: &Arc<Source>, folder: &Path, report: &mut Report) -> ProjectConfig {
    let mut reader = Settings { source, report };
    let mut config = ProjectConfig::default();
    let root = match DeTable::parse(source.text()) {
        Ok(root) => root,
        Err(error) => {
            let span = error.span().map_or(Span::at(0), |range| Span::new(range.start, range.end));
            reader.problem(Code::ConfigSyntax, span, error.message().trim(), "correct the TOML");
            return config;
        }
    };
    reader.only(root.get_ref(), "tenure.toml", TABLES);
    if let Some(hooks) = reader.table(root.get_ref(), "hooks") {
        reader.only(hooks, "[hooks]", &["env"]);
        config.hook_env = reader.names(hooks, "hooks.env", "env");
    }
    if let Some(python) = reader.table(root.get_ref(), "python") {
        reader.only(python, "[python]", &["interpreter"]);
        config.interpreter = reader.program(python, "python.interpreter", "interpreter", folder);
    }
    if let Some(limits) = reader.table(root.get_ref(), "limits") {
        reader.only(limits, "[limits]", LIMITS);
        config.hook_limit = reader.limit(limits, "hook");
        config.end_limit = reader.limit(limits, "end");
        config.ends_limit = reader.limit(limits, "ends");
        config.turn_limit = reader.limit(limits, "turn");
        config.model_limit = reader.limit(limits, "model");
        config.tool_limit = reader.limit(limits, "tool");
    }
    config
}

struct Settings<'a> {
    source: &'a Arc<Source>,
    report: &'a mut Report,
}

impl Settings<'_> {
    fn problem(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) {
        self.report.push(Diagnostic::new(code, self.source, span, message).help(help));
    }

    fn only(&mut self, table: &DeTable<'_>, of: &str, names: &[&str]) {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if !names.contains(&name) {
                let help = match nearest(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("possible are {}", list_words(names, "and")),
                };
                let message = format!("`{name}` is not a setting of {of}");
                self.problem(Code::UnknownSetting, span(key), message, &help);
            }
        }
    }

    fn wrong(&mut self, name: &str, wanted: &str, found: &Spanned<DeValue<'_>>) {
        let message =
            format!("`{name}` must be {wanted}, but is of type {}", found.get_ref().type_str());
        let help = match name {
            "hooks.env" => "write for example env = [\"DATABASE_URL\"]",
            "python.interpreter" => "write for example interpreter = \".venv/bin/python\"",
            _ if name.starts_with("limits.") => "write a text such as \"30s\"",
            _ => "write it as a table: its name in brackets on a line of its own",
        };
        self.problem(Code::BadSetting, span(found), message, help);
    }

    fn table<'t, 'i>(&mut self, root: &'t DeTable<'i>, name: &str) -> Option<&'t DeTable<'i>> {
        let found = root.get(name)?;
        let table = found.get_ref().as_table();
        if table.is_none() {
            self.wrong(name, "a table", found);
        }
        table
    }

    fn text(&mut self, table: &DeTable<'_>, name: &str, key: &str) -> Option<(String, Span)> {
        let found = table.get(key)?;
        match found.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => Some((text.to_owned(), span(found))),
            _ => {
                self.wrong(name, "a text that is not empty", found);
                None
            }
        }
    }

    /// A program of this path, which starts from the project's folder.
    fn program(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        key: &str,
        folder: &Path,
    ) -> Option<PathBuf> {
        let (text, at) = self.text(table, name, key)?;
        let path = folder.join(&text);
        if !path.is_file() {
            let what = if path.exists() { "is not a file" } else { "is not there" };
            let message = format!("`{name}` names `{text}`, which {what}");
            let help = "the path starts from the folder of tenure.toml; leave it out to have Python \
                        looked for in .venv, venv and PATH";
            self.problem(Code::BadSetting, at, message, help);
        }
        Some(text.into())
    }

    fn names(&mut self, table: &DeTable<'_>, name: &str, key: &str) -> Vec<String> {
        let Some(found) = table.get(key) else { return Vec::new() };
        let Some(items) = found.get_ref().as_array() else {
            self.wrong(name, "a list of variable names", found);
            return Vec::new();
        };
        let mut names = Vec::new();
        for item in items.iter() {
            let valid = |text: &&str| {
                !text.is_empty() && !text.contains(['=', '\0']) && text.trim() == *text
            };
            match item.get_ref().as_str().filter(valid) {
                Some(text) => names.push(text.to_owned()),
                None => self.problem(
                    Code::BadSetting,
                    span(item),
                    format!("an entry of `{name}` is not the name of a variable"),
                    "write the name alone, as in env = [\"DATABASE_URL\"]; values come from the environment",
                ),
            }
        }
        names
    }

    fn limit(&mut self, table: &DeTable<'_>, key: &str) -> Option<Limit> {
        let name = format!("limits.{key}");
        let found = table.get(key)?;
        if found.get_ref().is_integer() || found.get_ref().is_float() {
            let message = format!("`{name}` has no unit");
            let help = format!("write for example {key} = \"30s\" or \"500ms\"");
            self.problem(Code::BadSetting, span(found), message, &help);
            return None;
        }
        let (text, at) = self.text(table, &name, key)?;
        text.parse()
            .map_err(|error: tenure_core::Error| {
                let message = format!("`{name}` cannot be read: {error}");
                self.problem(Code::BadSetting, at, message, "write a text such as \"30s\"");
            })
            .ok()
    }
}

fn span<T>(spanned: &Spanned<T>) -> Span {
    let range = spanned.span();
    Span::new(range.start, range.end)
}
