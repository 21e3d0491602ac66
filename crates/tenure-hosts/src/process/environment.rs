//! What a hook's process gets to see of our environment.

use std::ffi::OsString;

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

/// The environment of a hook's process: an allow-list, what the project passes, and what is set.
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

    /// The variables, with their values as they are now.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let allowed = |name: &str| {
            ALLOWED.contains(&name)
                || name.starts_with("LC_")
                || self.passed.iter().any(|it| it == name)
        };
        let mut all: Vec<_> =
            std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(allowed)).collect();
        all.extend(self.set.iter().map(|(name, value)| (name.into(), value.into())));
        all
    }
}
