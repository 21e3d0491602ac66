//! `tenure doctor`.

use super::project::user_config_path;
use super::whole::Whole;
use crate::args::Doctor;
use crate::exit::Exit;
use crate::terminal::style::{BAD, BOLD, DIM, GOOD, WARN, paint};
use crate::terminal::text::{clean_line, for_shell, plural};
use crate::trust::{Item, Standing, Store};
use anyhow::Result;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tenure_cards::diagnostic::Diagnostic;
use tenure_cards::project::Project;
use tenure_cards::server::{Reach, Server};
use tenure_cards::team::Explanation;
use tenure_cards::trust::{ItemKind, own_interpreter};
use tenure_cards::{Code, UserConfig};
use tenure_hosts::{Abilities, Interpreter};
use tenure_models::provider::KeySource;
use tenure_store::StoreKeys;

/// What was found, line by line.
#[derive(Default)]
pub(super) struct Findings {
    text: String,
    problems: usize,
    warnings: usize,
}

impl Findings {
    pub(super) fn good(&mut self, what: &str) {
        self.text.push_str(&format!("  {} {}\n", paint(GOOD, "✓"), clean_line(what)));
    }

    fn warn(&mut self, what: &str, remedy: &str) {
        self.warnings += 1;
        self.add(&paint(WARN, "!"), what, remedy);
    }

    pub(super) fn bad(&mut self, what: &str, remedy: &str) {
        self.problems += 1;
        self.add(&paint(BAD, "✗"), what, remedy);
    }

    fn add(&mut self, mark: &str, what: &str, remedy: &str) {
        self.text.push_str(&format!("  {mark} {}\n", clean_line(what)));
        if !remedy.is_empty() {
            self.text.push_str(&format!("    {}\n", paint(DIM, clean_line(remedy))));
        }
    }

    fn note(&mut self, what: &str) {
        self.text.push_str(&format!("    {}\n", paint(DIM, clean_line(what))));
    }

    fn head(&mut self, title: &str) {
        self.text.push_str(&format!("{}\n", paint(BOLD, title)));
    }
}

pub(super) fn run(args: &Doctor) -> Result<Exit> {
    let mut found = Findings::default();
    found.head("Program");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    found.good(&format!("tenure {} ({os} {arch})", env!("CARGO_PKG_VERSION")));
    let store = trust_store(&Project::find(&args.path).root, &mut found);
    store_keys(&Project::find(&args.path).root, &mut found);
    temporary_folder(&mut found);
    user_config(&mut found);
    found.head("Confinement");
    confinement(&mut found);
    if args.sandbox {
        super::confinement::prove(&mut found)?;
        return told(&found);
    }

    let whole = Whole::at(&args.path)?.inspected();
    found.head(&format!("Project {}", whole.root().display()));
    let place = for_shell(&args.path);
    files(&whole, &place, &mut found);
    let items = whole.items();
    let trusted = trust(&whole, &items, store.as_ref(), &place, &mut found);
    interpreter(&whole, &items, trusted, &mut found);
    let (agents, needs) = whole.agents();
    let needs = needs.iter().filter(|need| need.code == Code::UnsetVariable);
    let needs: Vec<_> = needs.collect();
    variables(&whole, &needs, &mut found);
    found.head("Models");
    models(&whole, &agents, &mut found);
    let servers = servers_of(&whole);
    if !servers.is_empty() {
        found.head("Tool servers");
        tool_servers(&servers, &mut found);
    }

    told(&found)
}

/// Prints what was found.
fn told(found: &Findings) -> Result<Exit> {
    let sum = match (found.problems, found.warnings) {
        (0, 0) => paint(GOOD, "All is well."),
        (problems, warnings) => {
            let parts = [(problems, "problem"), (warnings, "warning")].into_iter();
            let parts = parts.filter(|(number, _)| *number > 0);
            let parts: Vec<_> = parts.map(|(number, what)| plural(number, what)).collect();
            format!("{}.", parts.join(", "))
        }
    };
    super::say(&format!("{}\n{sum}", found.text))?;
    Ok(if found.problems > 0 { Exit::Failed } else { Exit::Ok })
}

fn trust_store(root: &Path, found: &mut Findings) -> Option<Store> {
    match Store::open(root) {
        Ok(store) => {
            let projects = plural(store.projects().len(), "project");
            found.good(&format!("trust store {} ({projects})", store.path().display()));
            let folder = store.path().ancestors().skip(1).find(|folder| folder.exists());
            if let Some(folder) = folder
                && let Err(error) = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)
            {
                found.bad(
                    &format!("{} cannot be written: {error}", folder.display()),
                    "trust cannot be recorded; make the folder yours, or set XDG_DATA_HOME",
                );
            }
            Some(store)
        }
        Err(error) => {
            found.bad(&format!("{error:#}"), "");
            None
        }
    }
}

