//! `tenure run` of a workflow.

use super::super::asked::{Asked, View};
use super::super::cards::{given_message, piped_message, print_diagnostics};
use super::super::ground::{After, Ground};
use super::super::project::complain_about;
use super::super::recorded::{
    Done, Keeper, Life, Place, Recorded, WORKFLOW, before_run, only_cards,
};
use super::clock::Clock;
use super::drive::{Plan, Stage};
use super::ended::Ended;
use super::opened::{OpenedWorkflow, items_of};
use crate::args::Run;
use crate::exit::{Exit, Stop};
use crate::signal::Stopper;
use crate::terminal::text::for_shell;
use crate::terminal::{EventLines, Progress, Screen, asker, print_json, print_plain};
use crate::trust::{Leave, admit, confirm_unchanged};
use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_cards::diagnostic::Report;
use tenure_cards::embed::nearest;
use tenure_cards::project::Project;
use tenure_core::CancelToken;
use tenure_core::engine::NewRun;
use tenure_core::event::EventBus;
use tenure_flow::file::WorkflowFile;
use tenure_flow::variables::Source;
use tenure_flow::{StartupMode, Workflow, unset_variables};

/// How many instances have a line of their own.
const MOST_LINES: usize = 20;
/// The app and the user of a run that names none.
const LOCAL: &str = "local";

/// Runs the workflow at `path`.
pub(crate) fn run(args: &Run, asked: Asked, view: &View, path: &Path) -> Result<Exit> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let result = prepare_and_run(args, asked, view, path);
    if view.json
        && let Err(error) = &result
    {
        print_json(not_run(&name, &format!("{error:#}"), Stop::exit_of(error)));
    }
    result
}

fn prepare_and_run(args: &Run, asked: Asked, view: &View, path: &Path) -> Result<Exit> {
    if args.watch {
        return Err(Stop::usage(
            "--watch runs cards again when they change; a workflow is run once: leave --watch out",
        )
        .into());
    }
    if args.earlier.goes_on.is_some() {
        return Err(only_cards().into());
    }
    let chat = match Chat::ready(asked, view, path)? {
        Ok(chat) => chat,
        Err(exit) => return Ok(exit),
    };
    match Place::wanted(&args.recording, chat.project()) {
        Some(place) => chat.run_on_record(place),
        None => chat.run(),
    }
}

/// A workflow that may be run: it is right, it is built, and it is trusted. Nothing of it has been
/// executed.
pub(crate) struct Chat {
    stage: Stage,
    plan: Plan,
    /// By the workflow's own path.
    asked: Asked,
    view: View,
    unanswered: Arc<AtomicBool>,
}

impl Chat {
    /// Checks, builds, and asks for trust. If it cannot be run, that is said, and the code is the
    /// error within.
    pub(crate) fn ready(asked: Asked, view: &View, path: &Path) -> Result<Result<Self, Exit>> {
        let opened = OpenedWorkflow::at(path);
        if opened.report().has_errors() {
            opened.complain();
            let (file, report) = (&opened.loaded.workflow, opened.report());
            return Ok(Err(refused(view, file, report, "the check found errors")));
        }
        let (root, mut items) = (opened.root().to_owned(), opened.items());
        items.extend(asked.reached_by_record(&opened.loaded.cards));
        let plan = plan(&asked, &opened.loaded.workflow)?;
        is_set(&unset_variables(&opened.loaded))?;

        let progress = match view.quiet {
            true => Progress::Nothing,
            false => Progress::on_stderr(MOST_LINES),
        };
        let events = match (view.json, view.quiet) {
            (true, _) => EventLines::Json,
            (false, true) => EventLines::Nothing,
            (false, false) => EventLines::Messages,
        };
        let (screen, stopper) = (Screen::new(progress, events), Stopper::default());
        // A person's turn pauses the chat where nobody is here: it can be gone on with later.
        let asker = asker(screen.clone(), stopper.clone(), &view.yes).put_off();
        let unanswered = asker.unanswered();
        let (clock, bus) = (Clock::default(), EventBus::new());
        let file = opened.loaded.workflow.clone();
        let asker = clock.stopped_by(asker);
        let mut builder = Workflow::builder(opened.loaded).events(&bus).on_ask(asker);
        if let Some(model) = &asked.model {
            builder = builder.model_override(model);
        }
        let workflow = match builder.build() {
            Ok(workflow) => workflow,
            Err(report) => {
                complain_about(&report);
                return Ok(Err(refused(view, &file, &report, "the workflow cannot be run")));
            }
        };

        let note = view.yes.check(&workflow.tools(), |tool| workflow.may_come(tool))?;
        if !view.quiet {
            complain_about(workflow.warnings());
            note.iter().for_each(|note| print_plain(&format!("note: {note}")));
        }
        let leave = if view.trust { Leave::ForThisCommand } else { Leave::AsRecorded };
        // Ctrl-C still ends the program here.
        admit(&root, path, &items, leave, &CancelToken::new())?;
        if leave == Leave::AsRecorded {
            confirm_unchanged(&items, &items_of(workflow.loaded()))?;
        }
        let stage = Stage { workflow, bus, screen, stopper, clock };
        let asked = Asked { path: path.to_owned(), ..asked };
        Ok(Ok(Self { stage, plan, asked, view: view.clone(), unanswered }))
    }

