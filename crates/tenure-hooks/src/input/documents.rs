//! Documents in files beneath the project: found, read within limits, and read again when they change.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// How many files one pattern may lead to.
pub(super) const MOST_FILES: usize = 200;
/// How many entries of folders are looked at for one pattern.
#[cfg(feature = "tools")]
const MOST_ENTRIES: usize = 20_000;
/// How deep folders are looked into.
#[cfg(feature = "tools")]
const DEEPEST: usize = 16;

/// Where documents are.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// One file.
    File {
        /// As it was written.
        name: String,
        path: PathBuf,
    },
    /// All files that a pattern fits.
    Glob {
        name: String,
        /// The folder that the pattern starts from, and that nothing leads out of.
        folder: PathBuf,
        #[cfg(feature = "tools")]
        pattern: globset::GlobMatcher,
    },
}

/// A document as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) text: String,
}

/// What is known of files that were read.
#[derive(Debug, Default)]
pub(super) struct Shelf(Mutex<BTreeMap<PathBuf, Known>>);

#[derive(Clone, Debug)]
struct Known {
    changed: Option<SystemTime>,
    length: u64,
    text: String,
}

/// Whether a path is a pattern, and from where on.
pub(super) fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// The folder before the first part that is a pattern, and the rest.
pub(super) fn split_glob(path: &str) -> (String, String) {
    let parts: Vec<_> = path.split('/').collect();
    let first = parts.iter().position(|part| is_glob(part)).unwrap_or(parts.len());
    let folder = parts[..first].join("/");
    let folder = if folder.is_empty() { ".".to_owned() } else { folder };
    (folder, parts[first..].join("/"))
}

impl Place {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::File { name, .. } | Self::Glob { name, .. } => name,
        }
    }

    /// The files that are there now, by name.
    fn files(&self) -> Result<Vec<(String, PathBuf)>, String> {
        match self {
            Self::File { name, path } => Ok(vec![(name.clone(), path.clone())]),
            #[cfg(feature = "tools")]
            Self::Glob { name, folder, pattern } => {
                let mut found = Vec::new();
                let mut seen = 0;
                walk(folder, folder, 0, &mut seen, &mut |below, path| {
                    if pattern.is_match(below) {
                        let shown = below.to_string_lossy().into_owned();
                        found.push((shown, path.to_owned()));
                    }
                    found.len() <= MOST_FILES
                })
                .map_err(|error| format!("`{name}`: {error}"))?;
                if found.len() > MOST_FILES {
                    return Err(format!(
                        "`{name}` fits more than {MOST_FILES} files; narrow it down"
                    ));
                }
                found.sort();
                Ok(found)
            }
            #[cfg(not(feature = "tools"))]
            Self::Glob { name, .. } => Err(format!("`{name}`: this build knows no patterns")),
        }
    }
}

/// Looks through a folder without following links.
#[cfg(feature = "tools")]
fn walk(
    root: &Path,
    folder: &Path,
    depth: usize,
    seen: &mut usize,
    visit: &mut dyn FnMut(&Path, &Path) -> bool,
) -> io::Result<bool> {
    if depth > DEEPEST {
        return Ok(true);
    }
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        *seen += 1;
        if *seen > MOST_ENTRIES {
            return Err(io::Error::other(format!(
                "there are more than {MOST_ENTRIES} files and folders to look at; narrow it down"
            )));
        }
        let (path, kind) = (entry.path(), entry.file_type()?);
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let go_on = if kind.is_dir() && !hidden {
            walk(root, &path, depth + 1, seen, visit)?
        } else if kind.is_file() && !hidden {
            visit(path.strip_prefix(root).unwrap_or(&path), &path)
        } else {
            true
        };
        if !go_on {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Why a place gives nothing.
#[derive(Debug)]
pub(super) enum Lacks {
    /// Nothing is there.
    Missing(String),
    /// Something is wrong with it.
    Wrong(String),
}

impl Shelf {
    /// The documents of places that are files, if all were read before and none has changed since.
    pub(super) fn unchanged(&self, places: &[Place]) -> Option<Vec<Document>> {
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let document = |place: &Place| {
            let Place::File { name, path } = place else { return None };
            let known = shelf.get(path)?;
            let about = fs::metadata(path).ok()?;
            let is_same = known.changed.is_some()
                && known.changed == about.modified().ok()
                && known.length == about.len();
            is_same.then(|| Document { name: name.clone(), text: known.text.clone() })
        };
        places.iter().map(document).collect()
    }

    /// The documents of a place. None of them may have more bytes than `most`.
    pub(super) fn read(&self, place: &Place, most: u64) -> Result<Vec<Document>, Lacks> {
        let files = place.files().map_err(Lacks::Wrong)?;
        if files.is_empty() {
            return Err(Lacks::Missing(format!("no file fits `{}`", place.name())));
        }
        let mut documents = Vec::with_capacity(files.len());
        for (name, path) in files {
            let text = self.text(&name, &path, most)?;
            documents.push(Document { name, text });
        }
        Ok(documents)
    }

    fn text(&self, name: &str, path: &Path, most: u64) -> Result<String, Lacks> {
        let wrong = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Lacks::Missing(format!("there is no file `{name}`")),
            _ => Lacks::Wrong(format!("`{name}` cannot be read: {error}")),
        };
        let about = fs::metadata(path).map_err(wrong)?;
        if !about.is_file() {
            return Err(Lacks::Wrong(format!("`{name}` is no file")));
        }
        let (changed, length) = (about.modified().ok(), about.len());
        let too_long = || {
            Lacks::Wrong(format!(
                "`{name}` has more than {most} bytes; shorten it, or raise `max_file_bytes`"
            ))
        };
        if length > most {
            return Err(too_long());
        }
        let known = {
            let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            shelf.get(path).filter(|it| it.changed == changed && it.length == length).cloned()
        };
        if let Some(known) = known.filter(|it| it.changed.is_some()) {
            return Ok(known.text);
        }
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(wrong)?;
        // It may have grown since.
        file.take(most + 1).read_to_end(&mut bytes).map_err(wrong)?;
        if bytes.len() as u64 > most {
            return Err(too_long());
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Lacks::Wrong(format!("`{name}` is no text in UTF-8")))?;
        let known = Known { changed, length, text: text.clone() };
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.len() > MOST_FILES * 4 {
            shelf.clear();
        }
        shelf.insert(path.to_owned(), known);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_starts_from_the_folder_before_it() {
        let split = |path| split_glob(path);
        assert_eq!(split("docs/*.md"), ("docs".to_owned(), "*.md".to_owned()));
        assert_eq!(split("a/b/**/c?.txt"), ("a/b".to_owned(), "**/c?.txt".to_owned()));
        assert_eq!(split("*.md"), (".".to_owned(), "*.md".to_owned()));
    }
}
