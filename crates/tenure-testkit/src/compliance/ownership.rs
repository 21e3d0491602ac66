//! Who may write what, and what is left at the end.

use super::{in_state, started};
use serde_json::json;
use tenure_core::ErrorKind;
use tenure_core::life::AgentLifecycleProtocol;
use tenure_core::phase::AgentState;
use tenure_core::state::StateOwnership;

/// The agent writes `_temp`, which it owns. It cannot write what memory owns (`history`,
/// `embeddings`) or the orchestrator (`trace_id`, `routing`): that is a
/// [`StateViolation`](tenure_core::state::StateViolation) that names key, owner and actor, and
/// leaves nothing behind.
///
/// # Panics
///
/// If one of these does not hold.
#[doc(alias = "test_state_ownership")]
pub async fn ownership<A: AgentLifecycleProtocol + ?Sized>(agent: &A) {
    started(agent).await;
    owned_by(agent, "_temp", StateOwnership::Agent);
    if let Err(error) = agent.set_state("_temp", json!(123)) {
        panic!("an agent may write `_temp`, but that was refused: {error}");
    }
    let held = agent.state_len();
    assert!(held > 0, "a value that was written is held, but the agent holds none");
    for (key, owner) in [
        ("history", StateOwnership::Memory),
        ("embeddings", StateOwnership::Memory),
        ("trace_id", StateOwnership::Orchestrator),
        ("routing", StateOwnership::Orchestrator),
    ] {
        owned_by(agent, key, owner);
        refuses_to_write(agent, key, owner);
    }
    assert!(
        agent.state_len() == held,
        "a refused write leaves nothing behind, but the agent went from {held} values to {}",
        agent.state_len()
    );
    agent.shutdown(None).await;
    holds_nothing(agent, "after shutdown");
}

fn owned_by<A: AgentLifecycleProtocol + ?Sized>(agent: &A, key: &str, expected: StateOwnership) {
    let owner = agent.owns_state(key);
    assert!(owner == expected, "`{key}` is owned by {expected}, but this agent says {owner}");
}

fn refuses_to_write<A: AgentLifecycleProtocol + ?Sized>(
    agent: &A,
    key: &str,
    owner: StateOwnership,
) {
    let Err(error) = agent.set_state(key, json!("mine")) else {
        panic!("`{key}` is owned by {owner}, but the agent was allowed to write it");
    };
    assert!(
        error.kind() == ErrorKind::State,
        "a write to `{key}` is a state violation, but the error is {:?}: {error}",
        error.kind()
    );
    let Some(violation) = error.state_violation() else {
        panic!("a refused write carries its violation, but this error has none: {error}");
    };
    let named = (violation.key.as_str(), violation.owner, violation.actor);
    assert!(
        named == (key, owner, StateOwnership::Agent),
        "a violation names key, owner and actor; for `{key}` it named {named:?}"
    );
}

/// What the agent wrote while it lived is gone after shutdown.
///
/// # Panics
///
/// If one of these does not hold.
#[doc(alias = "test_resource_cleanup")]
pub async fn cleanup<A: AgentLifecycleProtocol + ?Sized>(agent: &A) {
    started(agent).await;
    for key in ["_one", "_two", "_three"] {
        if let Err(error) = agent.set_state(key, json!(key)) {
            panic!("an agent may write `{key}`, but that was refused: {error}");
        }
    }
    agent.shutdown(None).await;
    in_state(agent, AgentState::Terminated, "after shutdown");
    holds_nothing(agent, "after shutdown");
    agent.shutdown(None).await;
    holds_nothing(agent, "after a second shutdown");
}

pub(super) fn holds_nothing<A: AgentLifecycleProtocol + ?Sized>(agent: &A, when: &str) {
    let held = agent.state_len();
    assert!(held == 0, "{when} the agent holds no state, but this one holds {held} values");
}
