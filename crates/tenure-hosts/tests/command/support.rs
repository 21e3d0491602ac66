//! Scripts in a temporary folder, and hooks that run them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tenure_core::event::{EventKind, LogStream};
use tenure_core::hook::{FaultKind, Points};
use tenure_hosts::{CommandHook, Environment};
use tenure_testkit::HarnessRun;

/// A folder with one script in it.
pub(crate) struct Script {
    pub(crate) dir: TempDir,
}

impl Script {
    /// A shell script of this body.
    pub(crate) fn new(body: &str) -> Self {
        Self::of(&format!("#!/bin/sh\n{body}\n"))
    }

    /// A file of this text, executable.
    pub(crate) fn of(text: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("hook.sh");
        std::fs::write(&path, text).expect("the script is written");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("the script is made executable");
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
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

/// Whether a process with this id exists and has not ended.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| {
        let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

/// Waits until `done`, but not for ever.
pub(crate) async fn eventually(what: &str, done: impl Fn() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(20), "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
