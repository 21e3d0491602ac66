//! One cell: a project of its own, loaded, started, run and stopped.

use crate::matrix::deed::{Deed, Host, module, script};
use crate::matrix::expect::Role;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tenure_cards::Team;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Color;
use tenure_core::Outcome;
use tenure_core::hook::{HookFailure, Point};
use tokio::time::{Instant, sleep};

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

pub(crate) async fn run(host: Host, deed: Deed, point: Point, role: Role) -> Seen {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = fs::canonicalize(folder.path()).expect("the folder is there");
    write(&root, host, deed, point, role);
    let mut seen = Seen {
        started: false,
        outcome: None,
        tool_ran: false,
        faults: Vec::new(),
        left: Vec::new(),
    };
    attempt(&root, host, deed, &mut seen).await;
    seen.tool_ran = root.join("ran").exists();
    seen.left = left_in(&root).await;
    seen
}

fn write(root: &Path, host: Host, deed: Deed, point: Point, role: Role) {
    let what = match host {
        Host::Command => r#"["./hook.sh"]"#,
        Host::Python => "hook.py:hook",
    };
    let on = match point {
        Point::OnTransition => "'bootstrapping -> idle'",
        other => other.as_str(),
    };
    let policy = if role == Role::Guard { ", policy: deny" } else { "" };
    let limit = match deed {
        Deed::Hangs => ", timeout: 1500ms",
        // The usual five seconds of an end are too few for a busy machine to make such an answer.
        Deed::Floods => ", timeout: 60s",
        _ => "",
    };
    let card = format!(
        "model: script:script.json\nshell: true\nhooks:\n  - {{ on: {on}, run: {what}{policy}{limit} }}\n"
    );
    let said = r#"[{"call": "execute", "with": {"command": "touch ran"}}, {"text": "done"}]"#;
    let put = |name: &str, text: &str| fs::write(root.join(name), text).expect("it can be written");
    put("tenure.toml", "");
    put("agent.yaml", &card);
    put("script.json", said);
    match host {
        Host::Python if deed == Deed::Missing => {}
        Host::Python => put("hook.py", &module(deed, point)),
        Host::Command => {
            put("hook.sh", &script(deed, point));
            allow(&root.join("hook.sh"), 0o755);
        }
    }
}

fn allow(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).expect("the file is ours");
}

async fn attempt(root: &Path, host: Host, deed: Deed, seen: &mut Seen) {
    let loaded = load(&root.join("agent.yaml"), &LoadOptions::default());
    if loaded.report.has_errors() {
        seen.faults.push(loaded.report.render_text(Color::Never));
        return;
    }
    // What was there when it was checked may be gone when it is needed.
    match deed {
        Deed::Missing if host == Host::Command => {
            fs::remove_file(root.join("hook.sh")).expect("it was there");
        }
        Deed::NotExecutable => allow(&root.join("hook.sh"), 0o644),
        _ => {}
    }
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
