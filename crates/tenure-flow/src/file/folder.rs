//! Which folders are workflows, and which of their files are read.

use std::path::{Path, PathBuf};

/// The suffixes of a workflow's files.
pub(super) const SUFFIXES: [&str; 3] = ["json", "yaml", "yml"];
/// The file that makes a folder a workflow.
pub(super) const ORCHESTRATOR: &str = "orchestrator";
/// The folder of a project that has its workflows.
pub(super) const WORKFLOWS: &str = "workflows";

/// Whether a path is a workflow: a folder with an orchestrator file, or such a file.
pub fn is_workflow(path: &Path) -> bool {
    folder_of(path).is_some()
}

/// The workflows of a project: the folders `workflows/<name>/` beneath `root` that have an
/// orchestrator file, sorted by name.
pub fn workflows_of(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join(WORKFLOWS)) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir() && is_workflow(path))
        .collect();
    found.sort();
    found
}

/// The folder of the workflow that a path is.
pub(super) fn folder_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        let has = |suffix: &&str| path.join(format!("{ORCHESTRATOR}.{suffix}")).is_file();
        return SUFFIXES.iter().any(has).then(|| path.to_owned());
    }
    let is_one = path.file_stem().is_some_and(|stem| stem == ORCHESTRATOR)
        && path.extension().is_some_and(|end| SUFFIXES.iter().any(|known| end == *known));
    if !is_one || !path.is_file() {
        return None;
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => Some(parent.to_owned()),
        _ => Some(PathBuf::from(".")),
    }
}

/// The names of the workflows in a folder of them.
pub(super) fn siblings(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let found = paths.filter(|path| path.is_dir() && is_workflow(path));
    let mut names: Vec<String> =
        found.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
    names.sort();
    names
}
