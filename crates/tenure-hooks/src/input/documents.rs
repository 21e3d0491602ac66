//! Documents in files beneath the project: found, read within limits, and read again when they change.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

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
    pub(super) name: Arc<str>,
    pub(super) text: Arc<str>,
}

/// What is known of files that were read.
#[derive(Debug, Default)]
pub(super) struct Shelf(Mutex<BTreeMap<PathBuf, Known>>);

#[derive(Clone, Debug)]
struct Known {
    stamp: Stamp,
    text: Arc<str>,
}

/// A file that was written so short a time ago may be written again without it showing: the clocks of
/// file systems tick only every so often.
const UNSETTLED: Duration = Duration::from_millis(100);
/// The same where times are whole seconds, or every other one.
const COARSE: Duration = Duration::from_secs(2);

/// What is another one once a file or a folder has changed.
#[derive(Clone, Debug, PartialEq)]
struct Stamp {
    changed: SystemTime,
    length: u64,
    /// Another file in its place, or one that has an older time now.
    #[cfg(unix)]
    node: (u64, u64, i64, i64),
}

impl Stamp {
    /// Of what was looked at, and when. None if it cannot tell a change since then from none.
    fn of(about: &Metadata, looked: SystemTime) -> Option<Self> {
        let changed = about.modified().ok()?;
        // A time that is yet to come says nothing of what happens until then.
        let apart = looked.duration_since(changed).ok()?;
        let since = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let tick = if since.subsec_nanos() == 0 { COARSE } else { UNSETTLED };
        (apart > tick).then(|| Self::at(about, changed))
    }

    fn at(about: &Metadata, changed: SystemTime) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            changed,
            length: about.len(),
            #[cfg(unix)]
            node: (about.dev(), about.ino(), about.ctime(), about.ctime_nsec()),
        }
    }

    fn is_of(&self, about: &Metadata) -> bool {
        about.modified().is_ok_and(|changed| *self == Self::at(about, changed))
    }
}

/// How many files and folders are asked in passing whether they have changed. More take longer than a
/// thread that looks.
const MOST_WATCHED: usize = 32;

/// What was there when documents were read: files, folders that were looked through, and what was
/// missing.
#[derive(Debug, Default)]
pub(super) struct Watch {
    places: Vec<(PathBuf, Option<Stamp>)>,
    /// Something cannot be told from what it will be.
    is_vague: bool,
}

impl Watch {
    /// Looks at a file or a folder, and remembers how it was.
    fn look(&mut self, path: &Path) -> io::Result<(Metadata, Option<Stamp>)> {
        let looked = SystemTime::now();
        let about = fs::metadata(path).map(|about| {
            let stamp = Stamp::of(&about, looked);
            (about, stamp)
        });
        let stamp = match &about {
            Ok((_, stamp)) => stamp.clone(),
            Err(_) => None,
        };
        let is_missing = matches!(&about, Err(error) if error.kind() == io::ErrorKind::NotFound);
        match stamp.is_some() || is_missing {
            true if self.places.len() < MOST_WATCHED => self.places.push((path.to_owned(), stamp)),
            _ => self.is_vague = true,
        }
        about
    }

    /// Whether all is as it was.
    pub(super) fn is_unchanged(&self) -> bool {
        let is_same = |(path, stamp): &(PathBuf, Option<Stamp>)| match (fs::metadata(path), stamp) {
            (Ok(about), Some(stamp)) => stamp.is_of(&about),
            (Err(error), None) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        };
        !self.is_vague && self.places.iter().all(is_same)
    }
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
    fn files(&self, watch: &mut Watch) -> Result<Vec<(String, PathBuf)>, String> {
        match self {
            Self::File { name, path } => Ok(vec![(name.clone(), path.clone())]),
            #[cfg(feature = "tools")]
            Self::Glob { name, folder, pattern } => {
                let mut found = Vec::new();
                let mut seen = 0;
                walk(folder, folder, 0, &mut seen, watch, &mut |below, path| {
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
            Self::Glob { name, .. } => {
                watch.is_vague = true;
                Err(format!("`{name}`: this build knows no patterns"))
            }
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
    watch: &mut Watch,
    visit: &mut dyn FnMut(&Path, &Path) -> bool,
) -> io::Result<bool> {
    if depth > DEEPEST {
        return Ok(true);
    }
    // What comes and goes in a folder changes the folder. A look before the reading misses none of it.
    if watch.look(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
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
            walk(root, &path, depth + 1, seen, watch, visit)?
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
    /// The documents of a place. None of them may have more bytes than `most`.
    pub(super) fn read(
        &self,
        place: &Place,
        most: u64,
        watch: &mut Watch,
    ) -> Result<Vec<Document>, Lacks> {
        let files = place.files(watch).map_err(Lacks::Wrong)?;
        if files.is_empty() {
            return Err(Lacks::Missing(format!("no file fits `{}`", place.name())));
        }
        let mut documents = Vec::with_capacity(files.len());
        for (name, path) in files {
            let text = self.text(&name, &path, most, watch)?;
            documents.push(Document { name: name.into(), text });
        }
        Ok(documents)
    }

    fn text(
        &self,
        name: &str,
        path: &Path,
        most: u64,
        watch: &mut Watch,
    ) -> Result<Arc<str>, Lacks> {
        let wrong = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Lacks::Missing(format!("there is no file `{name}`")),
            _ => Lacks::Wrong(format!("`{name}` cannot be read: {error}")),
        };
        let (about, stamp) = watch.look(path).map_err(wrong)?;
        if !about.is_file() {
            return Err(Lacks::Wrong(format!("`{name}` is no file")));
        }
        let too_long = || {
            Lacks::Wrong(format!(
                "`{name}` has more than {most} bytes; shorten it, or raise `max_file_bytes`"
            ))
        };
        if about.len() > most {
            return Err(too_long());
        }
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(path).filter(|known| known.stamp.is_of(&about)) {
            return Ok(known.text.clone());
        }
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(wrong)?;
        // It may have grown since.
        file.take(most + 1).read_to_end(&mut bytes).map_err(wrong)?;
        if bytes.len() as u64 > most {
            return Err(too_long());
        }
        let text: Arc<str> = String::from_utf8(bytes)
            .map_err(|_| Lacks::Wrong(format!("`{name}` is no text in UTF-8")))?
            .into();
        let mut shelf = lock();
        if shelf.len() > MOST_FILES * 4 {
            shelf.clear();
        }
        if let Some(stamp) = stamp {
            shelf.insert(path.to_owned(), Known { stamp, text: text.clone() });
        }
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
