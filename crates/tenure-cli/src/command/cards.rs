//! A run of cards.

use super::admission::{Admitted, Request};
use super::asked::{Asked, View};
use super::ended::Ended;
use super::ground::{After, Ground};
use super::project::{Opened, complain_about, must_exist, no_agent};
use super::recorded::{Done, Life};
use super::reload::{Rerun, Telling, Watcher, rerun};
use super::session::{Session, Wishes};
use crate::exit::{Exit, Stop};
use crate::signal::Stopper;
use crate::terminal::{EventLines, Progress, Screen, asker, print_json};
use crate::trust::Leave;
use anyhow::{Context as _, Result, anyhow};
use serde_json::json;
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_cards::card::{Card, CardKind};
use tenure_cards::check::Loaded;
use tenure_cards::diagnostic::Report;
use tenure_cards::project::Project;
use tenure_flow::file::check_folders;

/// How many instances have a line of their own, unless the card says otherwise.
const MOST_LINES: usize = 20;

/// Cards that may be run: they are right, they are built, and they are trusted. Nothing of them has
/// been executed.
pub(super) struct Cards {
    session: Session,
    agent: String,
    message: String,
    asked: Asked,
    view: View,
    unanswered: Arc<AtomicBool>,
    watcher: Option<Watcher>,
    leave: Leave,
}

impl Cards {
    /// Checks, builds, and asks for trust. If they cannot be run, that is said, and the code is the
    /// error within.
    pub(super) fn ready(asked: Asked, view: &View, watch: bool) -> Result<Result<Self, Exit>> {
        must_exist(&asked.path)?;
        if let Some(option) = asked.of_workflow.given() {
            return Err(Stop::usage(format!(
                "{option} is for workflows, and `{}` is none",
                asked.path.display()
            ))
            .into());
        }
        let mut opened = Opened::at(&asked.path)?;
        if opened.report().has_errors() {
            opened.loaded.report.extend(check_folders(&asked.path));
            opened.complain();
            if view.json {
                print_diagnostics(opened.report());
                print_json(not_run(asked.agent.as_deref(), "the check found errors", Exit::Check));
            }
            return Ok(Err(Exit::Check));
        }
        let message = message(&asked)?;
        let (root, mut items) = (opened.root().to_owned(), opened.items());
        items.extend(asked.reached_by_record(&opened.loaded));
        let named = named(asked.agent.as_deref(), &asked.path, &opened.loaded)?;
        let progress = match view.quiet {
            true => Progress::Nothing,
            false => Progress::on_stderr(most_lines(&opened)),
        };
        let events = if view.json { EventLines::Json } else { EventLines::Nothing };
        let screen = Screen::new(progress, events);
        let stopper = Stopper::default();
        let asker = asker(screen.clone(), stopper.clone(), &view.yes);
        let unanswered = asker.unanswered();
        let wishes = Wishes { model: asked.model.clone(), timeout: asked.timeout };
        let session = match Session::new(opened.loaded, wishes, screen, stopper, asker) {
            Ok(session) => session,
            Err(report) => {
                complain_about(&report);
                if view.json {
                    print_diagnostics(&report);
                    print_json(not_run(named.as_deref(), "the cards cannot be run", Exit::Check));
                }
                return Ok(Err(Exit::Check));
            }
        };
        let Admitted { agent, watcher, leave } = session.admit(&Request {
            root: &root,
            path: &asked.path,
            items: &items,
            named: named.as_deref(),
            yes: &view.yes,
            trust: view.trust,
            watch,
            quiet: view.quiet,
        })?;
        let view = view.clone();
        Ok(Ok(Self { session, agent, message, asked, view, unanswered, watcher, leave }))
    }

    /// The project that they belong to.
    pub(super) fn project(&self) -> &Project {
        &self.session.team().loaded().project
    }

    /// Runs them, again and again if they are watched, and tells how that went.
    pub(super) fn run(mut self) -> Result<Exit> {
        if let Some(watcher) = self.watcher.take() {
            return self.run_again_and_again(watcher);
        }
        let ground = Ground::new(&self.session.screen)?;
        let view = self.view.clone();
        let done = self.drive(&ground, After::Nothing, None);
        let exit = done.and_then(|ended| Done::from(ended).tell(&view));
        ground.leave();
        exit
    }

