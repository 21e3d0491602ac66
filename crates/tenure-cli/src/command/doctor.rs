//! `tenure doctor`.

use super::confinement;
use super::findings::Findings;
use super::project::user_config_path;
use super::whole::Whole;
use crate::args::Doctor;
use crate::exit::Exit;
use crate::terminal::style::{GOOD, paint};
use crate::terminal::text::{for_shell, plural};
use crate::trust::{Item, Standing, Store};
use anyhow::Result;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tenure_cards::diagnostic::Diagnostic;
use tenure_cards::server::{Reach, Server};
use tenure_cards::team::Explanation;
use tenure_cards::trust::{ItemKind, own_interpreter};
use tenure_cards::{Code, UserConfig};
use tenure_hosts::Interpreter;
use tenure_models::provider::KeySource;
use tenure_store::StoreKeys;

pub(super) fn run(args: &Doctor) -> Result<Exit> {
    let mut found = Findings::default();
    found.head("Program");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    found.good(&format!("tenure {} ({os} {arch})", env!("CARGO_PKG_VERSION")));
    let whole = match args.sandbox {
        true => None,
        false => Some(Whole::at(&args.path)?.inspected()),
    };
    let whole = whole.filter(|whole| !is_nothing(whole));
    let store = trust_store(whole.as_ref().map(Whole::root), &mut found);
    store_keys(whole.as_ref().map(Whole::root), &mut found);
    temporary_folder(&mut found);
    user_config(&mut found);
    found.head("Confinement");
    confinement::tell(&mut found);
    if args.sandbox {
        confinement::prove(&mut found)?;
        return told(&found);
    }
    let Some(whole) = whole else {
        found.head("Project");
        found.note("there is none here: no card, no workflow and no tenure.toml");
        found.note("`tenure init` writes one");
        return told(&found);
    };
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
    let sum = match (found.problems(), found.warnings()) {
        (0, 0) => paint(GOOD, "All is well."),
        (problems, warnings) => {
            let parts = [(problems, "problem"), (warnings, "warning")].into_iter();
            let parts = parts.filter(|(number, _)| *number > 0);
            let parts: Vec<_> = parts.map(|(number, what)| plural(number, what)).collect();
            format!("{}.", parts.join(", "))
        }
    };
    super::say(&format!("{}\n{sum}", found.text()))?;
    Ok(if found.problems() > 0 { Exit::Failed } else { Exit::Ok })
}

/// Whether a path holds nothing of Tenure's, so that there is nothing to find fault with.
fn is_nothing(whole: &Whole) -> bool {
    has_no_agents(whole)
        && whole.report().iter().all(|found| found.code == Code::NoCards)
        && whole.loaded().all(|loaded| {
            loaded.project.config_text.is_none() && loaded.project.fast_agent.is_none()
        })
}

fn has_no_agents(whole: &Whole) -> bool {
    whole.workflows.is_empty() && whole.loaded().all(|loaded| loaded.cards.is_empty())
}

/// The trust store, for the project at `root` if there is one.
fn trust_store(root: Option<&Path>, found: &mut Findings) -> Option<Store> {
    let store = match root {
        Some(root) => Store::open(root),
        None => Store::locate().and_then(Store::at),
    };
    match store {
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
fn store_keys(root: Option<&Path>, found: &mut Findings) {
    /// The most stores that are named.
    const NAMED: usize = 3;
    if let Some(Err(error)) = root.map(super::recorded::keys_outside) {
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
    let is_empty = has_no_agents(whole) && report.iter().all(|it| it.code == Code::NoCards);
    match (report.errors(), report.warnings()) {
        _ if is_empty => found.warn("there is no card here", "write one with `tenure init`"),
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
