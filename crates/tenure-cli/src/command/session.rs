//! One run, from the start of the first agent to the end of the last.

use super::ended::Ended;
use crate::exit::Exit;
use crate::kill::kill_descendants;
use crate::signal::{self, Stopper};
use crate::terminal::Screen;
use crate::terminal::style::{WARN, paint};
use anyhow::{Context as _, Result};
use std::collections::HashSet;
use std::time::Duration;
use tenure_cards::check::Loaded;
use tenure_cards::diagnostic::Report;
use tenure_cards::team::{Run, Team, TeamError};
use tenure_core::InstanceId;
use tenure_core::ask::Asker;
use tenure_core::event::{EventBus, EventKind, Received, Subscriber};
use tenure_core::hook::{HookFailure, Limit};
use tenure_core::phase::Phase;
use tokio::time::{Instant, timeout_at};

/// Longer than a shutdown takes: it is bounded by 30 s itself.
const LONGEST_END: Duration = Duration::from_secs(35);

/// What a run says beside its cards.
#[derive(Default)]
pub(super) struct Wishes {
    /// The model for every agent.
    pub(super) model: Option<String>,
    /// How long the turn may take.
    pub(super) timeout: Option<Limit>,
}

/// A run that can begin. Nothing has been executed yet.
pub(super) struct Session {
    team: Team,
    bus: EventBus,
    screen: Screen,
    stopper: Stopper,
}

impl Session {
    /// Builds the agents. Executes nothing; the error is what is wrong with the cards.
    pub(super) fn new(
        mut loaded: Loaded,
        wishes: Wishes,
        screen: Screen,
        stopper: Stopper,
        asker: impl Asker,
    ) -> Result<Self, Report> {
        if let Some(limit) = wishes.timeout {
            // The shorter one counts: the project's own is a promise too.
            let own = &mut loaded.project.config.turn_limit;
            *own = Some(own.map_or(limit, |own| own.min(limit)));
        }
        let bus = EventBus::new();
        let mut builder = Team::builder(loaded).events(&bus).on_ask(asker);
        if let Some(model) = wishes.model {
            builder = builder.model_override(model);
        }
        Ok(Self { team: builder.build()?, bus, screen, stopper })
    }

    pub(super) fn team(&self) -> &Team {
        &self.team
    }

    /// Starts the agents, runs the turn, stops the agents: the last also if anything before fails,
    /// times out, or is stopped by a signal.
    pub(super) fn run(self, agent: &str, message: String) -> Result<Ended> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the runtime cannot be started")?;
        let Self { team, bus, screen, stopper } = self;
        let watch = screen.watch(&bus, runtime.handle());
        let told = screen.clone();
        let first = move |exit| told.print(&stopping(exit));
        signal::watch(stopper.clone(), first, kill_descendants)
            .context("signals cannot be listened to")?;
        let (result, failures) = runtime.block_on(drive(&team, &bus, &stopper, agent, message));
        watch.end();
        // What is left belongs to nobody any more, and must not hold up the end of the program.
        runtime.shutdown_background();
        Ok(Ended::new(result, failures, stopper.cause(), screen))
    }
}

async fn drive(
    team: &Team,
    bus: &EventBus,
    stopper: &Stopper,
    agent: &str,
    message: String,
) -> (Option<Result<Run, TeamError>>, Vec<HookFailure>) {
    let mut lives = Lives::watch(bus);
    let started = tokio::select! {
        started = team.start() => Some(started),
        () = stopper.stopped() => None,
    };
    match started {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            lives.end().await;
            return (Some(Err(error)), Vec::new());
        }
        // The start was dropped; it is rolled back in the background, and that is waited for.
        None => {
            lives.end().await;
            return (None, Vec::new());
        }
    }
    let agents: Vec<_> = team.agents().iter().filter_map(|name| team.agent(name)).collect();
    let cancel = async {
        stopper.stopped().await;
        team.cancel();
        std::future::pending().await
    };
    let result = tokio::select! {
        result = team.run(Some(agent), message) => result,
        never = cancel => never,
    };
    team.shutdown().await;
    let failures = agents.iter().flat_map(|agent| agent.failures()).collect();
    (Some(result), failures)
}

/// Which instances live, from the events.
struct Lives {
    events: Subscriber,
    live: HashSet<InstanceId>,
}

impl Lives {
    fn watch(bus: &EventBus) -> Self {
        Self { events: bus.subscribe(1 << 16), live: HashSet::new() }
    }

    /// Waits until every instance that was started has ended.
    async fn end(&mut self) {
        while let Some(received) = self.events.try_recv() {
            self.note(&received);
        }
        let until = Instant::now() + LONGEST_END;
        while !self.live.is_empty() {
            match timeout_at(until, self.events.recv()).await {
                Ok(Some(received)) => self.note(&received),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn note(&mut self, received: &Received) {
        let Received::Event(event) = received else { return };
        if let EventKind::PhaseEntered { to, .. } = event.kind {
            if to == Phase::Terminated {
                self.live.remove(&event.instance);
            } else {
                self.live.insert(event.instance);
            }
        }
    }
}

fn stopping(exit: Exit) -> String {
    let text = match exit {
        Exit::Interrupted => "stopping; press Ctrl-C again to kill",
        _ => "stopping; another signal kills",
    };
    paint(WARN, text)
}
