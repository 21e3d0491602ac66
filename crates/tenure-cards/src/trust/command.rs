//! The files that a command runs.

use super::python::on_path;
use crate::hook::CommandRef;
use crate::project::{Project, plain};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What of the project a command runs, as far as its line says. What those files run in turn is
/// theirs.
#[derive(Default)]
pub(super) struct CommandFiles {
    /// Its program and every file that its line names, but for those that it writes: which of them is a script is
    /// up to the program that reads it.
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
    let words: Vec<Word<'_>> = command.argv.iter().flat_map(|part| words(part)).collect();
    let mut folders = BTreeSet::new();
    for word in &words {
        let path = plain(&command.dir.join(word.text));
        // An absolute path that leads out is no file of the project.
        if !path.starts_with(&project.root) && Path::new(word.text).is_absolute() {
            continue;
        }
        let real = path.canonicalize().ok().filter(|real| real.starts_with(&project.root));
        let path = real.unwrap_or(path);
        if word.is_written || command.writes.contains(&path) {
            continue;
        }
        if path.is_file() {
            found.files.insert(path);
        } else if path.is_dir() {
            folders.insert(path);
        }
    }
    let is_python = |word: &Word<'_>| is_interpreter(word.text) || word.text.ends_with(".py");
    if words.iter().any(is_python) || found.files.iter().any(|file| names_python(file)) {
        // A script imports from its own folder, a module and a line from the working directory.
        found.imports.extend(found.files.iter().filter_map(|file| Some(file.parent()?.to_owned())));
        found.imports.extend(folders);
        let is_there = |word: &str| command.dir.join(word).exists();
        let mut rests = (0..words.len()).filter(|at| is_interpreter(words[*at].text));
        if found.files.is_empty() || rests.any(|at| !runs_script(&words[at + 1..], is_there)) {
            found.imports.insert(command.dir.clone());
        }
    }
    found
}

/// A word of a command line that may be a path.
struct Word<'a> {
    text: &'a str,
    /// Whether a redirection says that the shell writes it.
    is_written: bool,
}

/// The words in a part, if it is a line of a shell or an option with a value, and the part itself.
fn words(part: &str) -> Vec<Word<'_>> {
    let mut words = vec![Word { text: part, is_written: false }];
    let apart = |(_, c): &(usize, char)| c.is_whitespace() || ";|&()<>'\"`=$".contains(*c);
    let mut start = 0;
    for (at, c) in part.char_indices().filter(apart).chain([(part.len(), ' ')]) {
        let text = &part[start..at];
        if !text.is_empty() && text != part {
            words.push(Word { text, is_written: is_redirected(&part[..start]) });
        }
        start = at + c.len_utf8();
    }
    words
}

/// Whether what stands before a word says that the word is a file to write to: `>`, `>>`, `>|` or `&>`.
fn is_redirected(before: &str) -> bool {
    let before = before.trim_end_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    let head = before.strip_suffix(">|").or_else(|| before.strip_suffix('>'));
    head.is_some_and(|head| !head.ends_with(['<', '-', '=']))
}

fn is_interpreter(word: &str) -> bool {
    let name = Path::new(word).file_name().unwrap_or_default().to_string_lossy();
    let is_word = !word.contains(char::is_whitespace);
    is_word && (name.starts_with("python") || name.starts_with("pypy"))
}

/// Whether a Python that is given these words runs a script: not a module, a line or its standard input. Its options
/// may stand in one word, each with its value behind it or in the next word.
fn runs_script(words: &[Word<'_>], is_there: impl Fn(&str) -> bool) -> bool {
    let mut words = words.iter().map(|word| word.text);
    while let Some(word) = words.next() {
        let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
            return word != "-" && is_there(word);
        };
        if flags == "-check-hash-based-pycs" {
            words.next();
        }
        if flags.starts_with('-') {
            continue;
        }
        if let Some(at) = flags.find(['m', 'c', 'W', 'X']) {
            if flags[at..].starts_with(['m', 'c']) {
                return false;
            }
            if at + 1 == flags.len() {
                words.next();
            }
        }
    }
    false
}

/// Whether the first line of a file says that it is Python.
fn names_python(file: &Path) -> bool {
    let mut head = Vec::new();
    let read = std::fs::File::open(file).and_then(|it| it.take(256).read_to_end(&mut head));
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && line.starts_with(b"#!") && String::from_utf8_lossy(line).contains("python")
}
