//! `tenure run`: of cards, of a workflow, or of what is on record.

use super::asked::{Asked, View};
use super::cards::{Cards, not_run};
use super::ground::{After, Ground};
use super::project::Opened;
use super::recorded::{
    CARD, Conversation, Done, Keeper, Place, Recorded, asked_of_last, before_run, resume,
};
use super::workflow::{self, Meant, meant};
use crate::args::Run;
use crate::exit::{Exit, Stop};
use crate::terminal::print_json;
use crate::terminal::text::for_shell;
use anyhow::Result;
use tenure_core::engine::NewRun;

pub(super) fn run(args: &Run) -> Result<Exit> {
    let view = View::of(args);
    if args.earlier.resume.is_some() || args.earlier.abandon.is_some() {
        return told(resume(args), args.agent.as_deref(), &view);
    }
    let asked = match (&args.path, &args.earlier.goes_on) {
        (Some(path), _) => Asked::of(args, path),
        (None, named) => match asked_of_last(args, named.as_deref().unwrap_or_default()) {
            Ok(asked) => asked,
            Err(error) => return told(Err(error), args.agent.as_deref(), &view),
        },
    };
    // What is wrong with the cards is said when they are run.
    let has_cards = || Opened::at(&asked.path).is_ok_and(|opened| opened.has_cards());
    let named = asked.of_workflow.workflow.as_deref();
    let agent = asked.agent.clone();
    let result = match meant(&asked.path, named, has_cards) {
        Ok(Meant::Workflow(path)) => return workflow::run(args, asked, &view, &path),
        Ok(Meant::Cards) => run_cards(args, asked, &view),
        Err(error) => Err(error),
    };
    told(result, agent.as_deref(), &view)
}

fn run_cards(args: &Run, asked: Asked, view: &View) -> Result<Exit> {
    let cards = match Cards::ready(asked, view, args.watch)? {
        Ok(cards) => cards,
        Err(exit) => return Ok(exit),
    };
    if cards.is_watched() {
        if args.recording.store.is_some() {
            return Err(Stop::usage(
                "what is run again and again is not recorded: leave --watch or --store out",
            )
            .into());
        }
        return cards.run();
    }
    match Place::wanted(&args.recording, cards.project()) {
        Some(place) => run_on_record(args, cards, place, view),
        None if args.earlier.goes_on.is_some() => Err(Stop::usage(
            "there are no records here, so no conversation can be continued: runs are recorded in \
             projects with a tenure.toml (unless its [store] says otherwise), and with --store \
             anywhere",
        )
        .into()),
        None => cards.run(),
    }
}

/// Runs cards, and records the run.
fn run_on_record(args: &Run, cards: Cards, place: Place, view: &View) -> Result<Exit> {
    let keeper = Keeper::open(place, &format!("tenure run {}", for_shell(&cards.asked().path)))?;
    let earlier = before_run(&keeper, view)?;
    let ground = Ground::new(cards.screen())?;
    let exit = (|| {
        earlier.settle(&keeper, &ground, view)?;
        let mut recorded = Recorded::now(cards.asked());
        let mut thread = None;
        if let Some(named) = &args.earlier.goes_on {
            let conversation = Conversation::find(&keeper, named, cards.agent(), view)?;
            let (id, head) = conversation.settle(&keeper, &ground)?;
            (thread, recorded.history) = (Some(id), Some(head));
        }
        if let Some(stopped) = ground.stopped() {
            return Ok(stopped);
        }
        let input = recorded.to_value(&keeper.place().root)?;
        let run = NewRun::new(CARD, input).name(cards.agent());
        // A conversation is named after the run that it began with.
        let thread = thread.unwrap_or_else(|| run.id.to_string());
        let life = keeper.begin(&ground, run.thread(thread), recorded)?;
        Done::from(cards.drive(&ground, After::Nothing, Some(life))?).tell(view)
    })();
    ground.leave();
    exit
}

/// Tells programs too why a run did not begin.
fn told(result: Result<Exit>, agent: Option<&str>, view: &View) -> Result<Exit> {
    if view.json
        && let Err(error) = &result
    {
        print_json(not_run(agent, &format!("{error:#}"), Stop::exit_of(error)));
    }
    result
}
