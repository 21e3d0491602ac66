//! What was said before, in this program and in those before it.

use super::Editor;
use crate::terminal::sink::shown;
use std::borrow::Cow;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// So many messages are remembered.
pub(super) const MOST: usize = 1000;
/// A message that is longer was pasted, and nobody looks for it by its first words.
const LONGEST: usize = 10_000;

/// The file of what was said: `$XDG_STATE_HOME/tenure/history`, readable by its user alone.
pub(super) struct Past {
    /// None where it cannot be kept. The chat goes on without.
    file: Option<PathBuf>,
}

impl Past {
    pub(super) fn open() -> Self {
        let file = place(|name| std::env::var_os(name).map(PathBuf::from));
        Self { file: file.filter(|file| prepare(file).is_ok()) }
    }

    pub(super) fn load(&self, editor: &mut Editor) {
        if let Some(file) = &self.file {
            // What cannot be read is begun anew.
            let _ = editor.load_history(file);
        }
    }

    /// Remembers a message, unless it holds a secret that is known here.
    pub(super) fn remember(&self, editor: &mut Editor, message: &str) {
        let is_secret = matches!(shown(message), Cow::Owned(_));
        if message.trim().is_empty() || message.len() > LONGEST || is_secret {
            return;
        }
        let added = editor.add_history_entry(message).unwrap_or(false);
        if let Some(file) = &self.file
            && added
        {
            // A disk that is full is no reason to end a chat.
            let _ = editor.append_history(file);
        }
    }
}

/// Where the file is.
fn place(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let folder = |name| variable(name).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("tenure/history"))
}

/// Makes the file, and sees to it that nobody else reads it.
fn prepare(file: &Path) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
    let mut permissions = file.metadata()?.permissions();
    permissions.set_mode(0o600);
    file.set_permissions(permissions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_kept_in_the_users_state_folder() {
        let with = |set: &'static [(&str, &str)]| {
            place(move |name| {
                set.iter().find(|(it, _)| *it == name).map(|(_, value)| PathBuf::from(*value))
            })
        };
        let expected = |path: &str| Some(PathBuf::from(path));
        let both = with(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]);
        assert_eq!(both, expected("/s/tenure/history"));
        assert_eq!(with(&[("HOME", "/h")]), expected("/h/.local/state/tenure/history"));
        let relative = with(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]);
        assert_eq!(relative, expected("/h/.local/state/tenure/history"));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn nobody_else_can_read_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("tenure/history");
        std::fs::create_dir(dir.path().join("tenure")).expect("a folder");
        std::fs::write(&file, "#V2\n").expect("a file");
        prepare(&file).expect("it is prepared");
        let mode = file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
