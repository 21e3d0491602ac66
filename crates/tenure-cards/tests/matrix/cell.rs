//! One cell: a project of its own, loaded, started, run and stopped.

use crate::matrix::deed::{Deed, Host, module, script};
use crate::matrix::expect::Role;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tenure_cards::Team;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Color;
use tenure_core::Outcome;
use tenure_core::hook::{HookFailure, Point};
use tokio::time::{Instant, sleep};

const HOOK_MODULE: &str = "hook.py";
const HOOK_COMMAND: &str = "hook.sh";

/// What became of a cell.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) started: bool,
    /// How the run ended, if there was one.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) tool_ran: bool,
    /// What is said about hooks that failed, wherever it is said.
    pub(crate) faults: Vec<String>,
    /// Processes that are still there.
    pub(crate) left: Vec<String>,
}

/// A project with one hook and an agent whose model has a tool run.
pub(crate) struct Project {
    folder: TempDir,
}

impl Project {
    /// A project whose hook at `point` has this file.
    pub(crate) fn new(
        host: Host,
        hook: &str,
        point: Point,
        role: Role,
        limit: Option<&str>,
    ) -> Self {
        let project = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        let (what, file) = match host {
            Host::Command => (r#"["./hook.sh"]"#, HOOK_COMMAND),
            Host::Python => ("hook.py:hook", HOOK_MODULE),
        };
        let on = match point {
            Point::OnTransition => "'bootstrapping -> idle'",
            other => other.as_str(),
        };
        let policy = if role == Role::Guard { ", policy: deny" } else { "" };
        let limit = limit.map(|limit| format!(", timeout: {limit}")).unwrap_or_default();
        let card = format!(
            "model: script:script.json\nshell: true\nhooks:\n  - {{ on: {on}, run: {what}{policy}{limit} }}\n"
        );
        let said = r#"[{"call": "execute", "with": {"command": "touch ran"}}, {"text": "done"}]"#;
        let files =
            [("tenure.toml", ""), ("agent.yaml", &card), ("script.json", said), (file, hook)];
        for (name, text) in files {
            fs::write(project.root().join(name), text).expect("it can be written");
        }
        allow(&project.root().join(file), 0o755);
        project
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).expect("the folder is there")
    }

    /// Loads it, does `spoil` to it, starts it, runs it and stops it.
    pub(crate) async fn run(self, spoil: impl FnOnce(&Path)) -> Seen {
        let root = self.root();
        let mut seen = Seen {
            started: false,
            outcome: None,
            tool_ran: false,
            faults: Vec::new(),
            left: Vec::new(),
        };
        attempt(&root, spoil, &mut seen).await;
        seen.tool_ran = root.join("ran").exists();
        seen.left = left_in(&root).await;
        seen
    }
}

pub(crate) async fn run(host: Host, deed: Deed, point: Point, role: Role) -> Seen {
    let limit = match deed {
        Deed::Hangs => Some("1500ms"),
        // The usual five seconds of an end are too few for a busy machine to make such an answer.
        Deed::Floods => Some("60s"),
        _ => None,
    };
    let text = match host {
        Host::Python => module(deed, point),
        Host::Command => script(deed, point),
    };
    let project = Project::new(host, &text, point, role, limit);
    if (host, deed) == (Host::Python, Deed::Missing) {
        fs::remove_file(project.root().join(HOOK_MODULE)).expect("it was there");
    }
    // What was there when it was checked may be gone when it is needed.
    let spoil = |root: &Path| match (host, deed) {
        (Host::Command, Deed::Missing) => {
            fs::remove_file(root.join(HOOK_COMMAND)).expect("it was there");
        }
        (_, Deed::NotExecutable) => allow(&root.join(HOOK_COMMAND), 0o644),
        _ => {}
    };
    project.run(spoil).await
}

fn allow(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).expect("the file is ours");
}

async fn attempt(root: &Path, spoil: impl FnOnce(&Path), seen: &mut Seen) {
    let loaded = load(&root.join("agent.yaml"), &LoadOptions::default());
    if loaded.report.has_errors() {
        seen.faults.push(loaded.report.render_text(Color::Never));
        return;
    }
    spoil(root);
    let team = Team::builder(loaded).build().expect("the card can be built");
    if let Err(error) = team.start().await {
        seen.faults.push(error.to_string());
        return;
    }
    seen.started = true;
    let agent = team.agent("agent").expect("it was started");
    match team.run(None, "go").await {
        Ok(run) => {
            seen.outcome = Some(Outcome::Ok);
            note(seen, &run.failures);
            note(seen, run.turn.as_ref().map_or(&[], |turn| &turn.failures));
        }
        Err(error) => {
            seen.outcome = Some(error.outcome());
            seen.faults.push(error.to_string());
            if let Some(report) = error.error().and_then(|error| error.report()) {
                note(seen, &report.failures);
            }
        }
    }
    team.shutdown().await;
    note(seen, &agent.failures());
}

fn note(seen: &mut Seen, failures: &[HookFailure]) {
    seen.faults.extend(failures.iter().map(ToString::to_string));
}

/// The processes that work in the project: all of them were started by its hooks and tools. One that was killed may need
/// a moment to be gone.
async fn left_in(root: &Path) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let left = working_in(root);
        if left.is_empty() || begun.elapsed() > Duration::from_secs(3) {
            return left;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

fn working_in(root: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("this is Linux");
    let here = |process: &fs::DirEntry| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(root))
    };
    let name = |process: fs::DirEntry| {
        let told = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let told = String::from_utf8_lossy(&told).replace('\0', " ");
        format!("{} {}", process.file_name().to_string_lossy(), &told[..told.len().min(80)])
    };
    processes.filter_map(Result::ok).filter(here).map(name).collect()
}
