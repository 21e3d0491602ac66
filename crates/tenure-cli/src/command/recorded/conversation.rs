//! Conversations that go on: another message to an agent that remembers the earlier ones.

use super::super::asked::{Asked, ModelChoice, View};
use super::super::ground::{After, Ground};
use super::input::{CARD, Head};
use super::kept::{asks, how_to_answer};
use super::life::head_of;
use super::{Keeper, Place, Prepared, Recorded};
use crate::args::Run;
use crate::exit::Stop;
use crate::terminal::text::clean_line;
use anyhow::{Result, anyhow};
use std::path::Path;
use tenure_cards::project::OnMessage;
use tenure_core::engine::{RunInfo, RunQuery, RunStatus};
use tenure_store::{AskQuery, Resume, Store};

/// A conversation that gets another message.
pub(crate) struct Conversation {
    /// Its id.
    pub(crate) thread: String,
    agent: String,
    /// Runs of it that are not over, and may be cancelled for the message.
    pending: Vec<(RunInfo, Prepared)>,
}

impl Conversation {
    /// The conversation that is meant, with this agent. One whose last run is not over refuses the
    /// message, unless the project wants that run cancelled.
    pub(crate) fn find(keeper: &Keeper, named: &str, agent: &str, view: &View) -> Result<Self> {
        let store = keeper.store();
        let thread = conversation_of(store, named, agent)?;
        let mut query = RunQuery::default();
        (query.thread, query.unfinished) = (Some(thread.clone()), true);
        let mut pending = Vec::new();
        for info in store.runs(&query)?.into_iter().rev() {
            if keeper.place().settings.on_message != OnMessage::Cancel {
                return Err(refused(store, keeper.place(), &thread, &info)?);
            }
            let aside = View { json: false, quiet: true, ..view.clone() };
            match Prepared::of(keeper.place(), &info, &aside)? {
                Ok(prepared) => pending.push((info, prepared)),
                Err(_) => return Err(refused(store, keeper.place(), &thread, &info)?),
            }
        }
        Ok(Self { thread, agent: agent.to_owned(), pending })
    }

    /// Ends what is not over, as cancelled: every call that hangs gets a result. Then says what the
    /// agent has of the conversation.
    pub(crate) fn settle(self, keeper: &Keeper, ground: &Ground) -> Result<(String, Head)> {
        for (info, prepared) in self.pending {
            let recorded = prepared.recorded().clone();
            let life = keeper.resume(ground, info.id, Resume::Cancel, recorded)?;
            let done = prepared.drive(ground, After::More, life)?;
            if let Some(kept) = done.kept().filter(|kept| kept.info.status != RunStatus::Ended) {
                let why = kept.why().unwrap_or_default();
                return Err(anyhow!(
                    "run {} of the conversation could not be cancelled: {why}",
                    info.id
                ));
            }
        }
        let history = keeper.store().threads().load(&self.thread, &self.agent)?;
        let Some(history) = history else {
            return Err(Stop::usage(format!(
                "`{}` has said nothing in conversation {}; leave --continue out to begin one",
                self.agent, self.thread
            ))
            .into());
        };
        Ok((self.thread, head_of(&history)))
    }
}

/// The conversation that is meant: by its id, by a run that is part of it, or the last one with this
/// agent.
pub(crate) fn conversation_of(store: &Store, named: &str, agent: &str) -> Result<String> {
    if !named.is_empty() {
        return thread(store, named);
    }
    let run = last(store, Some(agent))?;
    let run = run.and_then(|info| Some((info.updated, info.thread?)));
    // A talk has conversations and no runs.
    let talk = store.threads().latest(Some(agent))?.map(|info| (info.updated, info.thread));
    let last = run.into_iter().chain(talk).max_by_key(|(updated, _)| *updated);
    last.map(|(_, thread)| thread).ok_or_else(|| {
        Stop::usage(format!(
            "`{agent}` has no earlier conversation on record; leave --continue out to begin one"
        ))
        .into()
    })
}

