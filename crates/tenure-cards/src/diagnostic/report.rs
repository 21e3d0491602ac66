//! One problem, and all of them together.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Code;
use crate::limit::{MAX_MESSAGE, MAX_SAME_FAULTS};
use crate::source::{Source, Span};

/// How grave a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing runs until it is put right.
    Error,
    /// It is likely not what was meant, but things run.
    Warning,
}

impl Severity {
    /// The word people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// One problem of one file: what it is, where, and what to do about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What it is about.
    pub code: Code,
    /// How grave it is.
    pub severity: Severity,
    /// The file.
    pub source: Arc<Source>,
    /// The place in it.
    pub span: Span,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to write at the marked place of the excerpt.
    pub label: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
    /// The entry of the file that it belongs to, such as ``lifecycle_tools[2] `log_start` ``, where
    /// files have entries.
    pub entry: Option<Arc<str>>,
}

impl Diagnostic {
    /// A diagnostic with the severity of its code.
    pub fn new(code: Code, source: &Arc<Source>, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            source: Arc::clone(source),
            span,
            message: message.into(),
            label: None,
            help: None,
            entry: None,
        }
    }

    /// Says something at the marked place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says which entry of the file it belongs to.
    #[must_use]
    pub fn entry(mut self, entry: impl Into<Arc<str>>) -> Self {
        self.entry = Some(entry.into());
        self
    }

    /// Sets another severity than that of the code.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Cuts texts that are too long to be read.
    fn shorten(&mut self) {
        let texts = [Some(&mut self.message), self.label.as_mut(), self.help.as_mut()];
        for text in texts.into_iter().flatten() {
            if text.len() > MAX_MESSAGE
                && let Some((at, _)) = text.char_indices().nth(MAX_MESSAGE)
            {
                text.truncate(at);
                text.push('…');
            }
        }
    }

    fn order(&self) -> impl Ord + '_ {
        (self.source.path(), self.span.start, self.code.as_str(), self.span.end, &self.message)
    }
}

/// Diagnostics, each once, ordered by file, then place, then code.
///
/// Of one kind in one file at most [`MAX_SAME_FAULTS`] are kept; one more stands for the others. Texts are cut after
/// [`MAX_MESSAGE`] characters. So a report stays small, whatever it is about.
#[derive(Clone, Debug, Default)]
pub struct Report {
    items: Vec<Diagnostic>,
    /// The number of diagnostics of each kind of each file.
    counts: HashMap<(PathBuf, Code), usize>,
}

/// The message that stands for the faults that are not kept.
const OTHERS: &str = "there are more faults of this kind in this file, which are not listed";

impl Report {
    /// An empty report.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a diagnostic at its place in the order. One that is there already, in file, place,
    /// code and message, is not added again.
    pub fn push(&mut self, mut diagnostic: Diagnostic) {
        let key = (diagnostic.source.path().to_owned(), diagnostic.code);
        let kept = self.counts.get(&key).copied().unwrap_or_default();
        if kept > MAX_SAME_FAULTS {
            return;
        }
        let is_last = kept == MAX_SAME_FAULTS || diagnostic.message == OTHERS;
        diagnostic.shorten();
        if is_last && !self.holds(&diagnostic) {
            diagnostic.message = OTHERS.into();
            diagnostic.label = None;
            diagnostic.help = Some(format!(
                "at most {MAX_SAME_FAULTS} are listed; put these right, then check again"
            ));
        }
        let at = match self.items.last() {
            Some(last) if last.order() < diagnostic.order() => self.items.len(),
            _ => self.items.partition_point(|item| item.order() < diagnostic.order()),
        };
        let there = self.items.get(at).is_some_and(|item| item.order() == diagnostic.order());
        if !there {
            self.items.insert(at, diagnostic);
            self.counts.insert(key, if is_last { MAX_SAME_FAULTS } else { kept } + 1);
        }
    }

    /// Whether no more diagnostics of this kind are kept of this file, so that none need be made.
    pub fn is_full(&self, source: &Source, code: Code) -> bool {
        let kept = self.counts.get(&(source.path().to_owned(), code));
        kept.is_some_and(|kept| *kept > MAX_SAME_FAULTS)
    }

    fn holds(&self, diagnostic: &Diagnostic) -> bool {
        self.items.binary_search_by(|item| item.order().cmp(&diagnostic.order())).is_ok()
    }

    /// Adds what was found when agents were built from the files that this report is about, as a check
    /// tells it. What this release cannot do is a warning then, because the file is right all the
    /// same. Of files that are not whole, only that is told which does not follow from what they lack.
    pub fn extend_built(&mut self, found: impl IntoIterator<Item = Diagnostic>) {
        let known = self.has_errors().then(|| self.clone());
        for diagnostic in found {
            let diagnostic = match (diagnostic.code, &known) {
                (Code::BadScript | Code::BadSkill | Code::UnknownModel, _) => diagnostic,
                (Code::BadOption, Some(known)) if !known.has_error_at(&diagnostic) => diagnostic,
                (_, Some(_)) => continue,
                (Code::NotRunnable, None) => diagnostic.severity(Severity::Warning),
                (_, None) => diagnostic,
            };
            self.push(diagnostic);
        }
    }

