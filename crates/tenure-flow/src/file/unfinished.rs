//! Folders that look like workflows, and are none.

use super::folder::{ORCHESTRATOR, SUFFIXES, WORKFLOWS, is_workflow};
use super::load::PARTS;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_cards::diagnostic::{Code, Diagnostic, Report};
use tenure_cards::embed::nearest;
use tenure_cards::source::{Source, Span};

/// Finds folders that somebody means as workflows and that have no orchestrator file, so that they
/// are none: `root` itself, and those in its `workflows/`.
pub fn check_folders(root: &Path) -> Report {
    let mut report = Report::new();
    let own = lacking(root, |near, parts| near.is_some() && parts);
    own.into_iter().for_each(|found| report.push(found));
    let entries = std::fs::read_dir(root.join(WORKFLOWS)).into_iter().flatten();
    let mut folders: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    folders.sort();
    for folder in folders {
        let found = lacking(&folder, |near, parts| near.is_some() || parts);
        found.into_iter().for_each(|found| report.push(found));
    }
    report
}

/// Says that a folder has no orchestrator file, if `is_meant` as a workflow: by a file that is
/// nearly called so, and by whether it has any of a workflow's other files.
fn lacking(
    folder: &Path,
    is_meant: impl Fn(Option<&(String, String)>, bool) -> bool,
) -> Option<Diagnostic> {
    if is_workflow(folder) {
        return None;
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut files: Vec<(String, String)> = names
        .filter_map(|name| {
            let (stem, suffix) = name.rsplit_once('.')?;
            SUFFIXES.contains(&suffix).then(|| (stem.to_owned(), suffix.to_owned()))
        })
        .collect();
    files.sort();
    let near = files.iter().find(|(stem, _)| nearest(stem, [ORCHESTRATOR]).is_some());
    let has_parts = files.iter().any(|(stem, _)| PARTS.contains(&stem.as_str()));
    if !is_meant(near, has_parts) {
        return None;
    }
    let shown = folder.strip_prefix(".").unwrap_or(folder);
    let source = Arc::new(Source::new(shown, ""));
    let message = "the folder has no orchestrator file, so it is no workflow";
    let help = match near {
        Some((stem, suffix)) => {
            format!("there is `{stem}.{suffix}`; did you mean `{ORCHESTRATOR}.{suffix}`?")
        }
        None => format!("add {ORCHESTRATOR}.yaml or {ORCHESTRATOR}.json"),
    };
    Some(Diagnostic::new(Code::NoWorkflow, &source, Span::at(0), message).help(help))
}