/// Refuses a conversation of which a run is not over.
pub(crate) fn must_be_over(store: &Store, place: &Place, thread: &str) -> Result<()> {
    let mut query = RunQuery::default();
    (query.thread, query.unfinished) = (Some(thread.to_owned()), true);
    match store.runs(&query)?.pop() {
        Some(info) => Err(refused(store, place, thread, &info)?),
        None => Ok(()),
    }
}

/// What is to be run when only a conversation is named: what its last run was of, with the new
/// message.
pub(crate) fn asked_of_last(args: &Run, named: &str) -> Result<Asked> {
    let place = Place::of_record(&args.recording, Path::new("."))?;
    let store = place.open_existing()?;
    let info = match named {
        "" => last(&store, args.agent.as_deref())?,
        named => {
            let mut query = RunQuery::default();
            (query.thread, query.limit) = (Some(thread(&store, named)?), Some(1));
            store.runs(&query)?.pop()
        }
    };
    let info = info.ok_or_else(|| Stop::usage("no conversation is on record here"))?;
    if info.kind != CARD {
        return Err(only_cards().into());
    }
    let mut asked = Recorded::of(&place, &info)?.asked;
    asked.message.clone_from(&args.message);
    asked.may_be_piped = true;
    if args.model.is_some() {
        (asked.model, asked.model_by) = (args.model.clone(), ModelChoice::Person);
    }
    asked.agent = args.agent.clone().or(asked.agent);
    asked.timeout = args.timeout;
    Ok(asked)
}

/// Why a workflow's chat has no `--continue`.
pub(crate) fn only_cards() -> Stop {
    Stop::usage(
        "--continue is for conversations with an agent of a card; a workflow's chat is one run: go on \
         with one that did not finish with --resume",
    )
}

/// The last run of cards that was part of a conversation.
fn last(store: &Store, agent: Option<&str>) -> Result<Option<RunInfo>> {
    let mut query = RunQuery::default();
    query.kind = Some(CARD.to_owned());
    query.name = agent.map(str::to_owned);
    Ok(store.runs(&query)?.into_iter().find(|info| info.thread.is_some()))
}

/// The conversation of this id, or of a run whose id begins so.
fn thread(store: &Store, named: &str) -> Result<String> {
    let mut query = RunQuery::default();
    (query.thread, query.limit) = (Some(named.to_owned()), Some(1));
    if !store.runs(&query)?.is_empty() || !store.threads().of(named)?.is_empty() {
        return Ok(named.to_owned());
    }
    let run = store.find(named).map_err(|error| {
        Stop::usage(format!("there is no conversation `{}`: {error}", clean_line(named)))
    })?;
    let info = store.run(run)?;
    info.and_then(|info| info.thread)
        .ok_or_else(|| Stop::usage(format!("run {run} is part of no conversation")).into())
}

/// Why a message is refused, and both ways out.
fn refused(store: &Store, place: &Place, thread: &str, info: &RunInfo) -> Result<anyhow::Error> {
    let (run, option) = (info.id, place.option());
    let open = store.asks(&AskQuery::open().run(run))?;
    let state = match info.status {
        RunStatus::Waiting => "waits for a person",
        RunStatus::Parked => "is parked",
        _ => "did not finish",
    };
    let mut lines =
        vec![format!("run {run} of conversation {thread} {state}, so it takes no message")];
    for ask in &open {
        lines.push(format!("  {}", asks(ask)));
        lines.push(format!("  {}", how_to_answer(ask, &option)));
    }
    lines.push(format!("  go on:   tenure run --resume {run}{option}"));
    lines.push(format!(
        "  give up: tenure run --abandon {run}{option}   (always: [store] on_message = \"cancel\")"
    ));
    let message = lines.join("\n");
    Ok(match info.status {
        RunStatus::Waiting => Stop::waiting(message).into(),
        _ => anyhow!(message),
    })
}
