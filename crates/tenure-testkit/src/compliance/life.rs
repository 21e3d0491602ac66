//! Startup, shutdown, pause, resume and the numbers.

use super::{in_state, started};
use tenure_core::ErrorKind;
use tenure_core::life::AgentLifecycleProtocol;
use tenure_core::phase::AgentState;

/// A fresh agent is uninitialized; startup makes it ready, and twice is as good as once; shutdown
/// terminates it, and twice is as good as once; a terminated agent cannot be started again.
///
/// # Panics
///
/// If one of these does not hold.
#[doc(alias = "test_lifecycle_compliance")]
pub async fn lifecycle<A: AgentLifecycleProtocol + ?Sized>(agent: &A) {
    in_state(agent, AgentState::Uninitialized, "before startup");
    started(agent).await;

    let before = agent.metrics().state_transitions;
    if let Err(error) = agent.startup(None).await {
        panic!("startup of a ready agent does nothing, but it failed: {error}");
    }
    in_state(agent, AgentState::Ready, "after a second startup");
    let after = agent.metrics().state_transitions;
    assert!(
        before == after,
        "startup of a ready agent does nothing, but it made {} transitions",
        after.saturating_sub(before)
    );

    agent.shutdown(None).await;
    in_state(agent, AgentState::Terminated, "after shutdown");
    agent.shutdown(None).await;
    in_state(agent, AgentState::Terminated, "after a second shutdown");
    stays_terminated(agent).await;
}

/// A terminated agent refuses to start, naming its state, and stays terminated.
pub(super) async fn stays_terminated<A: AgentLifecycleProtocol + ?Sized>(agent: &A) {
    match agent.startup(None).await {
        Ok(()) => panic!("a terminated agent cannot be started again, but startup returned ok"),
        Err(error) => assert!(
            error.kind() == ErrorKind::NotReady && error.state() == Some(AgentState::Terminated),
            "startup of a terminated agent says that it is terminated, but it says: {error}"
        ),
    }
    in_state(agent, AgentState::Terminated, "after a startup that was refused");
}

/// Shutdown of an agent that was never started terminates it, and it stays so.
///
/// # Panics
///
/// If one of these does not hold.
pub async fn shutdown_before_startup<A: AgentLifecycleProtocol + ?Sized>(agent: &A) {
    agent.shutdown(None).await;
    in_state(agent, AgentState::Terminated, "after a shutdown without a startup");
    stays_terminated(agent).await;
}

/// Only a ready agent can be paused and only a paused one resumed; anything else is a typed error
/// that changes nothing. A paused agent can be shut down.
///
/// # Panics
///
/// If one of these does not hold.
pub async fn pausing<A: AgentLifecycleProtocol + ?Sized>(agent: &A) {
    refuses(agent, AgentState::Uninitialized, Move::Pause).await;
    refuses(agent, AgentState::Uninitialized, Move::Resume).await;
    started(agent).await;
    refuses(agent, AgentState::Ready, Move::Resume).await;
    for round in ["first", "second"] {
        if let Err(error) = agent.pause().await {
            panic!("a ready agent can be paused, but the {round} pause failed: {error}");
        }
        in_state(agent, AgentState::Paused, "after a pause");
        refuses(agent, AgentState::Paused, Move::Pause).await;
        if let Err(error) = agent.resume().await {
            panic!("a paused agent can be resumed, but the {round} resume failed: {error}");
        }
        in_state(agent, AgentState::Ready, "after a resume");
    }
    if let Err(error) = agent.pause().await {
        panic!("a ready agent can be paused, but that failed: {error}");
    }
    agent.shutdown(None).await;
    in_state(agent, AgentState::Terminated, "after a shutdown while paused");
    refuses(agent, AgentState::Terminated, Move::Pause).await;
    refuses(agent, AgentState::Terminated, Move::Resume).await;
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Pause,
    Resume,
}

async fn refuses<A: AgentLifecycleProtocol + ?Sized>(agent: &A, state: AgentState, what: Move) {
    let result = match what {
        Move::Pause => agent.pause().await,
        Move::Resume => agent.resume().await,
    };
    match result {
        Ok(()) => panic!("{what:?} is refused while the agent is {state}, but it was accepted"),
        Err(error) => assert!(
            error.kind() == ErrorKind::IllegalTransition,
            "{what:?} while the agent is {state} is an illegal transition, but the error is \
             {:?}: {error}",
            error.kind()
        ),
    }
    in_state(agent, state, "after a refused pause or resume");
}

/// Transitions are counted, and startup and shutdown are timed.
///
/// # Panics
///
/// If one of these does not hold.
pub async fn metrics<A: AgentLifecycleProtocol + ?Sized>(agent: &A) {
    let fresh = agent.metrics();
    assert!(
        fresh.state_transitions == 0 && fresh.startup_time_ms == 0.0,
        "a fresh agent has counted nothing, but this one has {fresh:?}"
    );
    started(agent).await;
    let ready = agent.metrics();
    assert!(
        ready.state_transitions >= 2,
        "startup takes two transitions, but {} were counted",
        ready.state_transitions
    );
    assert!(ready.startup_time_ms > 0.0, "startup is timed, but startup_time_ms is 0");
    agent.shutdown(None).await;
    let over = agent.metrics();
    assert!(
        over.state_transitions >= ready.state_transitions + 2,
        "shutdown takes two transitions, but {} were counted",
        over.state_transitions.saturating_sub(ready.state_transitions)
    );
    assert!(over.shutdown_time_ms > 0.0, "shutdown is timed, but shutdown_time_ms is 0");
}
