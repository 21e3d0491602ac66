//! A startup that fails.

use super::in_state;
use super::life::stays_terminated;
use super::ownership::holds_nothing;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenure_core::ErrorKind;
use tenure_core::life::AgentLifecycleProtocol;
use tenure_core::phase::AgentState;

/// Counts calls. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<AtomicUsize>);

impl Calls {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one more.
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// How many there were.
    pub fn made(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// A startup that fails is an error of the kind [`ErrorKind::Startup`]; what it acquired was
/// released by exactly one shutdown, the agent is terminated, holds nothing and stays so.
///
/// `agent` is one whose startup fails, and which counts its shutdowns in `shutdowns`.
///
/// # Panics
///
/// If one of these does not hold.
#[doc(alias = "test_startup_failure_cleanup")]
pub async fn startup_failure<A: AgentLifecycleProtocol + ?Sized>(agent: &A, shutdowns: &Calls) {
    in_state(agent, AgentState::Uninitialized, "before startup");
    match agent.startup(None).await {
        Ok(()) => panic!("this agent was made to fail at startup, but it started"),
        Err(error) => assert!(
            error.kind() == ErrorKind::Startup,
            "a startup that fails is a startup error, but this is {:?}: {error}",
            error.kind()
        ),
    }
    in_state(agent, AgentState::Terminated, "after a failed startup");
    holds_nothing(agent, "after a failed startup");
    once(shutdowns, "a failed startup");
    agent.shutdown(None).await;
    once(shutdowns, "a failed startup and a shutdown after it");
    stays_terminated(agent).await;
    once(shutdowns, "a failed startup and another that was refused");
}

fn once(shutdowns: &Calls, after: &str) {
    let made = shutdowns.made();
    assert!(made == 1, "after {after} shutdown ran exactly once, but it ran {made} times");
}
