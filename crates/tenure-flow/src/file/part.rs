//! The files of one workflow, and how their entries are read.

use super::folder::SUFFIXES;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_cards::card::{Environ, Expansion};
use tenure_cards::diagnostic::{Code, Diagnostic, Report};
use tenure_cards::embed::{CardLoader, Origin, Reader, SpecScope, list_words, nearest, present};
use tenure_cards::project::ConfineError;
use tenure_cards::source::{self, Key, Node, Source, Span, Value, parse_json, parse_yaml};

/// One file, as a tree.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) source: Arc<Source>,
    /// Always a mapping or a list.
    pub(super) tree: Node,
}

/// What became of a file.
#[derive(Debug)]
pub(super) enum Slot {
    Absent,
    /// It is there and cannot be used; why is in the report. Nobody knows what it would have said.
    Broken,
    There(Part),
}

impl Slot {
    pub(super) fn part(&self) -> Option<&Part> {
        match self {
            Self::There(part) => Some(part),
            _ => None,
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        matches!(self, Self::Broken)
    }
}

/// A workflow's folder that is being read.
pub(super) struct Folder<'a, 'o> {
    pub(super) loader: &'a mut CardLoader<'o>,
    /// Resolved.
    pub(super) dir: PathBuf,
    /// As messages show it.
    pub(super) shown: PathBuf,
    pub(super) report: Report,
    pub(super) sources: Vec<(PathBuf, Arc<Source>)>,
    /// The variables of the environment that the files take, beside those of cards.
    pub(super) expansions: Vec<Expansion>,
}

impl<'o> Folder<'_, 'o> {
    /// Reads the file `stem` of the folder, as whichever of its suffixes is there.
    pub(super) fn part(&mut self, stem: &str) -> Slot {
        let names = SUFFIXES.map(|suffix| format!("{stem}.{suffix}"));
        let there: Vec<&String> =
            names.iter().filter(|name| self.dir.join(name).symlink_metadata().is_ok()).collect();
        match *there.as_slice() {
            [] => Slot::Absent,
            [one] => self.read(one).map_or(Slot::Broken, Slot::There),
            [first, .., last] => {
                let source = Arc::new(Source::new(self.shown.join(last), ""));
                let message = format!("this workflow has both `{first}` and `{last}`");
                let found = Diagnostic::new(Code::FileTwice, &source, Span::at(0), message);
                self.report.push(found.help("keep one of the two"));
                Slot::Broken
            }
        }
    }

    fn read(&mut self, name: &str) -> Option<Part> {
        let shown = self.shown.join(name);
        let path = match self.loader.project.confine(&self.dir, Path::new(name)) {
            Ok(path) => path,
            Err(error) => {
                let (code, help) = match &error {
                    ConfineError::Missing => (Code::PathMissing, "the link leads nowhere"),
                    ConfineError::Unreadable(_) => {
                        (Code::Unreadable, "give yourself the right to read it")
                    }
                    _ => (Code::LinkOutsideProject, "put the file itself into the project"),
                };
                let source = Arc::new(Source::new(shown, ""));
                let message = format!("`{name}` {error}");
                let found = Diagnostic::new(code, &source, Span::at(0), message);
                self.report.push(found.help(help));
                return None;
            }
        };
        let source = source::read(&path, shown, &mut self.report)?;
        self.sources.push((path, Arc::clone(&source)));
        let mut found = Report::new();
        let tree = match name.ends_with(".json") {
            true => parse_json(&source, &mut found),
            false => {
                let from = source.text().len() - source.text().trim_start_matches('\u{feff}').len();
                parse_yaml(&source, Span::new(from, source.text().len()), &mut found)
            }
        };
        let is_json = name.ends_with(".json");
        let is_sound = is_json || !found.has_errors();
        self.report.extend(found);
        let tree = tree?;
        if !matches!(tree.value, Value::Map(_) | Value::List(_)) {
            let message = match tree.value {
                Value::Null => "the file is empty".to_owned(),
                _ => format!("the file must hold a mapping, but holds {}", tree.value.kind()),
            };
            let code = match tree.value {
                Value::Null => Code::EmptyFile,
                _ => Code::NotAMapping,
            };
            let help = "write its fields as `key: value`, or remove the file";
            self.report.push(Diagnostic::new(code, &source, tree.span, message).help(help));
            return None;
        }
        // What could be read of YAML in spite of syntax errors may lack half of the file, and each
        // thing that is missing would be reported as well. JSON is read whole or not at all.
        is_sound.then_some(Part { source, tree })
    }

