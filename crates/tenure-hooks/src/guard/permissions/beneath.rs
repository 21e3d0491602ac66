//! Whether a path stays beneath a folder, as the system would follow it.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The longest path that systems take.
const LONGEST: usize = 4096;

/// A folder that paths have to stay beneath.
#[derive(Clone, Debug)]
pub(super) struct Beneath {
    pub(super) folder: PathBuf,
    /// Where relative paths start from; the working folder of the process, if nothing is said.
    pub(super) start: Option<PathBuf>,
}

/// Why a path cannot be judged, and so is refused.
pub(super) type Odd = String;

impl Beneath {
    /// Whether the path leads to the folder or to something beneath it. It looks at the file system
    /// and may block.
    pub(super) fn holds(&self, path: &str) -> Result<bool, Odd> {
        refuse_odd(path)?;
        let folder = self.folder.canonicalize().map_err(|error| {
            format!("the folder `{}` cannot be looked up: {error}", self.folder.display())
        })?;
        let start = match &self.start {
            Some(start) => start.canonicalize(),
            None => std::env::current_dir().and_then(|here| here.canonicalize()),
        };
        let start =
            start.map_err(|error| format!("where paths start from is not there: {error}"))?;
        Ok(follow(&start, Path::new(path))?.starts_with(&folder))
    }
}

/// What a tool might take for something other than the path that is judged here.
fn refuse_odd(path: &str) -> Result<(), Odd> {
    if path.is_empty() {
        return Err("it is empty".to_owned());
    }
    if path.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    if path.contains('\0') {
        return Err("it has a NUL byte in it".to_owned());
    }
    if path.starts_with('~') {
        return Err("it begins with `~`, which some programs replace".to_owned());
    }
    if path.contains("://") {
        return Err("it is an address, and not a path".to_owned());
    }
    Ok(())
}

/// Where the path leads, link by link, as far as it exists; the rest of it as it is written.
fn follow(start: &Path, path: &Path) -> Result<PathBuf, Odd> {
    let mut real = start.to_owned();
    let mut exists = true;
    for part in path.components() {
        match part {
            Component::Prefix(_) => return Err("it begins with a drive".to_owned()),
            Component::RootDir => real = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir if !exists || !real.is_dir() => {
                return Err("it goes up from a folder that is not there".to_owned());
            }
            // What is there so far has no link in it, so this is the folder that it is in.
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) if !exists => real.push(name),
            Component::Normal(name) => {
                real.push(name);
                exists = is_there(&mut real)?;
            }
        }
    }
    Ok(real)
}

/// Whether there is something; a link is replaced by where it leads.
fn is_there(path: &mut PathBuf) -> Result<bool, Odd> {
    let failed = |error: std::io::Error| format!("it cannot be looked up: {error}");
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => {
            // A link that leads nowhere leads out as soon as somebody writes there.
            *path = path.canonicalize().map_err(failed)?;
            Ok(true)
        }
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(error)),
    }
}
