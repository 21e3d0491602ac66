//! The packages of the project's own virtual environment, as they were when what would run was listed.

use super::environment::{CACHE, environment_of, site_packages};
use super::python::{Marks, is_importable};
use crate::project::Project;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Suffixes of archives of modules, which Python imports from too.
const ARCHIVES: &[&str] = &["egg", "whl", "zip"];

/// Every file of installed packages that Python could run, with marks: its size, its times and its number on disk.
///
/// They are too many to be read. Marks tell a file that was written, replaced or moved from one that was not,
/// because the time of its last change cannot be set.
#[derive(Debug, Default)]
pub(super) struct Installed {
    folders: BTreeSet<PathBuf>,
    marks: HashMap<PathBuf, Marks>,
}

impl Installed {
    /// Looks at every file, once. An environment that is not the project's is not looked at.
    pub(super) fn read(interpreter: Option<&Path>, project: &Project) -> Self {
        let mut found = Self::default();
        let Some(venv) = interpreter.and_then(environment_of) else { return found };
        let folders = site_packages(venv).into_iter().filter_map(|it| it.canonicalize().ok());
        found.folders = folders.filter(|it| it.starts_with(&project.root)).collect();
        let mut open: Vec<PathBuf> = found.folders.iter().cloned().collect();
        let mut seen = found.folders.clone();
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let kind = entry.file_type().ok();
                let is_link = kind.is_some_and(|kind| kind.is_symlink());
                if kind.is_some_and(|kind| kind.is_dir()) || is_link && path.is_dir() {
                    // A package is asked for by the folder that it really is in.
                    let real = match is_link {
                        true => path.canonicalize().unwrap_or(path),
                        false => path,
                    };
                    if real.starts_with(&project.root) && seen.insert(real.clone()) {
                        open.push(real);
                    }
                } else if is_loaded(&path)
                    && let Some(marks) = Marks::of(&path)
                {
                    found.marks.insert(path, marks);
                }
            }
        }
        found
    }

    pub(super) fn folders(&self) -> Vec<&Path> {
        self.folders.iter().map(PathBuf::as_path).collect()
    }

    /// Says why a file must not be loaded, if it must not. Compiled code in a cache needs its source to be the same
    /// too.
    pub(super) fn check(&self, file: &Path) -> Result<(), String> {
        self.one(file)?;
        source_of(file).map_or(Ok(()), |source| self.one(&source))
    }

    fn one(&self, file: &Path) -> Result<(), String> {
        match self.marks.get(file) {
            None => Err(format!("{} was not checked when the agents were loaded", file.display())),
            Some(marks) if Marks::of(file).as_ref() == Some(marks) => Ok(()),
            Some(_) => Err(format!(
                "{} changed since it was checked; start again to have it checked",
                file.display()
            )),
        }
    }
}

fn is_loaded(path: &Path) -> bool {
    let is_archive = |end: &std::ffi::OsStr| ARCHIVES.iter().any(|known| end == *known);
    is_importable(path) || path.extension().is_some_and(is_archive)
}

/// The source of a file that is in a cache.
fn source_of(file: &Path) -> Option<PathBuf> {
    let cache = file.parent().filter(|folder| folder.file_name().is_some_and(|it| it == CACHE))?;
    let name = file.file_name()?.to_str()?;
    let module = name.split('.').next()?;
    Some(cache.parent()?.join(format!("{module}.py")))
}