    /// Whether something is wrong in the place that another diagnostic is about: then that may follow
    /// from it.
    fn has_error_at(&self, other: &Diagnostic) -> bool {
        self.items.iter().any(|item| {
            item.severity == Severity::Error
                && item.source.path() == other.source.path()
                && item.span.start < other.span.end
                && other.span.start < item.span.end
        })
    }

    /// Says which entry of `source` everything that this report says of it belongs to, unless it
    /// says so itself.
    #[must_use]
    pub fn within(mut self, source: &Source, entry: &str) -> Self {
        let entry: Arc<str> = entry.into();
        let of_file = |item: &&mut Diagnostic| item.source.path() == source.path();
        let items = self.items.iter_mut().filter(of_file).filter(|item| item.entry.is_none());
        items.for_each(|item| item.entry = Some(Arc::clone(&entry)));
        self
    }

    /// The diagnostics in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.count(Severity::Error)
    }

    /// How many warnings there are.
    pub fn warnings(&self) -> usize {
        self.count(Severity::Warning)
    }

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|item| item.severity == Severity::Error)
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many diagnostics there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    fn count(&self, severity: Severity) -> usize {
        self.items.iter().filter(|item| item.severity == severity).count()
    }
}

impl IntoIterator for Report {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a> IntoIterator for &'a Report {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Extend<Diagnostic> for Report {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: T) {
        for diagnostic in diagnostics {
            self.push(diagnostic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, start: usize, code: Code) -> Diagnostic {
        let source = Arc::new(Source::new(path, "some text\nand more\n"));
        Diagnostic::new(code, &source, Span::new(start, start + 1), "m")
    }

    #[test]
    fn of_files_that_are_not_whole_only_that_is_told_which_does_not_follow() {
        let found = || {
            [
                at("a.md", 0, Code::BadOption),
                at("a.md", 3, Code::BadOption),
                at("b.md", 0, Code::BadOption),
                at("a.md", 5, Code::DoubtfulHook),
                at("a.md", 6, Code::NotRunnable),
            ]
        };
        let told = |report: &Report| -> Vec<(String, u32, Severity)> {
            let told = |it: &Diagnostic| {
                (it.source.path().display().to_string(), it.span.start, it.severity)
            };
            report.iter().map(told).collect()
        };
        let (a, b) = ("a.md".to_owned(), "b.md".to_owned());
        let mut whole = Report::new();
        whole.extend_built(found());
        let expected = [
            (a.clone(), 0, Severity::Error),
            (a.clone(), 3, Severity::Error),
            (a.clone(), 5, Severity::Warning),
            (a.clone(), 6, Severity::Warning),
            (b.clone(), 0, Severity::Error),
        ];
        assert_eq!(told(&whole), expected);
        // What stands in the way of a file's hook may be why its option cannot be used.
        let mut broken = Report::new();
        broken.push(at("a.md", 0, Code::UnknownTag));
        broken.extend_built(found());
        let expected =
            [(a.clone(), 0, Severity::Error), (a, 3, Severity::Error), (b, 0, Severity::Error)];
        assert_eq!(told(&broken), expected);
        assert_eq!(broken.iter().next().map(|it| it.code), Some(Code::UnknownTag));
    }

    #[test]
    fn diagnostics_are_ordered_by_file_then_place_then_code() {
        let mut report = Report::new();
        report.push(at("b.md", 0, Code::YamlSyntax));
        report.push(at("a.md", 5, Code::YamlSyntax));
        report.push(at("a.md", 5, Code::NotUtf8));
        report.push(at("a.md", 1, Code::UnknownTag));
        let seen: Vec<_> = report
            .iter()
            .map(|d| (d.source.path().display().to_string(), d.span.start, d.code.as_str()))
            .collect();
        let expected = [("a.md", 1, "T0116"), ("a.md", 5, "T0104"), ("a.md", 5, "T0113")];
        assert_eq!(seen[..3], expected.map(|(path, at, code)| (path.to_owned(), at, code)));
        assert_eq!(seen[3].0, "b.md");
    }

    #[test]
    fn the_same_diagnostic_is_kept_once() {
        let mut report = Report::new();
        report.push(at("a.md", 1, Code::UnknownTag));
        report.push(at("a.md", 0, Code::UnknownTag));
        report.push(at("a.md", 1, Code::UnknownTag));
        assert_eq!(report.len(), 2);
    }

    #[test]
    fn errors_and_warnings_are_counted_apart() {
        let mut report = Report::new();
        assert!(report.is_empty() && !report.has_errors());
        report.push(at("a.md", 0, Code::UnknownTag).severity(Severity::Warning));
        assert!(!report.has_errors());
        report.push(at("a.md", 1, Code::UnknownTag));
        assert!(report.has_errors());
        assert_eq!((report.errors(), report.warnings()), (1, 1));
    }
}
