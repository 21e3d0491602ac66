//! The confinement of processes, as `tenure doctor` tells of it: what this kernel can, and each rule, tried.

use super::findings::Findings;
use anyhow::{Context as _, Result};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use tenure_cards::sandbox::hidden_places;
use tenure_hosts::Abilities;
use tenure_process::{Command, Confinement, Environment, Network};
use tokio_util::task::TaskTracker;

/// Tells what this kernel can do to confine processes.
pub(super) fn tell(found: &mut Findings) {
    let Some(Abilities { mounts, network, landlock, seccomp }) = tenure_hosts::abilities() else {
        found.warn("processes are not confined: there is no supervisor", "");
        return;
    };
    match (mounts, landlock) {
        (true, true) => found.good("files: mount namespaces, and landlock behind them"),
        (true, false) => {
            let what = "files: mount namespaces; no landlock, so processes can signal each other";
            found.warn(what, "landlock is in Linux from 5.13 on, signals from 6.12 on");
        }
        (false, true) => found.warn(
            "files: landlock alone; in a folder that holds a card, a hook or a tool nothing new can be written, and modes, \
             owners and times of files can be changed, and sockets with a path be connected to",
            "write into a folder of its own, or allow mount namespaces: as root CAP_SYS_ADMIN, else user namespaces",
        ),
        (false, false) => found.warn(
            "files: processes of hooks, tools and servers can write whatever you can",
            "this kernel has neither mount namespaces nor landlock for you; run Tenure in a container of its own",
        ),
    }
    match (network, seccomp) {
        (_, true) => found.good("calls of the system are filtered, and with them the network of a model's shell"),
        (true, false) => found.warn("calls of the system are not filtered", "seccomp is not available"),
        (false, false) => found.warn(
            "calls of the system are not filtered, and a model's shell cannot be cut off from the network",
            "seccomp is not available; a shell without network is not started",
        ),
    }
    if rustix::process::geteuid().is_root() {
        found.note("as root the number of processes is not limited; memory is");
    }
    found.note("`tenure doctor --sandbox` tries each rule");
}

/// Whether a line of a shell is to succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Works,
    Refused,
}

/// The means that keep a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    /// Mount namespaces, or landlock where there are none.
    Files,
    /// Mount namespaces alone.
    Mounts,
    /// Mount namespaces alone, which cover sockets.
    Covers,
    /// Landlock of Linux 6.12 or later alone.
    Scopes,
    /// Filters of calls.
    Calls,
    /// Filters of calls, or a namespace of the network.
    Network,
    /// Any Linux.
    Kernel,
}

impl Keeper {
    /// Why this kernel does not keep the rule; none, if it should.
    fn missing(self, kernel: Abilities) -> Option<&'static str> {
        let Abilities { mounts, network, landlock, seccomp } = kernel;
        match self {
            Self::Files if !mounts && !landlock => {
                Some("there are neither mount namespaces nor landlock for you here")
            }
            Self::Mounts if !mounts => Some(
                "without mount namespaces nothing new can be written in a folder that holds a card, a hook or a tool; \
                 write into a folder of its own",
            ),
            Self::Covers if !mounts => {
                Some("without mount namespaces sockets with a path can be connected to")
            }
            Self::Scopes => Some("this takes landlock of Linux 6.12 or later"),
            Self::Calls if !seccomp => Some("there is no seccomp here"),
            Self::Network if !seccomp && !network => {
                Some("there is neither seccomp nor a namespace of the network here")
            }
            _ => None,
        }
    }
}

