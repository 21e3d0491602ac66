//! One run, from the start of the first agent to the end of the last.

use super::ended::{Bound, Drove, Ended};
use super::ground::{After, Ground, Shown};
use super::recorded::{Kept, Life};
use crate::exit::Exit;
use crate::kill::kill_descendants;
use crate::signal::{self, Press, Stopper};
use crate::terminal::style::{WARN, paint};
use crate::terminal::{Screen, fresh_line, hurry, restore_terminal};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::time::Duration;
use tenure_cards::check::Loaded;
use tenure_cards::diagnostic::Report;
use tenure_cards::team::{Run, Team, TeamError, TeamErrorKind};
use tenure_core::ask::Asker;
use tenure_core::event::EventBus;
use tenure_core::hook::Limit;
use tenure_core::message::History;
use tenure_core::{Error, Outcome};
use tokio::time::Instant;

/// What a run says beside its cards.
#[derive(Default)]
pub(super) struct Wishes {
    /// The model for every agent.
    pub(super) model: Option<String>,
    /// How long all of it may take, from the start of the first agent to the end of the turn.
    pub(super) timeout: Option<Limit>,
}

/// A run that can begin. Nothing has been executed yet.
pub(super) struct Session {
    pub(super) team: Team,
    pub(super) bus: EventBus,
    pub(super) screen: Screen,
    pub(super) stopper: Stopper,
    pub(super) timeout: Option<Limit>,
}

/// What is asked of the team.
pub(super) struct Task<'a> {
    pub(super) agent: &'a str,
    pub(super) message: String,
    pub(super) timeout: Option<Limit>,
}

impl Session {
    /// Builds the agents. Executes nothing; the error is what is wrong with the cards.
    pub(super) fn new(
        loaded: Loaded,
        wishes: Wishes,
        screen: Screen,
        stopper: Stopper,
        asker: impl Asker,
    ) -> Result<Self, Report> {
        let bus = EventBus::new();
        let mut builder = Team::builder(loaded).events(&bus).on_ask(asker);
        if let Some(model) = wishes.model {
            builder = builder.model_override(model);
        }
        Ok(Self { team: builder.build()?, bus, screen, stopper, timeout: wishes.timeout })
    }

    /// The same agents again, in a run that is on record.
    pub(super) fn on_record(self, life: &Life, asker: impl Asker) -> Result<Self, Report> {
        let Self { team, bus, screen, stopper, timeout } = self;
        let model = team.model_override().map(str::to_owned);
        let mut builder = Team::builder(team.loaded().clone()).events(&bus).on_ask(asker);
        builder = builder.recorded(life.recording()).memory(life.memory()).now(life.date());
        builder = builder.cache(life.cache());
        if let Some(model) = model {
            builder = builder.model_override(model);
        }
        screen.shows(life.run());
        Ok(Self { team: builder.build()?, bus, screen, stopper, timeout })
    }

    pub(super) fn team(&self) -> &Team {
        &self.team
    }

    /// Starts the agents, runs the turn, stops the agents: the last also if anything before fails,
    /// times out, or is stopped by a signal.
    pub(super) fn run(self, agent: &str, message: String) -> Result<Ended> {
        let ground = Ground::new(&self.screen)?;
        let ended = self.run_on(&ground, After::Nothing, agent, message, None);
        ground.leave();
        Ok(ended)
    }

    /// The same where other runs may follow, and where it may be on record.
    pub(super) fn run_on(
        self,
        ground: &Ground,
        after: After,
        agent: &str,
        message: String,
        life: Option<&Life>,
    ) -> Ended {
        let Self { team, bus, screen, stopper, timeout } = self;
        let watch = screen.watch(&bus, ground.handle());
        ground.show(&screen);
        let task = Task { agent, message, timeout };
        let cancel = life.map(Life::cancel);
        let (drove, kept) = ground.drive(&stopper, cancel, async {
            match life {
                Some(life) => {
                    let (drove, kept) = live(&team, &stopper, task, life).await;
                    (drove, Some(kept))
                }
                None => (drive(&team, &stopper, task, &mut Talked::default()).await, None),
            }
        });
        if drove.killed {
            // Nobody is told anything any more, and those that would be are gone.
            std::mem::forget(team);
        }
        ground.run_ended(after);
        watch.end();
        let stopped = stopper.cause().or(ground.stopped());
        Ended::new(agent, drove, stopped, screen).on_record(kept)
    }
}

