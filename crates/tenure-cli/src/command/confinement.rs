//! `tenure doctor --sandbox`: each rule of confinement, tried.

use super::doctor::Findings;
use anyhow::{Context as _, Result};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use tenure_cards::sandbox::hidden_places;
use tenure_process::{Command, Confinement, Environment, Network};
use tokio_util::task::TaskTracker;

/// Whether a line of a shell is to succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Works,
    Refused,
}

/// The rules, each with a line that keeps or breaks it. The folder is a project's.
const RULES: &[(&str, &str, Expected)] = &[
    ("a hook writes a mark beside itself", "echo x > hooks/mark", Expected::Works),
    ("a process has a temporary folder", "echo x > \"$TMPDIR/x\"", Expected::Works),
    ("tenure.toml cannot be written", "echo x > tenure.toml", Expected::Refused),
    ("tenure.toml cannot be replaced", "mv hooks/free tenure.toml", Expected::Refused),
    ("a hook cannot be written", "echo x > hooks/guard.py", Expected::Refused),
    ("the folder of a hook cannot be renamed", "mv hooks aside", Expected::Refused),
    (".git/hooks cannot be written", "echo x > .git/hooks/pre-commit", Expected::Refused),
    ("git cannot be led elsewhere", "echo x > .git/commondir", Expected::Refused),
    ("there are none but the usual devices", "ls /dev/kmsg /dev/mem /dev/loop0", Expected::Refused),
    (".tenure cannot be read", "cat .tenure/tenure.db", Expected::Refused),
    (".tenure cannot be moved", "mv .tenure aside", Expected::Refused),
    ("your home cannot be written", "echo x > \"$HOME/.tenure-doctor\"", Expected::Refused),
    ("the system cannot be written", "touch /etc/hosts", Expected::Refused),
    ("no privilege can be gained", "grep -q 'NoNewPrivs:.1' /proc/self/status", Expected::Works),
    ("calls of the system are filtered", "grep -q 'Seccomp:.2' /proc/self/status", Expected::Works),
    ("nothing can be mounted", "mkdir m && mount -t tmpfs none m", Expected::Refused),
    (
        "no other process can be signalled",
        "kill -0 $(cut -d' ' -f4 /proc/$$/stat)",
        Expected::Refused,
    ),
];

/// Tries every rule in a folder of its own, and says which hold.
pub(super) fn prove(found: &mut Findings) -> Result<()> {
    let folder = tempfile::tempdir().context("no folder to try rules in")?;
    let root = folder.path().canonicalize()?;
    for file in
        ["tenure.toml", "hooks/guard.py", "hooks/free", ".git/hooks/old", ".tenure/tenure.db"]
    {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap_or(&root))?;
        std::fs::write(file, "as it was\n")?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rules = rules(&root);
    for (rule, line, expected) in RULES {
        let (is, why) = runtime.block_on(tried(line, &root, rules.clone()));
        tell(found, rule, is == Some(*expected), &why);
    }
    for place in hidden_places() {
        let shown = place.display().to_string().replace('\'', r"'\''");
        let line = match place.is_dir() {
            true => format!("test -n \"$(ls -A '{shown}')\""),
            false => format!("test -s '{shown}'"),
        };
        let (is, why) = runtime.block_on(tried(&line, &root, rules.clone()));
        let rule = format!("{} cannot be read", place.display());
        tell(found, &rule, is == Some(Expected::Refused), &why);
    }
    let socket = root.join("socket");
    let _listener = UnixListener::bind(&socket)?;
    // It is covered by a device.
    let line = format!("test -c '{}'", socket.display());
    let rules_of_shell = Confinement { network: Network::None, ..rules.clone() };
    let (is, why) = runtime.block_on(tried(&line, &root, rules_of_shell));
    let rule = "a model's shell has no socket of others";
    tell(found, rule, is == Some(Expected::Works), &why);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr()?.port());
    let line = format!("bash -c '{line}'");
    for (rule, network, expected) in [
        ("hooks and tools have your network", Network::Users, Expected::Works),
        ("a model's shell has no network", Network::None, Expected::Refused),
    ] {
        let rules = Confinement { network, ..rules.clone() };
        let (is, why) = runtime.block_on(tried(&line, &root, rules));
        tell(found, rule, is == Some(expected), &why);
    }
    Ok(())
}

fn tell(found: &mut Findings, rule: &str, holds: bool, why: &str) {
    if holds {
        found.good(rule);
    } else {
        found.bad(&format!("not so: {rule}"), why);
    }
}

fn rules(root: &Path) -> Confinement {
    let at = |name: &str| root.join(name);
    let mut hidden = hidden_places();
    hidden.push(at(".tenure"));
    let mut protected = vec![at("tenure.toml"), at("hooks/guard.py"), at(".git")];
    protected.push(at(".tenure"));
    Confinement {
        writable: vec![root.to_owned()],
        protected,
        hidden,
        temporary: std::env::temp_dir().canonicalize().ok(),
        needed: vec![root.to_owned()],
        processes: 512,
        memory: 1 << 30,
        ..Confinement::default()
    }
}

/// Runs a line, and returns whether it succeeded; `None` if it was not started.
async fn tried(line: &str, root: &Path, rules: Confinement) -> (Option<Expected>, String) {
    let environment = Environment::new().confined(rules);
    let command = Command::shell(line, root, &environment);
    match command.run(&TaskTracker::new()).await {
        Ok(heard) if heard.ended.is_ok() => (Some(Expected::Works), heard.text()),
        Ok(heard) => (Some(Expected::Refused), heard.text()),
        Err(why) => (None, why),
    }
}
