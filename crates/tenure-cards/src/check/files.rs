//! Which files are cards.

use crate::card::FIELDS;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::project::{Project, is_own};
use crate::source::{self, Document, FileKind, Source, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that may be a card.
pub(super) struct Candidate {
    /// Where it is.
    pub(super) path: PathBuf,
    /// The path as messages show it.
    pub(super) shown: PathBuf,
}

/// How a file came to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It was named.
    ByName,
    /// It lies in a folder that was named.
    InFolder,
}

/// What became of a candidate.
pub(super) enum ReadFile {
    /// A card's fields.
    Card(Box<Document>),
    /// A card that cannot be read; what is wrong is in the report.
    Broken,
    /// YAML that is not a card, and what is said of it unless somebody names it.
    Stray(Box<Diagnostic>),
    /// Not a card.
    Skipped,
}

/// The files of a folder that may be cards, sorted by name.
pub(super) fn list(folder: &Path, report: &mut Report) -> Vec<Candidate> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let source = Arc::new(Source::new(folder, ""));
            let message = format!("the folder cannot be read: {error}");
            let diagnostic = Diagnostic::new(Code::Unreadable, &source, Span::at(0), message);
            report.push(diagnostic.help("give yourself the right to read it"));
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| FileKind::of(path).is_some() && path.is_file() && !is_own(path))
        .collect();
    paths.sort();
    paths.into_iter().map(|path| Candidate { shown: shown(&path), path }).collect()
}

/// A path as messages show it: without the `./` of a file in the folder one stands in.
fn shown(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}

/// Reads one file of the project.
pub(super) fn read(
    file: &Candidate,
    asked: Asked,
    project: &Project,
    report: &mut Report,
) -> ReadFile {
    if leads_out(&file.path, project) {
        // Nothing of what it leads to is read, so nothing of it is shown.
        let source = Arc::new(Source::new(&file.shown, ""));
        let message = "this card is a link that leads out of the project";
        let diagnostic = Diagnostic::new(Code::LinkOutsideProject, &source, Span::at(0), message);
        report
            .push(diagnostic.help("put the file itself into the project, or name it where it is"));
        return ReadFile::Broken;
    }
    let Some(source) = source::read(&file.path, &file.shown, report) else {
        return ReadFile::Broken;
    };
    let kind = FileKind::of(&file.path);
    let is_skill = file.path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"));
    if asked == Asked::InFolder && (is_skill || is_prose(&source, kind)) {
        return ReadFile::Skipped;
    }
    let mut found = Report::new();
    let document = source::parse(&source, &mut found);
    if asked == Asked::InFolder
        && kind == Some(FileKind::Yaml)
        && is_stray(document.as_ref(), &source)
    {
        let message = "this file has no field of a card, so it was skipped";
        let stray = Diagnostic::new(Code::StrayYaml, &source, Span::at(0), message)
            .help("move it out of the folder of cards, or name one card instead of the folder");
        return ReadFile::Stray(Box::new(stray));
    }
    report.extend(found);
    match document {
        Some(document) => ReadFile::Card(Box::new(document)),
        None => ReadFile::Broken,
    }
}

/// Whether the path is that of a link to somewhere outside of the project.
fn leads_out(path: &Path, project: &Project) -> bool {
    path.canonicalize().is_ok_and(|real| !real.starts_with(&project.root))
}

/// Markdown without front matter.
fn is_prose(source: &Source, kind: Option<FileKind>) -> bool {
    let text = source.text().trim_start_matches('\u{feff}');
    let first = text.lines().map(str::trim_end).find(|line| !line.is_empty()).unwrap_or_default();
    kind == Some(FileKind::Markdown) && !first.starts_with("---") && !first.starts_with("+++")
}

/// YAML in which no field of a card is named. A file that does not parse is judged by its lines.
fn is_stray(document: Option<&Document>, source: &Source) -> bool {
    let known = |name: &str| FIELDS.iter().any(|field| field.name == name);
    match document {
        Some(document) => {
            !document.tree.map().unwrap_or_default().iter().any(|(key, _)| known(&key.text))
        }
        None => !source.text().lines().any(|line| {
            line.split_once(':').is_some_and(|(name, _)| known(name.trim_matches(['"', '\''])))
        }),
    }
}
