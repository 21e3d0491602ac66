//! `tenure doctor`.

use super::project::Opened;
use crate::args::Doctor;
use crate::exit::Exit;
use crate::terminal::style::{BAD, BOLD, DIM, GOOD, WARN, paint};
use crate::terminal::text::{clean_line, for_shell, plural};
use crate::trust::{Item, Standing, Store};
use anyhow::Result;
use std::collections::BTreeMap;
use tenure_cards::trust::{ItemKind, own_interpreter};
use tenure_hosts::Interpreter;

/// What was found, line by line.
#[derive(Default)]
struct Findings {
    text: String,
    problems: usize,
    warnings: usize,
}

impl Findings {
    fn good(&mut self, what: &str) {
        self.text.push_str(&format!("  {} {}\n", paint(GOOD, "✓"), clean_line(what)));
    }

    fn warn(&mut self, what: &str, remedy: &str) {
        self.warnings += 1;
        self.add(&paint(WARN, "!"), what, remedy);
    }

    fn bad(&mut self, what: &str, remedy: &str) {
        self.problems += 1;
        self.add(&paint(BAD, "✗"), what, remedy);
    }

    fn add(&mut self, mark: &str, what: &str, remedy: &str) {
        self.text.push_str(&format!("  {mark} {}\n", clean_line(what)));
        if !remedy.is_empty() {
            self.text.push_str(&format!("    {}\n", paint(DIM, clean_line(remedy))));
        }
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
    let store = trust_store(&mut found);
    temporary_folder(&mut found);

    let opened = Opened::at(&args.path)?.inspected();
    found.head(&format!("Project {}", opened.root().display()));
    let place = for_shell(&args.path);
    cards(&opened, &place, &mut found);
    let items = opened.items();
    let trusted = trust(&opened, &items, store.as_ref(), &place, &mut found);
    interpreter(&opened, &items, trusted, &mut found);
    variables(&opened, &mut found);

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

fn trust_store(found: &mut Findings) -> Option<Store> {
    match Store::open() {
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

fn cards(opened: &Opened, place: &str, found: &mut Findings) {
    let remedy = format!("see them with `tenure check {place}`");
    let report = opened.report();
    let sum = anstream::adapter::strip_str(&opened.summary()).to_string();
    match (report.errors(), report.warnings()) {
        (0, 0) if opened.loaded.cards.is_empty() => {
            found.warn("there is no card here", "write one with `tenure init`");
        }
        (0, 0) => found.good(&sum),
        (0, _) => found.warn(&sum, &remedy),
        _ => found.bad(&sum, &remedy),
    }
}

/// Whether the project is trusted.
fn trust(
    opened: &Opened,
    items: &[Item],
    store: Option<&Store>,
    place: &str,
    found: &mut Findings,
) -> bool {
    let remedy = format!("look at it with `tenure trust review {place}`");
    let Some(store) = store else { return false };
    match store.standing(opened.root(), items) {
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
fn interpreter(opened: &Opened, items: &[Item], trusted: bool, found: &mut Findings) {
    let project = &opened.loaded.project;
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
        Err(error) if uses_python(opened) => found.bad(&format!("Python: {error}"), ""),
        Err(error) => found.warn(&format!("Python: {error}"), "no card here needs it"),
    }
}

fn uses_python(opened: &Opened) -> bool {
    opened.items().iter().any(|item| item.kind == ItemKind::Python.as_str())
}

/// Variables that cards mention and that are not set.
fn variables(opened: &Opened, found: &mut Findings) {
    let mut unset: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for card in &opened.loaded.cards {
        for expansion in &card.expansions {
            if !expansion.is_resolved {
                let cards = unset.entry(expansion.name.clone()).or_default();
                if !cards.iter().any(|name| **name == *card.name) {
                    cards.push(card.name.to_string());
                }
            }
        }
    }
    for name in &opened.loaded.project.config.hook_env {
        if std::env::var_os(name).is_none() {
            unset.entry(name.clone()).or_default().push("tenure.toml".to_owned());
        }
    }
    if unset.is_empty() {
        found.good("every variable that it uses is set");
    }
    for (name, cards) in unset {
        let remedy = format!("export {name}=…, or write a default: ${{{name}:default}}");
        found.warn(&format!("{name} is not set; used by {}", cards.join(", ")), &remedy);
    }
}
