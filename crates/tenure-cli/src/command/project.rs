//! Opening a project: reading and checking it, and saying what is wrong.

use crate::exit::Stop;
use crate::terminal::print_plain;
use crate::terminal::sink;
use crate::terminal::size::columns;
use crate::terminal::style::{BAD, GOOD, WARN, paint};
use crate::terminal::text::plural;
use crate::trust::Item;
use anstream::{AutoStream, ColorChoice};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tenure_cards::UserConfig;
use tenure_cards::card::Card;
use tenure_cards::check::{LoadOptions, Loaded, load};
use tenure_cards::diagnostic::{Code, Color, Report};
use tenure_cards::team::Team;

/// A project as it was read, and how long that took.
pub(super) struct Opened {
    pub(super) loaded: Loaded,
    pub(super) took: Duration,
}

impl Opened {
    /// Reads the cards at `path`. Executes nothing.
    pub(super) fn at(path: &Path) -> Result<Self> {
        must_exist(path)?;
        let began = Instant::now();
        let mut loaded = load(path, &load_options());
        loaded.report = nothing_to_run(&loaded.report);
        // Its secrets are known before anything of it is said.
        drop(loaded.redactor());
        Ok(Self { loaded, took: began.elapsed() })
    }

    /// Looks also at what a run would refuse: scripts that cannot be used, agents that cannot be
    /// built. Executes nothing.
    pub(super) fn inspected(mut self) -> Self {
        let began = Instant::now();
        let refused = Team::builder(self.loaded.clone()).inspect().report;
        self.loaded.report.extend_built(refused);
        self.took += began.elapsed();
        self
    }

    /// What was looked at, and what was found: the last line of a check.
    pub(super) fn summary(&self) -> String {
        let cards = &self.loaded.cards;
        let hooks: usize = cards.iter().map(hook_count).sum();
        summary(&[(cards.len(), "card"), (hooks, "hook")], &self.loaded.report, self.took)
    }

    /// Prints errors and warnings on standard error, as `check` prints them. Says whether the
    /// project can be used.
    pub(super) fn complain(&self) -> bool {
        let report = &self.loaded.report;
        complain_about(report);
        if report.has_errors() {
            print_plain(&self.summary());
        }
        !report.has_errors()
    }

    /// Whether there is any card, be it a broken one.
    pub(super) fn has_cards(&self) -> bool {
        !self.report().iter().any(|diagnostic| diagnostic.code == Code::NoCards)
    }

    /// Everything that a run would execute.
    pub(super) fn items(&self) -> Vec<Item> {
        items_of(&self.loaded)
    }

    /// The error of a name that no agent here has.
    pub(super) fn no_agent(&self, name: &str) -> anyhow::Error {
        no_agent(name, &self.loaded)
    }

    pub(super) fn root(&self) -> &Path {
        &self.loaded.project.root
    }

    pub(super) fn report(&self) -> &Report {
        &self.loaded.report
    }
}

/// Says of a folder without a card that there is no workflow either: one that has some is told so
/// only where cards are wanted, and those ask first.
fn nothing_to_run(report: &Report) -> Report {
    let mut told = Report::new();
    for diagnostic in report.iter() {
        let mut diagnostic = diagnostic.clone();
        if diagnostic.code == Code::NoCards {
            diagnostic.message = "the folder holds no card and no workflow".into();
        }
        told.push(diagnostic);
    }
    told
}

/// Refuses a path that leads nowhere.
pub(super) fn must_exist(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let path = path.display();
    Err(Stop::usage(format!(
        "there is no `{path}`; name a card, a directory of cards or a workflow, or make one with \
         `tenure init`"
    ))
    .into())
}

/// How files are read.
pub(super) fn load_options() -> LoadOptions {
    // This program brings no registered hooks along, so no file can `use` any.
    let options = LoadOptions::default().registered_hooks(Vec::<String>::new());
    let user = user_config_path().map(|path| UserConfig::read(&path)).unwrap_or_default();
    options.user_config(user).redactor(sink::redactor())
}

/// How many of what were looked at, and what was found: the last line of a check.
pub(super) fn summary(counts: &[(usize, &str)], report: &Report, took: Duration) -> String {
    let found = match (report.errors(), report.warnings()) {
        (0, 0) => paint(GOOD, "no problems"),
        (0, warnings) => paint(WARN, plural(warnings, "warning")),
        (errors, 0) => paint(BAD, plural(errors, "error")),
        (errors, warnings) => format!(
            "{}, {}",
            paint(BAD, plural(errors, "error")),
            paint(WARN, plural(warnings, "warning"))
        ),
    };
    let counts: Vec<_> = counts.iter().map(|(number, what)| plural(*number, what)).collect();
    format!("{} checked in {} ms: {found}", counts.join(", "), took.as_millis().max(1))
}

/// The error of a name that no agent of these cards has.
pub(super) fn no_agent(name: &str, loaded: &Loaded) -> anyhow::Error {
    let names: Vec<_> = loaded.cards.iter().map(|card| &*card.name).collect();
    Stop::usage(format!("there is no agent `{name}`; there are: {}", names.join(", "))).into()
}

/// Where the user's own configuration is, whether it is there or not.
pub(super) fn user_config_path() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let config = absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(config.join("tenure").join("config.toml"))
}

/// Everything that a run of these cards would execute.
pub(super) fn items_of(loaded: &Loaded) -> Vec<Item> {
    tenure_cards::trust::inventory(loaded).items.iter().map(Item::from).collect()
}

/// Prints errors and warnings on standard error, if there are any.
pub(super) fn complain_about(report: &Report) {
    if !report.is_empty() {
        let color = color_of(AutoStream::choice(&std::io::stderr()));
        print_plain(&report.render_text_within(color, columns().unwrap_or(usize::MAX)));
    }
}

/// How many hooks a card declares.
pub(super) fn hook_count(card: &Card) -> usize {
    card.hooks.declared.len() + card.hooks.tool_hooks.iter().count()
}

/// The choice of a stream, as diagnostics take it.
pub(super) fn color_of(choice: ColorChoice) -> Color {
    match choice {
        ColorChoice::Never => Color::Never,
        _ => Color::Always,
    }
}
