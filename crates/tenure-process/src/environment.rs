//! What a process gets to see of our environment.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use tenure_sandbox::{Confinement, Network};

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

/// The environment of a process: an allow-list, what the project passes, and what is set; and the rules that it runs
/// under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    passed: Vec<String>,
    set: Vec<(String, String)>,
    /// The variables that no confined process sees.
    withheld: Vec<String>,
    sandbox: Option<Arc<Confinement>>,
}

impl Environment {
    /// The allow-list alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether every process gets the variable of this name.
    pub fn is_usual(name: &str) -> bool {
        ALLOWED.contains(&name) || name.starts_with("LC_")
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

    /// Confines whatever runs in it, by these rules.
    #[must_use]
    pub fn confined(mut self, rules: Confinement) -> Self {
        self.sandbox = Some(Arc::new(rules));
        self
    }

    /// Withholds variables of ours from confined processes, whatever is passed on.
    #[must_use]
    pub fn withholding(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.withheld.extend(names);
        self
    }

    /// Has processes run unconfined.
    #[must_use]
    pub fn unconfined(mut self) -> Self {
        self.withheld.clear();
        self.sandbox = None;
        self
    }

    /// This environment for commands that a model writes: a network that is not granted is none.
    #[must_use]
    pub fn for_model(mut self) -> Self {
        if let Some(rules) = &mut self.sandbox
            && rules.network == Network::Users
        {
            Arc::make_mut(rules).network = Network::None;
        }
        self
    }

    /// The rules that processes run under.
    pub fn sandbox(&self) -> Option<&Confinement> {
        self.sandbox.as_deref()
    }

    /// Returns what to say beside an error of a process that runs in it, if these last words sound like a refusal by
    /// its confinement.
    pub fn hint(&self, words: &str) -> Option<&'static str> {
        crate::hint::hint(self.sandbox()?, words)
    }

    /// The variables, with their values as they are now. Of the `PATH` only absolute folders are
    /// passed on: a relative one would mean something inside the project.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let allowed = |name: &str| {
            if self.withheld.iter().any(|it| it == name) {
                return false;
            }
            Self::is_usual(name) || self.passed.iter().any(|it| it == name)
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
