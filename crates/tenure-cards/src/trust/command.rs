//! The files that a command runs.

use super::python::on_path;
use crate::hook::CommandRef;
use crate::project::{Project, plain};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What of the project a command runs, as far as its line says. What those files run in turn is
/// theirs.
#[derive(Default)]
pub(super) struct CommandFiles {
    /// Its program and the files that it is given: a script runs as much as its interpreter does.
    pub(super) files: BTreeSet<PathBuf>,
    /// The program, if the search path leads to one in the project.
    pub(super) program: Option<PathBuf>,
    /// Folders that Python would import from.
    pub(super) imports: BTreeSet<PathBuf>,
}

pub(super) fn files(command: &CommandRef, project: &Project) -> CommandFiles {
    let mut found = CommandFiles::default();
    found.files.extend(command.file.clone());
    if let (None, Some(name)) = (&command.file, command.argv.first()) {
        found.program = on_path(&[name], project);
    }
    let words: Vec<&str> = command.argv.iter().flat_map(|part| words(part)).collect();
    let mut folders = BTreeSet::new();
    for word in &words {
        let path = plain(&command.dir.join(word));
        // An absolute path that leads out is no file of the project.
        if !path.starts_with(&project.root) && Path::new(word).is_absolute() {
            continue;
        }
        let real = path.canonicalize().ok().filter(|real| real.starts_with(&project.root));
        let path = real.unwrap_or(path);
        if path.is_file() {
            found.files.insert(path);
        } else if path.is_dir() {
            folders.insert(path);
        }
    }
    let is_python = |word: &&str| {
        let name = Path::new(word).file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("python") || name.ends_with(".py")
    };
    if words.iter().any(is_python) || found.files.iter().any(|file| names_python(file)) {
        // A script imports from its own folder, a module and a line from the working directory.
        found.imports.extend(found.files.iter().filter_map(|file| Some(file.parent()?.to_owned())));
        found.imports.extend(folders);
        if found.files.is_empty() || words.iter().any(|word| matches!(*word, "-m" | "-c")) {
            found.imports.insert(command.dir.clone());
        }
    }
    found
}

/// The part itself, and the words in it if it is a line of a shell or an option with a value.
fn words(part: &str) -> impl Iterator<Item = &str> {
    let apart = |c: char| c.is_whitespace() || ";|&()<>'\"`=$".contains(c);
    let inner = part.split(apart).filter(move |word| *word != part);
    [part].into_iter().chain(inner).filter(|word| !word.is_empty())
}

/// Whether the first line of a file says that it is Python.
fn names_python(file: &Path) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let read = std::fs::File::open(file).and_then(|it| it.take(256).read_to_end(&mut head));
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && line.starts_with(b"#!") && String::from_utf8_lossy(line).contains("python")
}
