//! `tenure run` of a workflow.

use super::super::project::complain_about;
use super::super::run::{given_message, piped_message, print_diagnostics};
use super::clock::Clock;
use super::drive::{Plan, Stage};
use super::ended::Ended;
use super::opened::{OpenedWorkflow, items_of};
use crate::args::Run;
use crate::exit::{Exit, Stop};
use crate::signal::Stopper;
use crate::terminal::{EventLines, Progress, Screen, asker, print_json, print_plain};
use crate::trust::{Leave, admit, confirm_unchanged};
use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use tenure_cards::diagnostic::Report;
use tenure_cards::embed::nearest;
use tenure_core::CancelToken;
use tenure_core::event::EventBus;
use tenure_flow::file::WorkflowFile;
use tenure_flow::variables::Source;
use tenure_flow::{StartupMode, Workflow, unset_variables};

/// How many instances have a line of their own.
const MOST_LINES: usize = 20;
/// The app and the user of a run that names none.
const LOCAL: &str = "local";

/// Runs the workflow at `path`.
pub(crate) fn run(args: &Run, path: &Path) -> Result<Exit> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let result = prepare_and_run(args, path);
    if args.json
        && let Err(error) = &result
    {
        print_json(not_run(&name, &format!("{error:#}"), Stop::exit_of(error)));
    }
    result
}

fn prepare_and_run(args: &Run, path: &Path) -> Result<Exit> {
    if args.watch {
        return Err(Stop::usage(
            "--watch runs cards again when they change; a workflow is run once: leave --watch out",
        )
        .into());
    }
    let opened = OpenedWorkflow::at(path);
    if opened.report().has_errors() {
        opened.complain();
        return Ok(refused(
            args,
            &opened.loaded.workflow,
            opened.report(),
            "the check found errors",
        ));
    }
    let (root, items) = (opened.root().to_owned(), opened.items());
    let plan = plan(args, &opened.loaded.workflow)?;
    is_set(&unset_variables(&opened.loaded))?;

    let progress = match args.quiet {
        true => Progress::Nothing,
        false => Progress::on_stderr(MOST_LINES),
    };
    let events = match (args.json, args.quiet) {
        (true, _) => EventLines::Json,
        (false, true) => EventLines::Nothing,
        (false, false) => EventLines::Messages,
    };
    let (screen, stopper) = (Screen::new(progress, events), Stopper::default());
    let asker = asker(screen.clone(), stopper.clone(), &args.yes);
    let unanswered = asker.unanswered();
    let (clock, bus) = (Clock::default(), EventBus::new());
    let file = opened.loaded.workflow.clone();
    let mut builder = Workflow::builder(opened.loaded).events(&bus).on_ask(clock.stopped_by(asker));
    if let Some(model) = &args.model {
        builder = builder.model_override(model);
    }
    let workflow = match builder.build() {
        Ok(workflow) => workflow,
        Err(report) => {
            complain_about(&report);
            return Ok(refused(args, &file, &report, "the workflow cannot be run"));
        }
    };

    let note = args.yes.check(&workflow.tools(), |tool| workflow.may_come(tool))?;
    if !args.quiet {
        complain_about(workflow.warnings());
        note.iter().for_each(|note| print_plain(&format!("note: {note}")));
    }
    let leave = if args.trust { Leave::ForThisCommand } else { Leave::AsRecorded };
    // Ctrl-C still ends the program here.
    admit(&root, path, &items, leave, &CancelToken::new())?;
    if leave == Leave::AsRecorded {
        confirm_unchanged(&items, &items_of(workflow.loaded()))?;
    }

    let stage = Stage { workflow, bus, screen, stopper, clock };
    let went = stage.run(&plan)?;
    let ended = Ended {
        workflow: &file.name,
        went,
        stopped: stage.stopper.cause(),
        unanswered: unanswered.load(Ordering::Relaxed),
        timeout: plan.timeout,
    };
    match (args.json, args.quiet) {
        (true, _) => print_json(ended.to_json()),
        (false, true) => ended.answer()?,
        (false, false) => ended.answer_unsaid()?,
    }
    stage.screen.conclude();
    // Last, where it is seen.
    ended.complain(args.quiet);
    Ok(ended.exit())
}

