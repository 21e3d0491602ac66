//! Repositories of version control: what is written into them is executed later, outside of any confinement.
//!
//! Git runs what `hooks`, `config`, `config.worktree`, the modules and a half-done rebase say, and `commondir` has it
//! read all of these elsewhere. Files that are not there yet cannot be kept from being made in a folder that may be
//! written, and git makes a new file for every change. So a repository is closed as a whole, and a grant that names it
//! opens all but what it executes now.

use std::path::{Path, PathBuf};

/// The folders of repositories, each in the folder that it is about.
const FOLDERS: &[&str] = &[".git", ".hg", ".jj"];
/// What is executed of a repository, or says where that is: closed even where the repository is granted.
const EXECUTED: &[&str] = &[
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "info",
    "modules",
    "worktrees",
    "hgrc",
    "repo/config.toml",
];
/// The file that lists the repositories within one, and the most of it that is read.
const MODULES: &str = ".gitmodules";
const MOST_OF_MODULES: u64 = 1 << 20;

/// Returns the repositories of a folder: its own, and those that it lists as its modules.
pub(super) fn of(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = FOLDERS.iter().map(|name| folder.join(name)).collect();
    let list = folder.join(MODULES);
    let is_plain = list.metadata().is_ok_and(|it| it.is_file() && it.len() <= MOST_OF_MODULES);
    let text =
        if is_plain { std::fs::read_to_string(list).unwrap_or_default() } else { String::new() };
    let values = text.lines().filter_map(|line| line.split_once('='));
    let paths = values.filter(|(key, _)| key.trim().eq_ignore_ascii_case("path"));
    all.extend(paths.map(|(_, path)| folder.join(path.trim().trim_matches('"')).join(".git")));
    all
}

/// Whether this is a repository, by its name.
pub(super) fn is_one(path: &Path) -> bool {
    FOLDERS.iter().any(|name| path.file_name() == Some(name.as_ref()))
}

/// Returns what stays closed of a repository that may be written.
pub(super) fn executed(repository: &Path) -> impl Iterator<Item = PathBuf> {
    EXECUTED.iter().map(move |name| repository.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of settings are the same to git in capitals and not.
    #[test]
    fn modules_are_found_however_their_list_spells_its_keys() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let list = "[submodule \"a\"]\n\tpath = a\n[submodule \"b\"]\n\tPath = \"b\"\n";
        std::fs::write(folder.path().join(MODULES), list).expect("written");
        let found = of(folder.path());
        for name in ["a", "b"] {
            assert!(found.contains(&folder.path().join(name).join(".git")), "{name}: {found:?}");
        }
    }
}
