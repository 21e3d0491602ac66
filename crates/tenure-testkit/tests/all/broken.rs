//! Agents that break the contract, each in one way: the suite must say so.

use async_trait::async_trait;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::Error;
use tenure_core::agent::Agent;
use tenure_core::hook::{self, HookError};
use tenure_core::life::{AgentLifecycleProtocol, LifecycleConfig, LifecycleMetrics};
use tenure_core::phase::AgentState;
use tenure_core::state::StateOwnership;
use tenure_models::Passthrough;
use tenure_testkit::__private::block_on;
use tenure_testkit::compliance::{self, Calls};

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    StartsTwice,
    ForgetsToShutDown,
    RisesAgain,
    AcceptsEveryPause,
    OwnsEverything,
    WritesEverything,
    KeepsState,
    CountsNothing,
    SharesNothingAtOnce,
    FailsVaguely,
    RestsAfterAFailure,
}

/// An agent that is right but for one flaw.
struct Flawed {
    flaw: Flaw,
    agent: Agent,
    fresh: Agent,
    startups: AtomicUsize,
}

fn working() -> Agent {
    Agent::builder("inner").model(Passthrough::new()).build().unwrap()
}

fn failing() -> Agent {
    Agent::builder("inner")
        .model(Passthrough::new())
        .with_lifecycle(hook::on_start(|_cx| Box::pin(async { Err(HookError::new("no")) })))
        .build()
        .unwrap()
}

impl Flawed {
    fn new(flaw: Flaw) -> Self {
        let fails = matches!(flaw, Flaw::FailsVaguely | Flaw::RestsAfterAFailure);
        let agent = if fails { failing() } else { working() };
        Self { flaw, agent, fresh: working(), startups: AtomicUsize::new(0) }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }
}

#[async_trait]
impl AgentLifecycleProtocol for Flawed {
    async fn startup(&self, config: Option<LifecycleConfig>) -> Result<(), Error> {
        let before = self.startups.fetch_add(1, Ordering::Relaxed);
        if self.has(Flaw::RisesAgain) && self.agent.state() == AgentState::Terminated {
            return Ok(());
        }
        if self.has(Flaw::SharesNothingAtOnce) && before > 0 {
            return Err(Error::invalid("somebody else is starting it"));
        }
        if self.has(Flaw::FailsVaguely) {
            let _ = AgentLifecycleProtocol::startup(&self.agent, config).await;
            return Err(Error::invalid("something went wrong"));
        }
        AgentLifecycleProtocol::startup(&self.agent, config).await
    }

    async fn shutdown(&self, timeout: Option<Duration>) {
        if !self.has(Flaw::ForgetsToShutDown) {
            AgentLifecycleProtocol::shutdown(&self.agent, timeout).await;
        }
    }

    async fn pause(&self) -> Result<(), Error> {
        if self.has(Flaw::AcceptsEveryPause) { Ok(()) } else { self.agent.pause().await }
    }

    async fn resume(&self) -> Result<(), Error> {
        self.agent.resume().await
    }

    fn state(&self) -> AgentState {
        match self.agent.state() {
            AgentState::Terminated if self.has(Flaw::RestsAfterAFailure) => AgentState::Error,
            state => state,
        }
    }

    fn metrics(&self) -> LifecycleMetrics {
        let mut metrics = match self.has(Flaw::CountsNothing) {
            true => self.fresh.metrics(),
            false => self.agent.metrics(),
        };
        if self.has(Flaw::StartsTwice) {
            metrics.state_transitions += self.startups.load(Ordering::Relaxed) as u64;
        }
        metrics
    }

    fn owns_state(&self, key: &str) -> StateOwnership {
        match self.has(Flaw::OwnsEverything) {
            true => StateOwnership::Agent,
            false => self.agent.owns_state(key),
        }
    }

    fn set_state(&self, key: &str, value: Value) -> Result<(), Error> {
        match self.agent.set_state(key, value) {
            Err(_) if self.has(Flaw::WritesEverything) => Ok(()),
            result => result,
        }
    }