/// Refuses a run that lacks variables of the environment: no chat could start.
fn is_set(unset: &Report) -> Result<()> {
    let said = unset.iter().map(|it| match &it.help {
        Some(help) => format!("{}\n  {help}", it.message),
        None => it.message.to_string(),
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() { Ok(()) } else { Err(anyhow!(said.join("\n"))) }
}

/// What the command line says of the chat. Refuses what the workflow does not have.
fn plan(args: &Run, file: &WorkflowFile) -> Result<Plan> {
    let of = &args.of_workflow;
    if let Some(agent) = &args.agent
        && file.agent(agent).is_none()
    {
        let there: Vec<&str> = file.agents.iter().map(|agent| &*agent.name).collect();
        return Err(unknown("agent", agent, &there));
    }
    of.set.iter().try_for_each(|(name, value)| settable(name, value, file))?;
    let local = || LOCAL.to_owned();
    Ok(Plan {
        message: message(args, file.orchestrator.startup_mode)?,
        app: of.app.clone().unwrap_or_else(local),
        user: of.user.clone().unwrap_or_else(local),
        chat_id: of.chat_id.clone(),
        seed: of.seed.unwrap_or(file.orchestrator.seed),
        initial: args.agent.clone(),
        variables: of.set.clone(),
        timeout: args.timeout,
    })
}

/// What the user says first: `-m`, else, if the user is to begin, what comes in by a pipe.
fn message(args: &Run, startup: StartupMode) -> Result<Option<String>> {
    if let Some(message) = given_message(args)? {
        return Ok(Some(message));
    }
    // A job that nobody feeds must not wait for its standard input.
    if startup != StartupMode::UserDriven || std::io::stdin().is_terminal() {
        return Ok(None);
    }
    Ok(Some(piped_message()?).filter(|text| !text.trim().is_empty()))
}

/// Refuses a variable that is not declared or whose value is not the chat's to keep, and a value of
/// another type.
fn settable(name: &str, value: &Value, file: &WorkflowFile) -> Result<()> {
    let declared = &file.variables.definitions;
    let Some(found) = declared.iter().find(|it| it.name == name) else {
        let names: Vec<&str> = declared.iter().map(|it| &*it.name).collect();
        return Err(unknown("context variable", name, &names));
    };
    match &found.source {
        Source::State(_) | Source::DataEntity(_) => match found.kind.coerce(value.clone()) {
            Ok(_) => Ok(()),
            Err(why) => Err(Stop::usage(format!(
                "the context variable `{name}` cannot be set to that: {why}"
            ))
            .into()),
        },
        other => Err(Stop::usage(format!(
            "the context variable `{name}` cannot be set: its source is `{}`; only those with \
             `state` and `data_entity` can",
            other.as_str()
        ))
        .into()),
    }
}

fn unknown(what: &str, name: &str, there: &[&str]) -> anyhow::Error {
    let hint = match nearest(name, there.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if there.is_empty() => "it has none".to_owned(),
        None => format!("there are: {}", there.join(", ")),
    };
    Stop::usage(format!("the workflow has no {what} `{name}`; {hint}")).into()
}

fn refused(args: &Run, file: &WorkflowFile, report: &Report, why: &str) -> Exit {
    if args.json {
        print_diagnostics(report);
        print_json(not_run(&file.name, why, Exit::Check));
    }
    Exit::Check
}

fn not_run(workflow: &str, error: &str, exit: Exit) -> Value {
    json!({
        "type": "result",
        "workflow": workflow,
        "status": null,
        "outcome": null,
        "output": null,
        "error": anstream::adapter::strip_str(error).to_string(),
        "usage": null,
        "failures": [],
        "exit_code": exit.code(),
    })
}