/// Lets signals stop what runs: the first one in an orderly way, the second one at once.
pub(super) fn listen(shown: &Shown, stopper: &Stopper) -> Result<()> {
    let told = shown.clone();
    let first = move |exit| {
        hurry();
        told.now().announce(stopping(exit));
    };
    let told = shown.clone();
    let pressed = move |press| {
        if let Some(text) = pressed(press) {
            told.now().announce(paint(WARN, text));
        }
    };
    let drawn = shown.clone();
    let kill = move || {
        // First: of those that are killed there is nothing to tell any more.
        drawn.now().wipe();
        kill_descendants();
        restore_terminal();
        fresh_line();
    };
    signal::watch(stopper.clone(), pressed, first, kill).context("signals cannot be listened to")
}

/// What the agent has of a conversation, before the turn and after it.
#[derive(Default)]
struct Talked {
    before: Option<History>,
    after: Option<History>,
}

/// Drives one life of a recorded run, and puts on record what came of it.
async fn live(team: &Team, stopper: &Stopper, task: Task<'_>, life: &Life) -> (Drove, Kept) {
    let agent = task.agent.to_owned();
    let before = match life.history(&agent) {
        Ok(before) => before,
        Err(error) => {
            // Nothing has begun, and nothing ends: it is for somebody to look at.
            let kept = life.finish(Err(Error::store(format!("{error:#}")))).await;
            return (Drove::default(), kept);
        }
    };
    let mut talked = Talked { before, after: None };
    let drove = tokio::select! {
        biased;
        () = life.killed() => None,
        drove = drive(team, stopper, task, &mut talked) => Some(drove),
    };
    let Some(drove) = drove else {
        kill_descendants();
        let kept = life.finish(Err(Error::abandoned())).await;
        return (Drove { killed: true, ..Drove::default() }, kept);
    };
    let mut result = came_of(&drove, life);
    if !result.as_ref().is_err_and(Error::parks)
        && let Some(history) = &talked.after
        && let Err(error) = life.save(&agent, history).await
    {
        result = Err(error);
    }
    let kept = life.finish(result).await;
    (drove, kept)
}

/// What came of a life, as it is put on record.
fn came_of(drove: &Drove, life: &Life) -> Result<Value, Error> {
    if let Some(trouble) = life.trouble() {
        return Err(trouble);
    }
    match &drove.result {
        None => Err(Error::cancelled()),
        Some(Ok(run)) => Ok(Value::from(&*run.output)),
        Some(Err(error)) => Err(of_team(error)),
    }
}

/// Why a team failed, as an error of its run.
pub(super) fn of_team(error: &TeamError) -> Error {
    match (error.kind(), error.error()) {
        (TeamErrorKind::Run, Some(error)) => error.clone(),
        (TeamErrorKind::Parked, Some(cause)) if cause.parks() => cause.clone(),
        (TeamErrorKind::Parked, _) => Error::store(error.to_string()),
        // A start that failed tells it all by itself.
        _ if error.outcome() == Outcome::Denied => Error::denied(error.to_string()),
        _ => Error::invalid(error.to_string()),
    }
}

async fn drive(team: &Team, stopper: &Stopper, task: Task<'_>, talked: &mut Talked) -> Drove {
    let deadline = task.timeout.map(|limit| (limit, Instant::now() + limit.duration()));
    let whole = task.timeout.map(Bound::Run);
    let time_is_up = async {
        match deadline {
            Some((_, deadline)) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
        stopper.stop(Exit::TimedOut);
    };
    let started = tokio::select! {
        biased;
        () = stopper.stopped() => None,
        () = time_is_up => None,
        started = team.start() => Some(started),
    };
    match started {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            return Drove { result: Some(Err(error)), ..Drove::default() };
        }
        // The start was dropped; it is rolled back in the background, and that is waited for.
        None => {
            team.settled().await;
            return Drove { bound: whole, ..Drove::default() };
        }
    }
    let agents: Vec<_> = team.agents().iter().filter_map(|name| team.agent(name)).collect();
    let bound = closest(deadline, team.loaded().project.config.turn_limit);
    let left = bound.as_ref().map(|(_, left)| *left);
    let bound = bound.map(|(bound, _)| bound);
    let result = match stopper.cause() {
        Some(_) => None,
        None if left.is_some_and(|left| left.is_zero()) => {
            stopper.stop(Exit::TimedOut);
            None
        }
        None => {
            let agent = task.agent.to_owned();
            let set = talked.before.take().map(|before| team.set_history(&agent, before));
            let result = match set {
                Some(Err(error)) => Err(error),
                _ => converse(team, stopper, task, left).await,
            };
            talked.after = team.history(&agent);
            Some(result)
        }
    };
    team.shutdown().await;
    let failures = agents.iter().flat_map(|agent| agent.failures()).collect();
    Drove { result, failures, bound, killed: false }
}