/// The keys of stores: where they are, and those that nothing needs any more.
fn store_keys(root: &Path, found: &mut Findings) {
    /// The most stores that are named.
    const NAMED: usize = 3;
    if let Err(error) = super::recorded::keys_outside(root) {
        found.bad(&format!("{error:#}"), "");
        return;
    }
    match StoreKeys::of_user().orphans() {
        Err(error) => found.warn(&error.to_string(), ""),
        Ok(orphans) if orphans.is_empty() => {}
        Ok(orphans) => {
            let places = orphans.iter().take(NAMED).map(|key| key.store.display().to_string());
            let more = if orphans.len() > NAMED { ", ..." } else { "" };
            let folder = orphans[0].file.parent().unwrap_or(Path::new("")).display();
            found.note(&format!(
                "{} of stores that are not where they were ({}{more}); delete those in {folder} whose \
                 stores are gone",
                plural(orphans.len(), "key"),
                places.collect::<Vec<_>>().join(", "),
            ));
        }
    }
}

/// What this kernel can do to confine processes.
fn confinement(found: &mut Findings) {
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
            "files: landlock alone; in a folder that holds a card, a hook or a tool nothing new can be written",
            "allow mount namespaces: as root CAP_SYS_ADMIN, else user namespaces",
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

fn temporary_folder(found: &mut Findings) {
    let folder = std::env::temp_dir();
    match rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK) {
        Ok(()) => found.good(&format!("temporary files go to {}", folder.display())),
        Err(error) => found.bad(
            &format!("{} cannot be written: {error}", folder.display()),
            "set TMPDIR to a folder of yours",
        ),
    }
}

/// The user's own configuration. What is wrong with it is told with the cards.
fn user_config(found: &mut Findings) {
    let Some(path) = user_config_path() else {
        found
            .warn("there is no place for a configuration of yours", "set HOME, or XDG_CONFIG_HOME");
        return;
    };
    if !path.exists() {
        found.good(&format!("no configuration of yours at {}; none is needed", path.display()));
        return;
    }
    let errors = UserConfig::read(&path).report().errors();
    if errors > 0 {
        let what = format!("your configuration {} has {}", path.display(), plural(errors, "error"));
        found.bad(&what, "see them with `tenure check`");
        return;
    }
    found.good(&format!("your configuration {}", path.display()));
    let mode = std::fs::metadata(&path).map(|meta| meta.permissions().mode()).unwrap_or_default();
    if mode & 0o022 != 0 {
        let remedy = format!("it decides where your keys go: chmod 600 {}", path.display());
        found.warn("others can write your configuration", &remedy);
    }
}

/// Each provider that is used, and each that has a key. Nothing is sent.
fn models(whole: &Whole, agents: &[Explanation], found: &mut Findings) {
    // The configuration of the project and of the user is the same for all of them.
    let Some(loaded) = whole.loaded().next() else { return };
    let user = &loaded.user.models.providers;
    let mut without = Vec::new();
    for provider in loaded.providers().known_providers() {
        let is_its = |agent: &&Explanation| {
            agent.remote.as_ref().is_some_and(|remote| remote.provider == provider.name)
        };
        let users: Vec<_> = agents.iter().filter(is_its).map(|it| it.agent.as_str()).collect();
        let file = user.get(&provider.name).and_then(|entry| match &entry.key {
            Some(KeySource::File(path)) => Some(path),
            _ => None,
        });
        let has_key = provider.has_key && file.is_none_or(|file| file.is_file());
        let used = match users.is_empty() {
            true => String::new(),
            false => format!("; used by {}", users.join(", ")),
        };
        if let Some(problem) = &provider.problem {
            found.warn(&format!("{}: {problem}{used}", provider.name), problem.help());
            continue;
        }
        let name = format!("{} at {}", provider.name, provider.host);
        match (has_key, provider.keyless, users.is_empty()) {
            (true, ..) if !provider.may_have_key => {
                let what = format!("{name}: the project chose the host, so no key is sent{used}");
                found.warn(
                    &what,
                    "allow the host in your own configuration (allow_hosts) to change that",
                );
            }
            (true, ..) => found.good(&format!("{name}: key from {}{used}", provider.key_name)),
            (false, true, false) => found.good(&format!("{name}: needs no key{used}")),
            (false, false, false) => {
                let what = match file {
                    Some(_) => "is not there",
                    None => "is not set",
                };
                found.warn(
                    &format!("{name}: {} {what}{used}", provider.key_name),
                    "those agents cannot run; `--model passthrough` runs them without a network",
                );
            }
            (false, ..) => without.push(provider.name),
        }
    }
    if !without.is_empty() {
        found.note(&format!("not used, and without a key: {}", without.join(", ")));
    }
}

/// The tool servers of the project and of its cards.
fn servers_of(whole: &Whole) -> Vec<&Server> {
    let cards = whole.loaded().flat_map(|loaded| &loaded.cards);
    let cards = cards.filter_map(|card| card.kind.mcp());
    let own = cards.flat_map(|mcp| mcp.connect.iter().filter_map(|it| it.server.as_ref()));
    let project = whole.loaded().next().map(|loaded| &loaded.project.config.servers);
    project.into_iter().flat_map(|servers| servers.values()).chain(own).collect()
}

