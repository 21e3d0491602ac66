//! The rules of a process, from what files say and what is on this machine.

use super::hidden::{hidden_places, of_project, variable};
use super::{Grant, Preset, SandboxSettings, repository};
use crate::check::Loaded;
use crate::project::CONFIG_FILE;
use crate::trust::{ItemKind, interpreter_files, inventory, own_interpreter};
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

/// Caches that package runners write, each a folder beneath a home.
const CACHES: &[&str] = &[".npm", ".cache/uv", ".cache/pip"];

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
    let keys = key_variables(loaded);
    sandboxed(&environment.confined(rules).withholding(keys), Some(&settings.grant))
}

/// Returns the variables of ours that hold the key of a provider: by their name, or because their value is one.
fn key_variables(loaded: &Loaded) -> Vec<String> {
    let keys = loaded.key_owners();
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    });
    let variables = variables.filter(|(name, _)| !Environment::is_usual(name));
    let held =
        variables.filter(|(name, value)| !keys.of(std::slice::from_ref(name), value).is_empty());
    held.map(|(name, _)| name).collect()
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
    for path in &grant.write {
        if let Some(found) = place(path, &rules) {
            open(&mut rules, found);
        }
    }
    environment.confined(rules)
}

/// The place that a grant names: from the home with `~`, else from the project. One that is not there is no place; nor
/// is one to which a link within the project leads, since a process that writes the project could lead it anywhere.
fn place(path: &str, rules: &Confinement) -> Option<PathBuf> {
    let root = rules.needed.first()?;
    let named = written_place(path, root)?;
    let found = named.canonicalize().ok()?;
    if named.starts_with(root) && found != named.components().collect::<PathBuf>() {
        return None;
    }
    // A grant cannot give back what guards, but for a repository, which it opens in part.
    let mut guards = rules.hidden.iter().chain(&rules.protected);
    let is_guard = guards.any(|guard| found.starts_with(guard));
    (!is_guard || is_closed_repository(&found, rules)).then_some(found)
}

/// The place that a path of `write` means, whether it is there or not; none if there is no home to start from.
pub(crate) fn written_place(path: &str, root: &Path) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(variable("HOME")?.join(rest)),
        None => Some(root.join(path)),
    }
}

fn is_closed_repository(path: &Path, rules: &Confinement) -> bool {
    repository::is_one(path) && rules.protected.iter().any(|it| it == path)
}

/// Lets a place be written, but for what is executed of the repositories in it.
fn open(rules: &mut Confinement, place: PathBuf) {
    if repository::is_one(&place) {
        rules.protected.retain(|path| *path != place);
        rules.protected.extend(repository::executed(&place).filter(|path| path.exists()));
    } else {
        rules.protected.extend(repository::of(&place).into_iter().filter(|path| path.exists()));
    }
    rules.writable.push(place);
}

/// The rules of `workspace-write`.
fn base(loaded: &Loaded, settings: &SandboxSettings, more: &[PathBuf]) -> Confinement {
    let root = loaded.project.root.clone();
    let home = variable("HOME").and_then(|home| home.canonicalize().ok());
    let mut hidden = hidden_places();
    hidden.extend(of_project(loaded));
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

/// The files of the project that decide over its processes: they may be read and not written.
fn guarding(loaded: &Loaded, more: &[PathBuf]) -> Vec<PathBuf> {
    let project = &loaded.project;
    let root = &project.root;
    let mut files: BTreeSet<PathBuf> = [CONFIG_FILE, ".tenure"].map(|name| root.join(name)).into();
    files.extend(repository::of(root));
    files.extend(project.fast_agent.iter().map(|config| config.file.clone()));
    files.extend(more.iter().cloned());
    files.extend(loaded.cards.iter().map(|card| card.source.path().to_owned()));
    files.extend(loaded.python.reached.iter().cloned());
    let mut told = BTreeSet::new();
    for item in inventory(loaded).items {
        let is_file = matches!(
            item.kind,
            ItemKind::Python | ItemKind::Importable | ItemKind::CommandFile | ItemKind::Config
        );
        // These two are told with more than a path.
        if matches!(item.kind, ItemKind::Interpreter | ItemKind::Venv) {
            files.extend(own_interpreter(project).iter().flat_map(|path| interpreter_files(path)));
        }
        // Of data, what is only read is known by its contents.
        let is_told = item.kind == ItemKind::Instruction
            || item.kind == ItemKind::Data && item.sha256.is_some();
        if is_file {
            files.insert(root.join(&item.what));
        } else if is_told {
            told.insert(root.join(&item.what));
        }
    }
    // A hook may declare that it writes texts and data. What is executed or decides stays closed.
    let written = loaded.cards.iter().flat_map(|card| &card.hooks.declared);
    let written: BTreeSet<&PathBuf> = written.flat_map(|hook| &hook.writes).collect();
    files.extend(told.into_iter().filter(|file| !written.contains(file)));
    let found = files.iter();
    let found = found.flat_map(|file| [file.canonicalize().ok(), link(file)]).flatten();
    let found: BTreeSet<PathBuf> = found.filter(|file| file.starts_with(root)).collect();
    folded(found, root)
}

/// Returns the link that a path is, in its real folder: to replace it is to replace what it leads to.
fn link(path: &Path) -> Option<PathBuf> {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let folder = path.parent().filter(|_| is_link)?.canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
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