/// The rules, each with a line that keeps or breaks it. The folder is a project's.
const RULES: &[(&str, &str, Expected, Keeper)] = {
    use Expected::{Refused, Works};
    use Keeper::{Calls, Files, Kernel, Mounts, Scopes};
    &[
        ("a hook can write a mark beside itself", "echo x > hooks/mark", Works, Mounts),
        ("a process can write a folder of its own", "echo x > data/mark", Works, Files),
        ("a process has a temporary folder", "echo x > \"$TMPDIR/x\"", Works, Files),
        ("tenure.toml cannot be written", "echo x > tenure.toml", Refused, Files),
        ("tenure.toml cannot be replaced", "mv hooks/free tenure.toml", Refused, Files),
        ("a hook cannot be written", "echo x > hooks/guard.py", Refused, Files),
        ("the folder of a hook cannot be renamed", "mv hooks aside", Refused, Files),
        (".git/hooks cannot be written", "echo x > .git/hooks/pre-commit", Refused, Files),
        ("git cannot be led elsewhere", "echo x > .git/commondir", Refused, Files),
        (
            "there are none but the usual devices",
            "ls /dev/kmsg /dev/mem /dev/loop0",
            Refused,
            Files,
        ),
        (".tenure cannot be read", "cat .tenure/tenure.db", Refused, Files),
        (".tenure cannot be moved", "mv .tenure aside", Refused, Files),
        ("your home cannot be written", "echo x > \"$HOME/.tenure-doctor\"", Refused, Files),
        ("the system cannot be written", ": >> /etc/hosts", Refused, Files),
        ("no privilege can be gained", "grep -q 'NoNewPrivs:.1' /proc/self/status", Works, Kernel),
        (
            "calls of the system are filtered",
            "grep -q 'Seccomp:.2' /proc/self/status",
            Works,
            Calls,
        ),
        ("nothing can be mounted", "mkdir data/m && mount -t tmpfs none data/m", Refused, Calls),
        (
            "no other process can be signalled",
            "kill -0 $(cut -d' ' -f4 /proc/$$/stat)",
            Refused,
            Scopes,
        ),
    ]
};

/// Tries every rule in a folder of its own, and says which of them this kernel holds.
pub(super) fn prove(found: &mut Findings) -> Result<()> {
    let Some(kernel) = tenure_hosts::abilities() else { return Ok(()) };
    let folder = tempfile::tempdir().context("no folder to try rules in")?;
    let root = folder.path().canonicalize()?;
    for file in [
        "tenure.toml",
        "hooks/guard.py",
        "hooks/free",
        "data/free",
        ".git/hooks/old",
        ".tenure/tenure.db",
    ] {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap_or(&root))?;
        std::fs::write(file, "as it was\n")?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rules = rules(&root);
    let mut prove = |rule: &str, line: &str, expected, keeper: Keeper, rules: Confinement| {
        let (is, said) = runtime.block_on(tried(line, &root, rules));
        match (is == Some(expected), keeper.missing(kernel)) {
            (true, _) => found.good(&format!("held: {rule}")),
            (false, Some(why)) => found.warn(&format!("not held by this kernel: {rule}"), why),
            (false, None) => found.bad(&format!("not held: {rule}"), &said),
        }
    };
    for (rule, line, expected, keeper) in RULES {
        prove(rule, line, *expected, *keeper, rules.clone());
    }
    for place in hidden_places() {
        let rule = format!("{} cannot be read", place.display());
        prove(&rule, &reading(&place), Expected::Refused, Keeper::Files, rules.clone());
    }
    let socket = root.join("socket");
    let _listener = UnixListener::bind(&socket)?;
    // It is covered by a device.
    let line = format!("test -c '{}'", socket.display());
    let rules_of_shell = Confinement { network: Network::None, ..rules.clone() };
    let rule = "a model's shell has no socket of others";
    prove(rule, &line, Expected::Works, Keeper::Covers, rules_of_shell);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr()?.port());
    let line = format!("bash -c '{line}'");
    for (rule, network, expected, keeper) in [
        ("hooks and tools have your network", Network::Users, Expected::Works, Keeper::Kernel),
        ("a model's shell has no network", Network::None, Expected::Refused, Keeper::Network),
    ] {
        prove(rule, &line, expected, keeper, Confinement { network, ..rules.clone() });
    }
    Ok(())
}

/// A line that succeeds if it reads any of the first files of a place. Their names may be seen.
fn reading(place: &Path) -> String {
    let place = place.display().to_string().replace('\'', r"'\''");
    format!(
        "test \"$(find '{place}' -type f 2>/dev/null | head -n 50 | \
         while IFS= read -r file; do head -c1 \"$file\" 2>/dev/null; done | wc -c)\" -gt 0"
    )
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
