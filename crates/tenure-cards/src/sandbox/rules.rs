//! The rules of a process, from what files say and what is on this machine.

use super::{Grant, Preset, SandboxSettings};
use crate::check::Loaded;
use crate::project::CONFIG_FILE;
use crate::trust::{ItemKind, inventory};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tenure_hosts::{Confinement, Environment, Network};

/// The most processes of one tree, and the most memory of each, unless said otherwise.
const PROCESSES: u64 = 512;
const MEMORY_MIB: u64 = 8192;
/// A folder with more files than this that may not be written is protected as a whole.
const MOST_FILES: usize = 100;
/// The most folders of compiled code that are hidden: each is a mount of every process.
const MOST_CACHES: usize = 64;

/// Keys, sessions and the like beneath a home: what no hook or tool reads.
const HIDDEN: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".oci",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/doctl",
    ".config/tenure",
    ".local/share/tenure",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".password-store",
    ".docker/config.json",
    ".git-credentials",
    ".netrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
];
/// Sockets by which a process could have others started that are not confined.
const SOCKETS: &[&str] =
    &["/run/docker.sock", "/run/podman", "/run/containerd/containerd.sock", "/run/crio/crio.sock"];
/// Caches that package runners write, each a folder beneath a home.
const CACHES: &[&str] = &[".npm", ".cache/uv", ".cache/pip"];

/// The places that are hidden from every confined process of this user, those that are there.
pub fn hidden_places() -> Vec<PathBuf> {
    let home = variable("HOME");
    let beneath_home = home.iter().flat_map(|home| HIDDEN.iter().map(|place| home.join(place)));
    let own = ["XDG_DATA_HOME", "XDG_CONFIG_HOME"].into_iter().filter_map(variable);
    let own = own.map(|folder| folder.join("tenure"));
    let named = ["TENURE_STORE_KEY_FILE", "XDG_RUNTIME_DIR"].into_iter().filter_map(variable);
    let sockets = SOCKETS.iter().map(PathBuf::from);
    let all = beneath_home.chain(own).chain(named).chain(sockets);
    let all: BTreeSet<PathBuf> = all.filter_map(|place| place.canonicalize().ok()).collect();
    all.into_iter().collect()
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Lists files that decide over processes beside the cards.
pub(crate) type Guarding = dyn Fn() -> Vec<PathBuf> + Send + Sync;

/// Confines an environment by what the project says; `more` lists files that decide beside its cards. A key of a
/// provider is withheld, whatever the project passes on.
///
/// Without a supervisor nothing can be confined: then only what was asked for outright is kept, and refused.
pub(crate) fn confined(
    environment: Environment,
    loaded: &Loaded,
    more: Option<&Guarding>,
) -> Environment {
    let settings = &loaded.project.config.sandbox;
    if !is_supervised() {
        return sandboxed(&environment, Some(&settings.grant));
    }
    let rules = base(loaded, settings, &more.map(|files| files()).unwrap_or_default());
    let providers = loaded.providers();
    let known = providers.known_providers();
    let keys = known.iter().flat_map(|provider| providers.key_variables(&provider.name));
    sandboxed(&environment.confined(rules).withholding(keys), Some(&settings.grant))
}

#[cfg(target_os = "linux")]
fn is_supervised() -> bool {
    tenure_hosts::is_supervised()
}

#[cfg(not(target_os = "linux"))]
fn is_supervised() -> bool {
    false
}

/// The environment as a grant has it.
pub(crate) fn sandboxed(environment: &Environment, grant: Option<&Grant>) -> Environment {
    let environment = environment.clone();
    let Some(grant) = grant else { return environment };
    if grant.preset == Some(Preset::Full) {
        return environment.unconfined();
    }
    if environment.sandbox().is_none() && grant.preset.is_none() {
        return environment;
    }
    let mut rules = environment.sandbox().cloned().unwrap_or_default();
    rules.is_required |= grant.preset.is_some();
    if grant.preset == Some(Preset::ReadOnly) {
        rules.writable.clear();
    }
    match grant.network {
        Some(true) => rules.network = Network::Granted,
        Some(false) => rules.network = Network::None,
        None => {}
    }
    let granted: Vec<_> = grant.write.iter().filter_map(|path| place(path, &rules)).collect();
    rules.writable.extend(granted);
    environment.confined(rules)
}

/// The place that a grant names: from the home with `~`, else from the project. One that is not there is no place.
fn place(path: &str, rules: &Confinement) -> Option<PathBuf> {
    let full = match path.strip_prefix("~/") {
        Some(rest) => variable("HOME")?.join(rest),
        None => rules.needed.first()?.join(path),
    };
    let found = full.canonicalize().ok()?;
    // A grant cannot give back what guards.
    let guards = rules.hidden.iter().chain(&rules.protected);
    let is_guard = guards.into_iter().any(|guard| found.starts_with(guard));
    (!is_guard).then_some(found)
}

/// The rules of `workspace-write`.
fn base(loaded: &Loaded, settings: &SandboxSettings, more: &[PathBuf]) -> Confinement {
    let root = loaded.project.root.clone();
    let home = variable("HOME").and_then(|home| home.canonicalize().ok());
    let mut hidden = hidden_places();
    let store = store_folder(loaded);
    hidden.extend(store.canonicalize());
    hidden.retain(|place| !root.starts_with(place));
    let mut protected = guarding(loaded, more);
    hidden.extend(caches(loaded));
    protected.extend(hidden.iter().cloned());
    // A project that is the home itself, or above it, gives no right to all of that.
    let is_home = home.as_ref().is_some_and(|home| home.starts_with(&root));
    let mut copied: Vec<PathBuf> = home
        .iter()
        .flat_map(|home| CACHES.iter().filter_map(|cache| home.join(cache).canonicalize().ok()))
        .collect();
    copied.retain(|cache| !cache.starts_with(&root));
    Confinement {
        writable: if is_home { Vec::new() } else { vec![root.clone()] },
        protected,
        hidden,
        copied,
        temporary: std::env::temp_dir().canonicalize().ok(),
        needed: vec![root],
        network: Network::Users,
        processes: settings.processes.unwrap_or(PROCESSES),
        memory: settings.memory_mib.unwrap_or(MEMORY_MIB).saturating_mul(1 << 20),
        is_required: false,
    }
}

/// Returns the folders of compiled code that commands would believe, and that nothing was held against.
///
/// One that is not there yet is made, because only what is there can be hidden: else a process makes it, and the next
/// command runs what is in it. What is not hidden is kept from a command by [`StartCheck`](tenure_hosts::StartCheck).
fn caches(loaded: &Loaded) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for folders in loaded.commands.caches() {
        if all.union(&folders).count() <= MOST_CACHES {
            all.extend(folders);
        }
    }
    if all.is_empty() || !hides_files() {
        return BTreeSet::new();
    }
    let root = &loaded.project.root;
    all.retain(|folder| match fs::symlink_metadata(folder) {
        Ok(found) => found.is_dir(),
        Err(_) => folder.starts_with(root) && fs::create_dir(folder).is_ok(),
    });
    all
}

