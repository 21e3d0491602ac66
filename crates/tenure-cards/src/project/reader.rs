//! Reading typed values out of TOML, with a place for whatever is wrong.

use crate::card::list_words;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::nearest::nearest;
use crate::source::{Source, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::hook::Limit;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A text of a configuration, and where it is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The text.
    pub text: String,
    /// The file.
    pub source: Arc<Source>,
    /// The place in it.
    pub span: Span,
}

impl Written {
    /// A text of a file.
    pub fn new(text: impl Into<String>, source: &Arc<Source>, span: Span) -> Self {
        Self { text: text.into(), source: source.clone(), span }
    }
}

/// What reading needs.
pub(crate) struct Settings<'a> {
    pub(crate) source: &'a Arc<Source>,
    pub(crate) report: &'a mut Report,
}

impl Settings<'_> {
    /// The file as TOML; none if it is not valid.
    pub(crate) fn parse<'t>(&mut self, text: &'t str) -> Option<Spanned<DeTable<'t>>> {
        DeTable::parse(text)
            .map_err(|error| {
                let range = error.span();
                let span = range.map_or(Span::at(0), |range| Span::new(range.start, range.end));
                self.problem(Code::ConfigSyntax, span, error.message().trim(), "correct the TOML");
            })
            .ok()
    }

    pub(crate) fn problem(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        help: &str,
    ) {
        self.report.push(Diagnostic::new(code, self.source, span, message).help(help));
    }

    /// Reports a problem with, or beside, a value that may be a secret: what is shown of the file
    /// does not have it.
    pub(crate) fn hidden(
        &mut self,
        code: Code,
        span: Span,
        value: Span,
        message: impl Into<String>,
        help: &str,
    ) {
        let source = Arc::new(self.source.hiding(value));
        self.report.push(Diagnostic::new(code, &source, span, message).help(help));
    }

    pub(crate) fn only(&mut self, table: &DeTable<'_>, of: &str, names: &[&str]) {
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

    pub(crate) fn wrong(&mut self, name: &str, wanted: &str, found: &Spanned<DeValue<'_>>) {
        let message =
            format!("`{name}` must be {wanted}, but is of type {}", found.get_ref().type_str());
        let help = match name {
            "secrets.names" => "write for example names = [\"LICENCE\"]",
            "hooks.env" => "write for example env = [\"DATABASE_URL\"]",
            "python.interpreter" => "write for example interpreter = \".venv/bin/python\"",
            "python.start" | "python.load" | "python.queue" => "write a text such as \"30s\"",
            _ if name.starts_with("limits.") => "write a text such as \"30s\"",
            _ => match wanted {
                "a list of texts" => "write for example [\"first\", \"second\"]",
                "a text" | "a text that is not empty" => "write a text in quotes",
                "a duration" => "write a text such as \"30s\"",
                "a number" => "write a number such as 0.25",
                "true or false" => "write true or false, without quotes",
                _ => "write it as a table: its name in brackets on a line of its own",
            },
        };
        self.problem(Code::BadSetting, span(found), message, help);
    }

    /// A table inside the table of the name `of`.
    pub(crate) fn table_in<'t, 'i>(
        &mut self,
        outer: &'t DeTable<'i>,
        of: &str,
        name: &str,
    ) -> Option<&'t DeTable<'i>> {
        let found = outer.get(name)?;
        let table = found.get_ref().as_table();
        if table.is_none() {
            self.wrong(&format!("{of}.{name}"), "a table", found);
        }
        table
    }

    pub(crate) fn table<'t, 'i>(
        &mut self,
        root: &'t DeTable<'i>,
        name: &str,
    ) -> Option<&'t DeTable<'i>> {
        let found = root.get(name)?;
        let table = found.get_ref().as_table();
        if table.is_none() {
            self.wrong(name, "a table", found);
        }
        table
    }

    pub(crate) fn text(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        key: &str,
    ) -> Option<(String, Span)> {
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
    pub(crate) fn program(
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

    pub(crate) fn names(&mut self, table: &DeTable<'_>, name: &str, key: &str) -> Vec<String> {
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

    /// A duration with its unit; `prefix` is the table that it stands in.
    pub(crate) fn limit(&mut self, table: &DeTable<'_>, prefix: &str, key: &str) -> Option<Limit> {
        let name = format!("{prefix}.{key}");
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

    /// A text with its place.
    pub(crate) fn written(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        key: &str,
    ) -> Option<Written> {
        let (text, span) = self.text(table, name, key)?;
        let text = text.trim().to_owned();
        Some(Written { text, source: Arc::clone(self.source), span })
    }

    /// A list of texts.
    pub(crate) fn texts(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        key: &str,
    ) -> Option<Vec<String>> {
        let found = table.get(key)?;
        let texts = found.get_ref().as_array().and_then(|items| {
            items.iter().map(|item| Some(item.get_ref().as_str()?.to_owned())).collect()
        });
        if texts.is_none() {
            self.wrong(name, "a list of texts", found);
        }
        texts
    }

    /// By name, texts.
    pub(crate) fn texts_by_name(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        key: &str,
    ) -> Vec<(String, String)> {
        let Some(found) = table.get(key) else { return Vec::new() };
        let Some(inner) = found.get_ref().as_table() else {
            self.wrong(name, "a table", found);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (key, value) in inner {
            let key = key.get_ref();
            match value.get_ref().as_str() {
                Some(text) => texts.push((key.to_string(), text.to_owned())),
                None => {
                    let kind = value.get_ref().type_str();
                    let message = format!("`{name}.{key}` must be a text, but is of type {kind}");
                    let at = span(value);
                    self.hidden(Code::BadSetting, at, at, message, "write a text in quotes");
                }
            }
        }
        texts
    }

    /// One of several words.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        key: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let (text, at) = self.text(table, name, key)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let help = match nearest(&text, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use {}", list_words(&names, "or")),
            };
            let message = format!("`{name}` is `{text}`, but must be {}", list_words(&names, "or"));
            self.problem(Code::BadSetting, at, message, &help);
        }
        found.map(|(_, value)| *value)
    }

    /// A number of 0 or more.
    pub(crate) fn amount(&mut self, table: &DeTable<'_>, name: &str, key: &str) -> Option<f64> {
        let found = table.get(key)?;
        let text = match found.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => {
                self.wrong(name, "a number", found);
                return None;
            }
        };
        let number = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
        if number.is_none() {
            let message = format!("`{name}` is {text}, but must be a number of 0 or more");
            self.problem(Code::BadSetting, span(found), message, "give a number such as 0.25");
        }
        number
    }

    /// An address of a server: http or https, without a name or a password in it.
    pub(crate) fn url(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        key: &str,
    ) -> Option<(String, Span)> {
        let (text, at) = self.text(table, name, key)?;
        let text = text.trim().to_owned();
        match url_problem(&text) {
            None => Some((text, at)),
            Some((what, help)) => {
                self.address(Code::BadSetting, at, &text, format!("`{name}` {what}"), help);
                None
            }
        }
    }

    /// Reports a problem with an address, which is shown unless it may hold a secret.
    pub(crate) fn address(
        &mut self,
        code: Code,
        at: Span,
        text: &str,
        message: String,
        help: &str,
    ) {
        match may_hold_a_secret(text) {
            true => self.hidden(code, at, at, message, help),
            false => self.problem(code, at, message, help),
        }
    }
}

/// Whether an address has a place for a secret: before an `@`, or behind a `?`.
pub(crate) fn may_hold_a_secret(address: &str) -> bool {
    address.contains(['@', '?'])
}

/// What is wrong with the address of a server, and what to do about it.
pub(crate) fn url_problem(text: &str) -> Option<(&'static str, &'static str)> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Some(("is no address", "write for example \"https://example.com/v1\""));
    };
    let host = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Some(("is neither http nor https", "write for example \"https://example.com/v1\""));
    }
    if host.contains('@') {
        let help = "leave out what stands before the `@`; a key of a model comes from the user's \
                    own configuration, one of a tool server from `headers`";
        return Some(("has a name or a password in it", help));
    }
    if host.is_empty() || host.starts_with(':') || text.contains(char::is_whitespace) {
        return Some(("names no host", "write for example \"https://example.com/v1\""));
    }
    None
}

/// Where it is written.
pub(crate) fn span<T>(spanned: &Spanned<T>) -> Span {
    let range = spanned.span();
    Span::new(range.start, range.end)
}
