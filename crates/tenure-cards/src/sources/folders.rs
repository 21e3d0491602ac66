//! What is in the folders that count.

use crate::source::FileKind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders that hold nothing a person writes for hooks: caches, and what tools build and install.
const SKIPPED: &[&str] =
    &["__pycache__", "node_modules", "site-packages", "target", "build", "dist"];
/// More files than these are not looked at.
const MOST_FILES: usize = 5000;
/// Nor more folders than these.
const MOST_FOLDERS: usize = 2000;

/// What Python can import from some folders.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) files: BTreeSet<PathBuf>,
    pub(super) folders: BTreeSet<PathBuf>,
}

/// The Python files beneath these folders, and every folder that may come to hold one.
pub(super) fn walk(folders: &BTreeSet<PathBuf>) -> Walked {
    let mut found = Walked::default();
    let mut open: Vec<PathBuf> = folders.iter().cloned().collect();
    while let Some(folder) = open.pop() {
        if found.folders.len() >= MOST_FOLDERS || found.files.len() >= MOST_FILES {
            break;
        }
        // A folder that was named counts whatever its name is.
        let real = folder.canonicalize().unwrap_or(folder);
        if found.folders.contains(&real) || !real.is_dir() {
            continue;
        }
        for path in entries(&real) {
            if path.is_dir() {
                if !is_noise(&path) {
                    open.push(path);
                }
            } else if is_python(&path) {
                found.files.insert(path);
            }
        }
        found.folders.insert(real);
    }
    found
}

/// Whether Python would import this file.
pub(super) fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|end| ["py", "so", "pyd"].iter().any(|it| end == *it))
}

fn is_noise(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || SKIPPED.contains(&&*name) || folder.join("pyvenv.cfg").is_file()
}

/// The files of a folder that may be cards.
pub(super) fn cards(folder: &Path) -> Vec<PathBuf> {
    let is_card = |path: &PathBuf| FileKind::of(path).is_some() && path.is_file();
    entries(folder).into_iter().filter(is_card).collect()
}

/// The manifests of a skill's folder, or of a folder of skills.
pub(super) fn manifests(folder: &Path) -> Vec<PathBuf> {
    let own = [folder.to_owned()].into_iter().chain(children(folder));
    own.map(|folder| folder.join("SKILL.md")).filter(|file| file.is_file()).collect()
}

/// The folders in a folder.
pub(super) fn children(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir() && !is_noise(path)).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}