/// What bounds the turn, and how much time that leaves: the shorter one of what is left for the run
/// and what the project allows a turn.
pub(super) fn closest(
    run: Option<(Limit, Instant)>,
    turn: Option<Limit>,
) -> Option<(Bound, Duration)> {
    let run = run.map(|(limit, deadline)| {
        (Bound::Run(limit), deadline.saturating_duration_since(Instant::now()))
    });
    let turn = turn.map(|limit| (Bound::Turn(limit), limit.duration()));
    run.into_iter().chain(turn).min_by_key(|(_, left)| *left)
}

/// Runs the turn, and cancels it when the run is stopped, however early that was.
pub(super) async fn converse(
    team: &Team,
    stopper: &Stopper,
    task: Task<'_>,
    limit: Option<Duration>,
) -> Result<Run, TeamError> {
    let Task { agent, message, .. } = task;
    let run = async {
        match limit {
            Some(limit) => team.run_within(Some(agent), message, limit).await,
            None => team.run(Some(agent), message).await,
        }
    };
    let cancel = async {
        stopper.stopped().await;
        team.cancel();
        std::future::pending().await
    };
    tokio::select! {
        // In this order: what is cancelled must have begun.
        biased;
        result = run => result,
        never = cancel => never,
    }
}

/// What is said of a Ctrl-C in a chat.
fn pressed(press: Press) -> Option<&'static str> {
    match press {
        Press::StillEnding => Some("the turn is still ending; press Ctrl-C again to leave"),
        // The screen shows what becomes of the turn.
        Press::Cancelled | Press::Ignored | Press::Stops => None,
    }
}

fn stopping(exit: Exit) -> String {
    let text = match exit {
        Exit::Interrupted => "stopping; press Ctrl-C again to kill",
        _ => "stopping; another signal kills",
    };
    paint(WARN, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_cards::check::{LoadOptions, load};

    /// A team of one whose model takes a minute.
    fn slow_team(dir: &std::path::Path) -> Team {
        let card = "---\nname: a\nmodel: script:a.json\n---\nx\n";
        std::fs::write(dir.join("a.md"), card).expect("a card");
        std::fs::write(dir.join("a.json"), "[{\"text\": \"late\", \"wait\": \"60s\"}]")
            .expect("a script");
        let loaded = load(&dir.join("a.md"), &LoadOptions::default());
        Team::builder(loaded).build().expect("a team")
    }

    #[test]
    fn a_stop_before_the_run_has_begun_is_not_lost() {
        let dir = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let team = slow_team(dir.path());
            team.start().await.expect("it starts");
            // Often enough for whatever is left to chance.
            for _ in 0..20 {
                let stopper = Stopper::default();
                stopper.stop(Exit::Terminated);
                let task = Task { agent: "a", message: "hi".to_owned(), timeout: None };
                let result = converse(&team, &stopper, task, None);
                let result = tokio::time::timeout(Duration::from_secs(10), result).await;
                let error = result.expect("it ends").expect_err("it is cancelled");
                assert_eq!(error.outcome(), tenure_core::Outcome::Cancelled, "{error}");
            }
            team.shutdown().await;
        });
    }

    #[test]
    fn a_run_that_is_stopped_before_its_start_executes_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let team = slow_team(dir.path());
            let stopper = Stopper::default();
            stopper.stop(Exit::Terminated);
            let task = Task { agent: "a", message: "hi".to_owned(), timeout: None };
            let drove = drive(&team, &stopper, task, &mut Talked::default()).await;
            assert!(drove.result.is_none());
            assert!(team.agent("a").is_none(), "it was never started");
        });
    }

    #[test]
    fn the_shorter_limit_counts() {
        let limit = |text: &str| text.parse::<Limit>().expect("a limit");
        let run = |text| Some((limit(text), Instant::now() + limit(text).duration()));
        let which = |run, turn| closest(run, turn).map(|(bound, _)| bound);
        assert_eq!(which(run("1m"), Some(limit("5s"))), Some(Bound::Turn(limit("5s"))));
        assert_eq!(which(run("1s"), Some(limit("5s"))), Some(Bound::Run(limit("1s"))));
        assert_eq!(which(None, Some(limit("5s"))), Some(Bound::Turn(limit("5s"))));
        assert_eq!(which(None, None), None);
    }
}