    fn state_len(&self) -> usize {
        let held = self.agent.state_values().len();
        held + usize::from(self.has(Flaw::KeepsState))
    }
}

/// What `test` panics with.
fn complaint(test: impl Future<Output = ()>) -> String {
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| block_on(test)));
    let Err(payload) = panicked else {
        return "no complaint".to_owned();
    };
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => {
            payload.downcast::<&str>().map_or_else(|_| String::new(), |it| it.to_string())
        }
    }
}

#[track_caller]
fn complains(test: impl Future<Output = ()>, expected: &str) {
    let complaint = complaint(test);
    assert!(complaint.contains(expected), "expected `{expected}`, but the suite said: {complaint}");
}

#[test]
fn a_second_startup_that_does_something_is_found() {
    complains(
        compliance::lifecycle(&Flawed::new(Flaw::StartsTwice)),
        "startup of a ready agent does nothing, but it made 1 transitions",
    );
}

#[test]
fn a_shutdown_that_does_nothing_is_found() {
    complains(
        compliance::lifecycle(&Flawed::new(Flaw::ForgetsToShutDown)),
        "after shutdown the agent is terminated, but this one is ready",
    );
    complains(
        compliance::shutdown_before_startup(&Flawed::new(Flaw::ForgetsToShutDown)),
        "after a shutdown without a startup the agent is terminated",
    );
}

#[test]
fn an_agent_that_rises_again_is_found() {
    complains(
        compliance::lifecycle(&Flawed::new(Flaw::RisesAgain)),
        "a terminated agent cannot be started again",
    );
}

#[test]
fn a_pause_that_is_accepted_where_it_is_illegal_is_found() {
    complains(
        compliance::pausing(&Flawed::new(Flaw::AcceptsEveryPause)),
        "Pause is refused while the agent is uninitialized, but it was accepted",
    );
}

#[test]
fn wrong_owners_and_wrong_writes_are_found() {
    complains(
        compliance::ownership(&Flawed::new(Flaw::OwnsEverything)),
        "`history` is owned by memory, but this agent says agent",
    );
    complains(
        compliance::ownership(&Flawed::new(Flaw::WritesEverything)),
        "`history` is owned by memory, but the agent was allowed to write it",
    );
}

#[test]
fn state_that_outlives_the_agent_is_found() {
    complains(
        compliance::cleanup(&Flawed::new(Flaw::KeepsState)),
        "after shutdown the agent holds no state, but this one holds 1 values",
    );
}

#[test]
fn an_agent_that_counts_nothing_is_found() {
    complains(
        compliance::metrics(&Flawed::new(Flaw::CountsNothing)),
        "startup takes two transitions, but 0 were counted",
    );
}

#[test]
fn startups_that_get_in_each_others_way_are_found() {
    complains(
        compliance::concurrency(|| Flawed::new(Flaw::SharesNothingAtOnce)),
        "startup of a fresh agent succeeds, but it failed: somebody else is starting it",
    );
    complains(
        compliance::concurrency(|| Flawed::new(Flaw::StartsTwice)),
        "five startups at once start an agent once, in 3 transitions, but it made 7",
    );
}

#[test]
fn a_failed_startup_that_is_not_rolled_back_is_found() {
    let shutdowns = Calls::new();
    complains(
        compliance::startup_failure(&Flawed::new(Flaw::FailsVaguely), &shutdowns),
        "a startup that fails is a startup error, but this is Invalid: something went wrong",
    );
    complains(
        compliance::startup_failure(&Flawed::new(Flaw::RestsAfterAFailure), &shutdowns),
        "after a failed startup the agent is terminated, but this one is error",
    );
    complains(
        compliance::startup_failure(&failing(), &shutdowns),
        "after a failed startup shutdown ran exactly once, but it ran 0 times",
    );
    complains(compliance::startup_failure(&working(), &shutdowns), "made to fail at startup");
}