/// Whether this kernel can keep files from a process.
#[cfg(target_os = "linux")]
fn hides_files() -> bool {
    tenure_hosts::abilities().is_some_and(|kernel| kernel.mounts || kernel.landlock)
}

#[cfg(not(target_os = "linux"))]
fn hides_files() -> bool {
    false
}

/// The folder of the store, or its file if that is in the project's own folder.
fn store_folder(loaded: &Loaded) -> PathBuf {
    let project = &loaded.project;
    match &project.config.store.path {
        Some(file) if file.parent() == Some(&project.root) => file.clone(),
        Some(file) => file.parent().unwrap_or(file).to_owned(),
        None => project.root.join(".tenure"),
    }
}

/// The files of the project that decide over its processes: they may be read and not written.
fn guarding(loaded: &Loaded, more: &[PathBuf]) -> Vec<PathBuf> {
    let project = &loaded.project;
    let root = &project.root;
    let mut files: BTreeSet<PathBuf> =
        [CONFIG_FILE, ".tenure", ".git/hooks", ".git/config"].map(|name| root.join(name)).into();
    files.extend(project.fast_agent.iter().map(|config| config.file.clone()));
    files.extend(more.iter().cloned());
    files.extend(loaded.cards.iter().map(|card| card.source.path().to_owned()));
    files.extend(loaded.python.reached.iter().cloned());
    for item in inventory(loaded).items {
        let is_file = matches!(
            item.kind,
            ItemKind::Python
                | ItemKind::Importable
                | ItemKind::CommandFile
                | ItemKind::Interpreter
                | ItemKind::Venv
                | ItemKind::Config
        );
        if is_file {
            files.insert(root.join(&item.what));
        }
    }
    let written = loaded.cards.iter().flat_map(|card| &card.hooks.declared);
    let written: BTreeSet<&PathBuf> = written.flat_map(|hook| &hook.writes).collect();
    let found = files.iter().filter(|file| !written.contains(file));
    let found = found.filter_map(|file| file.canonicalize().ok());
    let found: BTreeSet<PathBuf> = found.filter(|file| file.starts_with(root)).collect();
    folded(found, root)
}

/// Puts folders in place of very many files.
fn folded(files: BTreeSet<PathBuf>, root: &Path) -> Vec<PathBuf> {
    let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for folder in files.iter().filter_map(|file| file.parent()) {
        *counts.entry(folder.to_owned()).or_default() += 1;
    }
    counts.retain(|folder, count| *count > MOST_FILES && folder != root);
    let is_inside = |file: &PathBuf| counts.keys().any(|folder| file.starts_with(folder));
    let mut kept: Vec<PathBuf> = files.iter().filter(|file| !is_inside(file)).cloned().collect();
    kept.extend(counts.into_keys());
    kept
}
