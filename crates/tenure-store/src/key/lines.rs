//! A file of keys, line by line.

use super::place::VARIABLE;
use super::{Identity, StoreKey};
use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::journal::unhex;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The longest file of keys.
const LONGEST: u64 = 64 << 10;
/// What is before the place of a store.
const STORE: &str = "# store ";

/// The lines of a file of keys.
#[derive(Default)]
pub(super) struct KeyFile(Vec<Line>);

enum Line {
    /// `KEY` for every store that has no line of its own, `KEY IDENTITY` for one.
    Key(StoreKey, Option<Identity>),
    /// `# ...`, for people.
    Note(String),
}

impl KeyFile {
    /// Reads a file; none if it is not there.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, StoreError> {
        let what = "read the key of the store";
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.explain(path, what)?,
        };
        let metadata = file.metadata().explain(path, what)?;
        let owner = metadata.uid();
        if owner != rustix::process::geteuid().as_raw() && owner != 0 {
            return Err(refused(path, format_args!("it belongs to another user (uid {owner})")));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(refused(path, "others may write it; `chmod 600` makes it yours alone"));
        }
        let mut text = String::new();
        file.take(LONGEST + 1).read_to_string(&mut text).explain(path, what)?;
        if text.len() as u64 > LONGEST {
            return Err(refused(path, format_args!("it has more than {LONGEST} bytes")));
        }
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            lines.push(Line::parse(line).ok_or_else(|| {
                let wrong = "is neither 64 hexadecimal digits nor these and the name of a store";
                refused(path, format_args!("line {number} {wrong}"))
            })?);
        }
        let has_key = lines.iter().any(|line| matches!(line, Line::Key(..)));
        if has_key { Ok(Some(Self(lines))) } else { Err(empty(path)) }
    }

    /// The keys of a store, the newest first: its own, or those for every store. A store that has
    /// keys of its own has no others, so that a key that it had before is worthless.
    pub(super) fn of(&self, identity: Identity) -> Vec<StoreKey> {
        let own = self.keys(Some(identity));
        if own.is_empty() { self.keys(None) } else { own }
    }

    fn keys(&self, of: Option<Identity>) -> Vec<StoreKey> {
        let keys = self.0.iter().filter_map(|line| match line {
            Line::Key(key, store) if *store == of => Some(key.clone()),
            _ => None,
        });
        keys.collect()
    }

    /// Puts keys in the place of those of one store, or of those for every store.
    pub(super) fn replace(&mut self, of: Option<Identity>, keys: &[StoreKey]) {
        self.0.retain(|line| !matches!(line, Line::Key(_, store) if *store == of));
        self.0.splice(..0, keys.iter().map(|key| Line::Key(key.clone(), of)));
    }

    /// The place of the store that this is the key of, as it was noted.
    pub(super) fn store(&self) -> Option<PathBuf> {
        self.0.iter().find_map(|line| match line {
            Line::Note(note) => Some(PathBuf::from(note.strip_prefix(STORE)?)),
            Line::Key(..) => None,
        })
    }

    /// Notes the place of the store that this is the key of. One that is no plain text is left out.
    pub(super) fn set_store(&mut self, store: &Path) {
        self.0.retain(|line| !matches!(line, Line::Note(note) if note.starts_with(STORE)));
        self.0.extend(noted(store).map(Line::Note));
    }

    /// Whether this is the place that is noted.
    pub(super) fn is_noted(&self, store: &Path) -> bool {
        let is_it =
            |note: String| self.0.iter().any(|line| matches!(line, Line::Note(it) if *it == note));
        noted(store).is_none_or(is_it)
    }
}

fn noted(store: &Path) -> Option<String> {
    let place = std::path::absolute(store).ok()?;
    let place = place.to_str().filter(|place| !place.contains(char::is_control))?;
    Some(format!("{STORE}{place}"))
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return Some(Self::Note(line.to_owned()));
        }
        let mut words = line.split_whitespace();
        let key = StoreKey::from_hex(words.next()?)?;
        let store = words.next().map(|store| unhex(store).map(Identity));
        let is_all = words.next().is_none();
        match store {
            None => Some(Self::Key(key, None)),
            Some(store) => store.filter(|_| is_all).map(|store| Self::Key(key, Some(store))),
        }
    }
}

impl fmt::Display for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.0 {
            match line {
                Line::Key(key, None) => writeln!(f, "{}", key.to_hex())?,
                Line::Key(key, Some(store)) => writeln!(f, "{} {store}", key.to_hex())?,
                Line::Note(note) => writeln!(f, "{note}")?,
            }
        }
        Ok(())
    }
}

pub(super) fn empty(path: &Path) -> StoreError {
    refused(path, "there is no key in it")
}

fn refused(path: &Path, wrong: impl fmt::Display) -> StoreError {
    let message = format!(
        "{}: cannot read the key of the store: {wrong}. Put the right file in its place, or name \
         another one with {VARIABLE}",
        path.display()
    );
    StoreError::new(StoreErrorKind::Io, message)
}