/// Whether each server could be started. Nothing is started, and nothing is contacted.
fn tool_servers(servers: &[&Server], found: &mut Findings) {
    for server in servers {
        let name = &server.name;
        match &server.reach {
            Reach::Command { command, .. } => {
                let program = command.argv.first().map_or("", String::as_str);
                match find_program(program) {
                    Some(path) => found.good(&format!("{name}: {}", path.display())),
                    None => found.bad(
                        &format!("{name}: there is no program {program}"),
                        "install it, or correct the server's command; PATH was searched",
                    ),
                }
            }
            Reach::Url { written, .. } => {
                found.good(&format!("{name}: {written}, which was not contacted"));
            }
            _ => {}
        }
    }
}

/// The file that a program's name means.
fn find_program(program: &str) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(runs);
    }
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(runs)
}

fn files(whole: &Whole, place: &str, found: &mut Findings) {
    let remedy = format!("see them with `tenure check {place}`");
    let report = whole.report();
    let sum = anstream::adapter::strip_str(&whole.summary(&report)).to_string();
    let is_empty = whole.workflows.is_empty() && whole.loaded().all(|it| it.cards.is_empty());
    match (report.errors(), report.warnings()) {
        (0, 0) if is_empty => {
            found.warn("there is no card here", "write one with `tenure init`");
        }
        (0, 0) => found.good(&sum),
        (0, _) => found.warn(&sum, &remedy),
        _ => found.bad(&sum, &remedy),
    }
}

/// Whether the project is trusted.
fn trust(
    whole: &Whole,
    items: &[Item],
    store: Option<&Store>,
    place: &str,
    found: &mut Findings,
) -> bool {
    let remedy = format!("look at it with `tenure trust review {place}`");
    let Some(store) = store else { return false };
    match store.standing(whole.root(), items) {
        Standing::Trusted if items.is_empty() => {
            found.good("it executes nothing, and needs no trust")
        }
        Standing::Trusted => found.good("it is trusted"),
        Standing::Unknown => {
            found.warn("it is not trusted yet", &remedy);
            return false;
        }
        Standing::Changed(_) => {
            found.warn("it changed since it was trusted", &remedy);
            return false;
        }
    }
    true
}

/// The interpreter, where it may be asked: one that the project brings along is not run before the
/// project is trusted.
fn interpreter(whole: &Whole, items: &[Item], trusted: bool, found: &mut Findings) {
    let Some(project) = whole.loaded().next().map(|loaded| &loaded.project) else { return };
    let own = own_interpreter(project).map(|path| project.relative(&path));
    if let (Some(own), false) = (&own, trusted && !items.is_empty()) {
        found.warn(
            &format!("Python: {own} comes with the project and was not run"),
            "it is looked at once the project is trusted",
        );
        return;
    }
    if let Some(path) = project.config.interpreter.as_ref().map(|path| project.root.join(path)) {
        match path.is_file() {
            true => found.good(&format!("Python at {}, as tenure.toml says", path.display())),
            false => found.bad(
                &format!("Python: there is no {}, which tenure.toml names", path.display()),
                "correct `interpreter` there, or remove it",
            ),
        }
        return;
    }
    match Interpreter::find(&project.root) {
        Ok(python) => {
            found.good(&format!("Python {} at {}", python.version(), python.path().display()));
        }
        Err(error) if uses_python(items) => found.bad(&format!("Python: {error}"), ""),
        Err(error) => found.warn(&format!("Python: {error}"), "nothing here needs it"),
    }
}

fn uses_python(items: &[Item]) -> bool {
    items.iter().any(|item| item.kind == ItemKind::Python.as_str())
}

/// Variables that cards mention, or that tool servers need, and that are not set.
fn variables(whole: &Whole, needs: &[&Diagnostic], found: &mut Findings) {
    let mut unset: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for card in whole.loaded().flat_map(|loaded| &loaded.cards) {
        for expansion in &card.expansions {
            if !expansion.is_resolved {
                let cards = unset.entry(expansion.name.clone()).or_default();
                if !cards.iter().any(|name| **name == *card.name) {
                    cards.push(card.name.to_string());
                }
            }
        }
    }
    let passed = whole.loaded().next().map(|loaded| &loaded.project.config.hook_env);
    for name in passed.into_iter().flatten() {
        if std::env::var_os(name).is_none() {
            unset.entry(name.clone()).or_default().push("tenure.toml".to_owned());
        }
    }
    if unset.is_empty() && needs.is_empty() {
        found.good("every variable that it uses is set");
    }
    let taken = whole.environment();
    let is_set = |name: &&String| std::env::var_os(name).is_some();
    let set: Vec<&str> = taken.iter().filter(is_set).map(String::as_str).collect();
    if !set.is_empty() {
        let verb = if set.len() == 1 { "is" } else { "are" };
        let number = plural(set.len(), "environment variable");
        let names = set.join(", ");
        found.good(&format!("{number} of context variables {verb} set: {names}"));
    }
    for (name, cards) in unset {
        let remedy = format!("export {name}=…, or write a default: ${{{name}:default}}");
        found.warn(&format!("{name} is not set; used by {}", cards.join(", ")), &remedy);
    }
    for need in needs {
        found.warn(&need.message, need.help.as_deref().unwrap_or_default());
    }
}