    fn run_again_and_again(self, watcher: Watcher) -> Result<Exit> {
        let telling = match (self.view.json, self.view.quiet) {
            (true, _) => Telling::Json,
            (false, true) => Telling::Problems,
            (false, false) => Telling::Words,
        };
        let Self { session, agent, message, asked, unanswered, leave, .. } = self;
        let (path, named) = (asked.path, asked.agent);
        let again = Rerun { path, named, agent, message, leave, telling, unanswered, watcher };
        rerun(session, again)
    }

    /// Who is talked to.
    pub(super) fn agent(&self) -> &str {
        &self.agent
    }

    /// Whether they are run again whenever they change.
    pub(super) fn is_watched(&self) -> bool {
        self.watcher.is_some()
    }

    pub(super) fn screen(&self) -> &Screen {
        &self.session.screen
    }

    /// Everything that counts for running them again.
    pub(super) fn asked(&self) -> Asked {
        let (agent, message) = (Some(self.agent.clone()), Some(self.message.clone()));
        Asked { agent, message, ..self.asked.clone() }
    }

    /// Runs them once. `life` is the life of the run that this is, if it is on record.
    pub(super) fn drive(self, ground: &Ground, after: After, life: Option<Life>) -> Result<Ended> {
        let Self { mut session, agent, mut message, view, mut unanswered, .. } = self;
        if let Some(life) = &life {
            message = life.asked().message.clone().unwrap_or(message);
            let asker = asker(session.screen.clone(), session.stopper.clone(), &view.yes);
            let asker = asker.left_open();
            unanswered = asker.unanswered();
            session = session.on_record(life, asker).map_err(|report| {
                complain_about(&report);
                anyhow!("the files have changed since they were checked; run it again")
            })?;
        }
        let ended = session.run_on(ground, after, &agent, message, life.as_ref());
        Ok(if unanswered.load(Ordering::Relaxed) { ended.unanswered() } else { ended })
    }
}

/// What the check found, for programs: one line for each.
pub(super) fn print_diagnostics(report: &Report) {
    for diagnostic in report.iter() {
        let mut line = diagnostic.to_json();
        line["type"] = "diagnostic".into();
        print_json(line);
    }
}

/// The result of a run that never began.
pub(super) fn not_run(agent: Option<&str>, error: &str, exit: Exit) -> serde_json::Value {
    json!({
        "type": "result",
        "agent": agent,
        "outcome": null,
        "output": null,
        "error": anstream::adapter::strip_str(error).to_string(),
        "usage": null,
        "failures": [],
        "exit_code": exit.code(),
    })
}

/// What `-m` says.
pub(super) fn given_message(message: Option<&str>) -> Result<Option<String>> {
    if message.is_some_and(|message| message.trim().is_empty()) {
        return Err(
            Stop::usage("the message is empty: -m has nothing; say it with -m \"text\"").into()
        );
    }
    Ok(message.map(str::to_owned))
}

/// What comes in by a pipe, to its end.
pub(super) fn piped_message() -> Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input cannot be read as text")?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// What to say to the agent: `-m`, else what comes in by a pipe.
fn message(asked: &Asked) -> Result<String> {
    if let Some(message) = given_message(asked.message.as_deref())? {
        return Ok(message);
    }
    if !asked.may_be_piped || std::io::stdin().is_terminal() {
        return Err(Stop::usage(
            "there is no message; say it with -m \"text\", or pipe it in: echo text | tenure run …",
        )
        .into());
    }
    let text = piped_message()?;
    if text.trim().is_empty() {
        return Err(Stop::usage(
            "the message is empty: standard input had nothing; say it with -m \"text\"",
        )
        .into());
    }
    Ok(text)
}

/// The agent that was named: by itself, or by its card.
pub(super) fn named(agent: Option<&str>, path: &Path, loaded: &Loaded) -> Result<Option<String>> {
    if let Some(name) = agent {
        return match loaded.card(name) {
            Some(card) => Ok(Some(card.name.to_string())),
            None => Err(no_agent(name, loaded)),
        };
    }
    if !path.is_file() {
        return Ok(None);
    }
    let asked = path.canonicalize().ok();
    let is_asked = |card: &&Card| card.source.path().canonicalize().ok() == asked;
    Ok(loaded.cards.iter().find(is_asked).map(|card| card.name.to_string()))
}

/// The most lines that any of the cards wants to see at once.
pub(super) fn most_lines(opened: &Opened) -> usize {
    let wanted = opened.loaded.cards.iter().filter_map(|card| match &card.kind {
        CardKind::Agent(card) if !card.agents.is_empty() => {
            Some(card.children.max_display_instances)
        }
        _ => None,
    });
    wanted.max().unwrap_or(MOST_LINES)
}
