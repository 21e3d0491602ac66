//! What a process gets to see of our environment.

use std::ffi::{OsStr, OsString};

/// The names that every process gets.
const ALLOWED: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TERM",
    "SHELL",
    "VIRTUAL_ENV",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
];

/// The environment of a process: an allow-list, what the project passes, and what is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    passed: Vec<String>,
    set: Vec<(String, String)>,
}

impl Environment {
    /// The allow-list alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes on a variable of ours.
    #[must_use]
    pub fn pass(mut self, name: impl Into<String>) -> Self {
        self.passed.push(name.into());
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set.push((name.into(), value.into()));
        self
    }

    /// The variables, with their values as they are now. Of the `PATH` only absolute folders are
    /// passed on: a relative one would mean something inside the project.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let allowed = |name: &str| {
            ALLOWED.contains(&name)
                || name.starts_with("LC_")
                || self.passed.iter().any(|it| it == name)
        };
        let mut all: Vec<_> =
            std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(allowed)).collect();
        all.retain_mut(|(name, value)| {
            if name == "PATH" {
                *value = absolute(value);
            }
            // An empty search path means the folder that the process is in.
            name != "PATH" || !value.is_empty()
        });
        all.extend(self.set.iter().map(|(name, value)| (name.into(), value.into())));
        all
    }
}

/// The absolute folders of a search path.
fn absolute(path: &OsStr) -> OsString {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    // Folders that were split can be joined again.
    std::env::join_paths(folders).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_folders_are_searched() {
        for (path, expected) in [
            ("/bin:bin:.::/usr/bin", "/bin:/usr/bin"),
            ("./node_modules/.bin:/bin", "/bin"),
            (".", ""),
            ("", ""),
        ] {
            assert_eq!(absolute(OsStr::new(path)), expected, "{path}");
        }
    }
}