    /// The project that it belongs to.
    fn project(&self) -> &Project {
        &self.stage.workflow.loaded().cards.project
    }

    /// Everything that counts for running it again.
    fn asked(&self) -> Asked {
        let Plan { message, seed, chat_id, .. } = &self.plan;
        let mut asked = self.asked.clone();
        asked.message.clone_from(message);
        asked.of_workflow.seed = Some(*seed);
        asked.of_workflow.chat_id.clone_from(chat_id);
        asked
    }

    /// Runs it, and tells how that went.
    fn run(self) -> Result<Exit> {
        let ground = Ground::new(&self.stage.screen)?;
        let view = self.view.clone();
        let done = self.drive(&ground, After::Nothing, None);
        let exit = done.and_then(|ended| Done::from(ended).tell(&view));
        ground.leave();
        exit
    }

    /// The same, and records the run.
    fn run_on_record(self, place: Place) -> Result<Exit> {
        let what = format!("tenure run {}", for_shell(&self.asked.path));
        let (view, keeper) = (self.view.clone(), Keeper::open(place, &what)?);
        let earlier = before_run(&keeper, &view)?;
        let ground = Ground::new(&self.stage.screen)?;
        let exit = (|| {
            earlier.settle(&keeper, &ground, &view)?;
            if let Some(stopped) = ground.stopped() {
                return Ok(stopped);
            }
            let recorded = Recorded::now(self.asked());
            let input = recorded.to_value(&keeper.place().root)?;
            let run = NewRun::new(WORKFLOW, input);
            let thread = self.plan.chat_id.clone().unwrap_or_else(|| run.id.to_string());
            let name = &*self.stage.workflow.loaded().workflow.name;
            let run = run.name(name).thread(thread).user(&*self.plan.user);
            let life = keeper.begin(&ground, run, recorded)?;
            Done::from(self.drive(&ground, After::Nothing, Some(life))?).tell(&view)
        })();
        ground.leave();
        exit
    }

    /// Runs it once. `life` is the life of the run that this is, if it is on record.
    pub(crate) fn drive(self, ground: &Ground, after: After, life: Option<Life>) -> Result<Ended> {
        let Self { mut stage, mut plan, asked, view, mut unanswered } = self;
        if let Some(life) = &life {
            plan.message.clone_from(&life.asked().message);
            plan.variables.clone_from(&life.asked().of_workflow.set);
            let asker = asker(stage.screen.clone(), stage.stopper.clone(), &view.yes).left_open();
            unanswered = asker.unanswered();
            stage = stage.on_record(life, asker, asked.model.as_deref()).map_err(|report| {
                complain_about(&report);
                anyhow!("the files have changed since they were checked; run it again")
            })?;
        }
        let (went, kept) = stage.run(ground, after, &plan, life.as_ref());
        Ok(Ended {
            workflow: stage.workflow.loaded().workflow.name.to_string(),
            went,
            kept,
            screen: stage.screen.clone(),
            stopped: stage.stopper.cause().or(ground.stopped()),
            unanswered: unanswered.load(Ordering::Relaxed),
            timeout: plan.timeout,
        })
    }
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
fn plan(asked: &Asked, file: &WorkflowFile) -> Result<Plan> {
    let of = &asked.of_workflow;
    if let Some(agent) = &asked.agent
        && file.agent(agent).is_none()
    {
        let there: Vec<&str> = file.agents.iter().map(|agent| &*agent.name).collect();
        return Err(unknown("agent", agent, &there));
    }
    of.set.iter().try_for_each(|(name, value)| settable(name, value, file))?;
    let local = || LOCAL.to_owned();
    Ok(Plan {
        message: message(asked, file.orchestrator.startup_mode)?,
        app: of.app.clone().unwrap_or_else(local),
        user: of.user.clone().unwrap_or_else(local),
        chat_id: of.chat_id.clone(),
        seed: of.seed.unwrap_or(file.orchestrator.seed),
        initial: asked.agent.clone(),
        variables: of.set.clone(),
        timeout: asked.timeout,
    })
}

/// What the user says first: `-m`, else, if the user is to begin, what comes in by a pipe.
fn message(asked: &Asked, startup: StartupMode) -> Result<Option<String>> {
    if let Some(message) = given_message(asked.message.as_deref())? {
        return Ok(Some(message));
    }
    // A job that nobody feeds must not wait for its standard input.
    if !asked.may_be_piped || startup != StartupMode::UserDriven || std::io::stdin().is_terminal() {
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

fn refused(view: &View, file: &WorkflowFile, report: &Report, why: &str) -> Exit {
    if view.json {
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
