//! `tenure run`.

use super::admission::{Admitted, Request};
use super::project::{Opened, complain_about, must_exist, no_agent};
use super::reload::{Rerun, Telling, rerun};
use super::session::{Session, Wishes};
use super::workflow::{self, Meant, meant};
use crate::args::Run;
use crate::exit::{Exit, Stop};
use crate::signal::Stopper;
use crate::terminal::{EventLines, Progress, Screen, asker, print_json};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::atomic::Ordering;
use tenure_cards::card::{Card, CardKind};
use tenure_cards::check::Loaded;
use tenure_cards::diagnostic::Report;
use tenure_flow::file::check_folders;

/// How many instances have a line of their own, unless the card says otherwise.
const MOST_LINES: usize = 20;

pub(super) fn run(args: &Run) -> Result<Exit> {
    // What is wrong with the cards is said when they are run.
    let has_cards = || Opened::at(&args.path).is_ok_and(|opened| opened.has_cards());
    let named = args.of_workflow.workflow.as_deref();
    let result = match meant(&args.path, named, has_cards) {
        Ok(Meant::Workflow(path)) => return workflow::run(args, &path),
        Ok(Meant::Cards) => prepare_and_run(args),
        Err(error) => Err(error),
    };
    if args.json
        && let Err(error) = &result
    {
        print_json(not_run(args.agent.as_deref(), &format!("{error:#}"), Stop::exit_of(error)));
    }
    result
}

fn prepare_and_run(args: &Run) -> Result<Exit> {
    must_exist(&args.path)?;
    if let Some(option) = args.of_workflow.given() {
        return Err(Stop::usage(format!(
            "{option} is for workflows, and `{}` is none",
            args.path.display()
        ))
        .into());
    }
    let mut opened = Opened::at(&args.path)?;
    if opened.report().has_errors() {
        opened.loaded.report.extend(check_folders(&args.path));
        opened.complain();
        if args.json {
            print_diagnostics(opened.report());
            print_json(not_run(args.agent.as_deref(), "the check found errors", Exit::Check));
        }
        return Ok(Exit::Check);
    }
    let message = message(args)?;
    let (root, items) = (opened.root().to_owned(), opened.items());
    let named = named(args.agent.as_deref(), &args.path, &opened.loaded)?;
    let progress = match args.quiet {
        true => Progress::Nothing,
        false => Progress::on_stderr(most_lines(&opened)),
    };
    let events = if args.json { EventLines::Json } else { EventLines::Nothing };
    let screen = Screen::new(progress, events);
    let stopper = Stopper::default();
    let asker = asker(screen.clone(), stopper.clone(), &args.yes);
    let unanswered = asker.unanswered();
    let wishes = Wishes { model: args.model.clone(), timeout: args.timeout };
    let session = match Session::new(opened.loaded, wishes, screen, stopper, asker) {
        Ok(session) => session,
        Err(report) => {
            complain_about(&report);
            if args.json {
                print_diagnostics(&report);
                print_json(not_run(named.as_deref(), "the cards cannot be run", Exit::Check));
            }
            return Ok(Exit::Check);
        }
    };
    let Admitted { agent, watcher, leave } = session.admit(&Request {
        root: &root,
        path: &args.path,
        items: &items,
        named: named.as_deref(),
        yes: &args.yes,
        trust: args.trust,
        watch: args.watch,
        quiet: args.quiet,
    })?;
    if let Some(watcher) = watcher {
        let telling = match (args.json, args.quiet) {
            (true, _) => Telling::Json,
            (false, true) => Telling::Problems,
            (false, false) => Telling::Words,
        };
        let (path, named) = (args.path.clone(), args.agent.clone());
        let again = Rerun { path, named, agent, message, leave, telling, unanswered, watcher };
        return rerun(session, again);
    }

    let mut ended = session.run(&agent, message)?;
    if unanswered.load(Ordering::Relaxed) {
        ended = ended.unanswered();
    }
    if args.json {
        print_json(ended.to_json());
    } else {
        ended.answer()?;
    }
    ended.conclude();
    // Last, where it is seen.
    ended.complain();
    Ok(ended.exit())
}

/// What the check found, for programs: one line for each.
pub(super) fn print_diagnostics(report: &Report) {
    for diagnostic in report.iter() {
        let mut line = diagnostic.to_json();
        line["type"] = "diagnostic".into();
        print_json(line);
    }
}

fn not_run(agent: Option<&str>, error: &str, exit: Exit) -> serde_json::Value {
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
pub(super) fn given_message(args: &Run) -> Result<Option<String>> {
    if args.message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(
            Stop::usage("the message is empty: -m has nothing; say it with -m \"text\"").into()
        );
    }
    Ok(args.message.clone())
}

/// What comes in by a pipe, to its end.
pub(super) fn piped_message() -> Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input cannot be read as text")?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// What to say to the agent: `-m`, else what comes in by a pipe.
fn message(args: &Run) -> Result<String> {
    if let Some(message) = given_message(args)? {
        return Ok(message);
    }
    if std::io::stdin().is_terminal() {
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
