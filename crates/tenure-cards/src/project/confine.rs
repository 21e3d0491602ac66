//! Paths that must stay beneath the project.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Why a path cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfineError {
    /// Nothing is there.
    Missing,
    /// It is written so that it leaves the project.
    Outside,
    /// It is written beneath the project, but a link leads out of it, to this place.
    LinkOutside(PathBuf),
    /// It cannot be looked at.
    Unreadable(io::Error),
}

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is not there"),
            Self::Outside => f.write_str("is outside of the project"),
            Self::LinkOutside(_) => f.write_str("is a link that leads out of the project"),
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl std::error::Error for ConfineError {}

/// The file that `path` means when it is written in `base`: absolute, links resolved, and beneath
/// `root`, part by part. `root` and `base` are absolute and resolved.
pub fn confine(root: &Path, base: &Path, path: &Path) -> Result<PathBuf, ConfineError> {
    let full = base.join(path);
    if !plain(&full).starts_with(root) {
        return Err(ConfineError::Outside);
    }
    match full.canonicalize() {
        Ok(found) if found.starts_with(root) => Ok(found),
        Ok(found) => Err(ConfineError::LinkOutside(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ConfineError::Missing),
        // A file in the middle of a path is a folder that is not there.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(ConfineError::Missing),
        Err(error) => Err(ConfineError::Unreadable(error)),
    }
}

/// The same for a file that need not be there: of the way to it, what is there is beneath `root` with
/// its links resolved, and the rest is plain.
pub fn confine_new(root: &Path, base: &Path, path: &Path) -> Result<PathBuf, ConfineError> {
    let full = plain(&base.join(path));
    if !full.starts_with(root) {
        return Err(ConfineError::Outside);
    }
    let mut rest = Vec::new();
    let mut at = full.as_path();
    loop {
        match confine(root, root, at) {
            Ok(found) => return Ok(rest.iter().rev().fold(found, |path, part| path.join(part))),
            // A link to nowhere would be followed by whoever writes there.
            Err(ConfineError::Missing) if at.symlink_metadata().is_ok() => {
                return Err(ConfineError::LinkOutside(at.to_owned()));
            }
            Err(ConfineError::Missing) => {}
            Err(error) => return Err(error),
        }
        let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
            return Err(ConfineError::Outside);
        };
        rest.push(name.to_owned());
        at = parent;
    }
}

/// The path without `.` and `..`, as it reads.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(out.components().next_back(), Some(Component::Normal(_))) =>
            {
                out.pop();
            }
            Component::ParentDir if out.is_absolute() => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_outside_and_linked_outside_are_told_apart() -> io::Result<()> {
        let outer = tempfile::tempdir()?;
        let outer = outer.path().canonicalize()?;
        let root = outer.join("project");
        std::fs::create_dir_all(root.join("sub"))?;
        // A sibling whose name begins like the project's is outside.
        std::fs::create_dir_all(outer.join("project2"))?;
        std::fs::write(root.join("in.py"), "")?;
        std::fs::write(outer.join("out.py"), "")?;
        std::fs::write(outer.join("project2/out.py"), "")?;
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outer.join("out.py"), root.join("link.py"))?;
            std::os::unix::fs::symlink(root.join("in.py"), root.join("fine.py"))?;
            std::os::unix::fs::symlink("../project2/out.py", root.join("near.py"))?;
        }
        let base = root.join("sub");
        let name = |path: &str| match confine(&root, &base, Path::new(path)) {
            Ok(path) => {
                path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(name("../in.py"), "in.py");
        assert_eq!(name("gone.py"), "is not there");
        assert_eq!(name("../in.py/x.py"), "is not there");
        assert_eq!(name("../../out.py"), "is outside of the project");
        assert_eq!(name("../../gone.py"), "is outside of the project");
        assert_eq!(name("../../project2/out.py"), "is outside of the project");
        assert_eq!(name("/etc/passwd"), "is outside of the project");
        #[cfg(unix)]
        {
            assert_eq!(name("../link.py"), "is a link that leads out of the project");
            assert_eq!(name("../near.py"), "is a link that leads out of the project");
            assert_eq!(name("../fine.py"), "in.py");
        }
        Ok(())
    }
}