    /// Reads an entry. What is wrong with it is reported with the entry's label. `${x}` stays as it
    /// is written: in these files it is a variable of the chat.
    pub(super) fn entry<T>(
        &mut self,
        source: &Arc<Source>,
        label: &str,
        read: impl FnOnce(&mut SpecScope<'_, '_>) -> T,
    ) -> T {
        self.entry_with(source, label, &Environ::empty(), read).0
    }

    /// Reads an entry in which `${VAR}` is a variable of the environment.
    pub(super) fn expanded_entry<T>(
        &mut self,
        source: &Arc<Source>,
        label: &str,
        read: impl FnOnce(&mut SpecScope<'_, '_>) -> T,
    ) -> T {
        let environ = self.loader.options.environ.clone();
        let (value, mut expansions) = self.entry_with(source, label, &environ, read);
        self.expansions.append(&mut expansions);
        value
    }

    fn entry_with<T>(
        &mut self,
        source: &Arc<Source>,
        label: &str,
        environ: &Environ,
        read: impl FnOnce(&mut SpecScope<'_, '_>) -> T,
    ) -> (T, Vec<Expansion>) {
        let mut report = Report::new();
        let loader = &mut *self.loader;
        let mut reader = Reader::new(source, &mut report, environ);
        let origin = Origin { project: &loader.project, dir: &self.dir, shown: &self.shown };
        let mut scope = SpecScope {
            reader: &mut reader,
            origin,
            python: &mut loader.python,
            registered: loader.options.registered_hooks.as_deref(),
        };
        let value = read(&mut scope);
        let expansions = std::mem::take(&mut reader.expansions);
        let report = if label.is_empty() { report } else { report.within(source, label) };
        self.report.extend(report);
        (value, expansions)
    }
}

/// "did you mean", or what there is.
pub(super) fn meant(word: &str, known: &[&str], what: &str) -> String {
    match (nearest(word, known.iter().copied()), known) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => format!("there is no {what}"),
        (None, [one]) => format!("the only {what} is `{one}`"),
        (None, known) => format!("the {what}s are {}", list_words(known, "and")),
    }
}

/// What of a mapping is a field that nobody knows.
pub(super) fn unknown_fields(reader: &mut Reader<'_>, node: &Node, of: &str, known: &[&str]) {
    let entries = node.map().unwrap_or_default();
    if !entries.iter().any(|(key, value)| is_comment(key, value)) {
        reader.only(node, of, known, Code::UnknownEntryField);
        return;
    }
    let fields = named_entries(node).cloned().collect();
    let fields = Node { value: Value::Map(fields), ..node.clone() };
    reader.only(&fields, of, known, Code::UnknownEntryField);
}

/// Whether an entry of a mapping is a remark for people: JSON has no other place for one.
pub(super) fn is_comment(key: &Key, value: &Node) -> bool {
    ["//", "_comment", "$comment"].iter().any(|mark| key.text.starts_with(mark))
        || matches!(key.text.as_str(), "NOTE" | "_note") && value.map().is_none()
}

/// The entries of a mapping whose keys are names that people chose, without remarks.
pub(super) fn named_entries(node: &Node) -> impl Iterator<Item = &(Key, Node)> {
    let entries = node.map().unwrap_or_default().iter();
    entries.filter(|(key, value)| !is_comment(key, value))
}

/// Warns of fields that older files carry and that mean nothing.
pub(super) fn meaningless(reader: &mut Reader<'_>, node: &Node, fields: &[(&str, &str)]) {
    for (name, help) in fields {
        if let Some((key, _)) = present(node, name).and_then(|_| node.entry(name)) {
            let message = format!("`{name}` means nothing here");
            reader.problem_help(Code::MeaninglessField, key.span, message, *help);
        }
    }
}

/// Where an entry is declared, as `file:line`.
pub(super) fn declared(source: &Source, span: Span) -> Arc<str> {
    let line = source.line_col(span.start as usize).line;
    format!("{}:{line}", source.path().display()).into()
}

/// Returns what a `description` says; nothing if it is blank.
pub(super) fn described(description: &str) -> Option<Arc<str>> {
    let description = description.trim();
    (!description.is_empty()).then(|| description.into())
}

/// The place to mark for a whole entry: its first key, else all of it.
pub(super) fn head(node: &Node) -> Span {
    match &node.value {
        Value::Map(entries) => entries.first().map_or(node.span, |(key, _)| key.span),
        _ => node.span,
    }
}
