//! Scripts in a temporary folder, and hooks that run them.

use std::path::Path;
use tenure_core::event::{EventKind, LogStream};
use tenure_core::hook::{FaultKind, Points};
use tenure_hosts::{CommandHook, Environment};
use tenure_testkit::{HarnessRun, TestFolder};

/// A folder with one script in it.
pub(crate) struct Script {
    folder: TestFolder,
}

impl Script {
    /// A shell script of this body.
    pub(crate) fn new(body: &str) -> Self {
        Self::of(&format!("#!/bin/sh\n{body}\n"))
    }

    /// A file of this text, executable.
    pub(crate) fn of(text: &str) -> Self {
        let folder = TestFolder::new(&[("hook.sh", text)]);
        folder.make_executable("hook.sh");
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn hook(&self, points: impl Into<Points>) -> CommandHook {
        let argv = vec!["./hook.sh".to_owned()];
        CommandHook::new(argv, points, self.path(), Environment::new())
    }

    /// What the script left in a file of its folder.
    pub(crate) fn left(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.path().join(file)).ok()
    }
}

/// How each failed hook failed.
pub(crate) fn faults(run: &HarnessRun) -> Vec<(FaultKind, String)> {
    run.failures().into_iter().map(|failure| (failure.kind, failure.message)).collect()
}

/// The lines that were logged.
pub(crate) fn logged(run: &HarnessRun) -> Vec<(LogStream, String)> {
    let line = |kind: &EventKind| match kind {
        EventKind::Log { stream, line, .. } => Some((*stream, line.clone())),
        _ => None,
    };
    run.recorder().events().iter().filter_map(|event| line(&event.kind)).collect()
}
