//! What the lifecycle contract promises, as tests over any
//! [`AgentLifecycleProtocol`].
//!
//! [`compliance!`](crate::compliance!) makes a module of tests. The functions behind it are here,
//! one per chapter of the contract; each takes a fresh agent, drives it through its life and panics
//! with the promise that was broken. [`memory`](fn@memory) does the same for a
//! [`Memory`](tenure_core::memory::Memory).

mod concurrency;
mod errors;
mod life;
mod memory;
mod ownership;
mod suite;

pub use concurrency::concurrency;
pub use errors::{Calls, startup_failure};
pub use life::{lifecycle, metrics, pausing, shutdown_before_startup};
pub use memory::memory;
pub use ownership::{cleanup, ownership};

use tenure_core::life::AgentLifecycleProtocol;
use tenure_core::phase::AgentState;

/// Starts `agent`, or says that it should have started.
async fn started<A: AgentLifecycleProtocol + ?Sized>(agent: &A) {
    if let Err(error) = agent.startup(None).await {
        panic!("startup of a fresh agent succeeds, but it failed: {error}");
    }
    in_state(agent, AgentState::Ready, "after startup");
}

#[track_caller]
fn in_state<A: AgentLifecycleProtocol + ?Sized>(agent: &A, expected: AgentState, when: &str) {
    let state = agent.state();
    assert!(state == expected, "{when} the agent is {expected}, but this one is {state}");
}
