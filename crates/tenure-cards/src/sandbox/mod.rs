//! The confinement of processes, as files ask for it.
//!
//! [`SandboxSettings`] is what `[sandbox]` of `tenure.toml` says, [`Grant`] what a hook or a server says of itself.
//! `rules.rs` makes of both the rules that a process runs under; keeping them is the business of `tenure-process`.

mod hidden;
mod read;
mod repository;
mod rules;

pub use hidden::{hidden_places, store_files};
pub(crate) use read::{SANDBOX, grant, read, server_grant};
pub(crate) use rules::{confined, sandboxed};

use rules::written_place;
use std::fmt;
use std::path::Path;

/// The confinement of a process in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// It writes nothing but a temporary folder of its own.
    ReadOnly,
    /// It writes the project, but for what decides over it.
    #[default]
    WorkspaceWrite,
    /// It may do what its user may.
    Full,
}

impl Preset {
    /// The presets by their names.
    pub(crate) const NAMES: &'static [(&'static str, Self)] = &[
        ("read-only", Self::ReadOnly),
        ("workspace-write", Self::WorkspaceWrite),
        ("full", Self::Full),
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The confinement that a file asks for: a preset, and what is granted beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Grant {
    /// The preset; none means that of the project.
    pub preset: Option<Preset>,
    /// Whether it has the user's network; none means as usual: hooks, tools and servers have it, and a shell that a
    /// model drives has none.
    pub network: Option<bool>,
    /// Folders and files that it may write beside those of the preset, as they are written.
    pub write: Vec<String>,
}

impl Grant {
    /// The grants that go beyond the usual, each in words: the person who trusts a project is asked about them.
    pub fn beyond_usual(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.preset == Some(Preset::Full) {
            all.push("sandbox: full, so it may do whatever you may".to_owned());
        }
        if self.network == Some(true) {
            all.push("sandbox: the network, also for a shell that a model drives".to_owned());
        }
        all.extend(self.write.iter().map(|path| match repository::is_one(Path::new(path)) {
            true => {
                format!("sandbox: it may write {path}, and so have git run what it likes later")
            }
            false => format!("sandbox: it may write {path}"),
        }));
        all
    }

    /// The restrictions beyond the usual, each in words: without one of these a process may do more.
    pub fn restrictions(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        if self.preset == Some(Preset::ReadOnly) {
            all.push("sandbox: read-only, so it writes nothing but its temporary folder");
        }
        if self.network == Some(false) {
            all.push("sandbox: no network");
        }
        if matches!(self.preset, Some(Preset::ReadOnly | Preset::WorkspaceWrite)) {
            all.push("sandbox: required, so nothing starts where it cannot be kept");
        }
        all
    }

    /// The remedy for a place that is not there.
    pub(crate) const MISSING_HELP: &'static str = "make it first, or take it out: it is granted only where it is \
        there when a process starts; paths start from the project, or from your home with `~/`";

    /// Returns the places that it grants and that are not there.
    pub(crate) fn missing(&self, root: &Path) -> impl Iterator<Item = &str> {
        let is_there = |path: &str| written_place(path, root).is_some_and(|place| place.exists());
        self.write.iter().map(String::as_str).filter(move |path| !is_there(path))
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.preset.map(|preset| preset.to_string()));
        parts.extend(self.network.map(|has| if has { "network" } else { "no network" }.to_owned()));
        parts.extend(self.write.iter().map(|path| format!("writes {path}")));
        f.write_str(&parts.join(", "))
    }
}

/// The table `[sandbox]` of `tenure.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxSettings {
    /// What holds for every process of the project.
    pub grant: Grant,
    /// The most processes that each may have beneath it.
    pub processes: Option<u64>,
    /// The most memory of each process, in MiB.
    pub memory_mib: Option<u64>,
}
