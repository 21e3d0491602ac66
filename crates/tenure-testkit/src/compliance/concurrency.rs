//! Several at once.

use super::{in_state, started};
use tenure_core::life::AgentLifecycleProtocol;
use tenure_core::phase::AgentState;

/// Five agents start and stop at the same time without getting in each other's way. Five startups
/// of one agent start it once, and so do five shutdowns stop it. Its state can be read from any
/// thread.
///
/// # Panics
///
/// If one of these does not hold.
pub async fn concurrency<A: AgentLifecycleProtocol>(factory: impl Fn() -> A) {
    five_agents(&factory).await;
    one_agent_five_times(&factory).await;
}

async fn five_agents<A: AgentLifecycleProtocol>(factory: &impl Fn() -> A) {
    let [a, b, c, d, e] = std::array::from_fn(|_| factory());
    tokio::join!(started(&a), started(&b), started(&c), started(&d), started(&e));
    a.shutdown(None).await;
    for other in [&b, &c, &d, &e] {
        in_state(other, AgentState::Ready, "while another one shuts down");
    }
    tokio::join!(b.shutdown(None), c.shutdown(None), d.shutdown(None), e.shutdown(None));
    for agent in [&a, &b, &c, &d, &e] {
        in_state(agent, AgentState::Terminated, "after five shutdowns");
    }
}

async fn one_agent_five_times<A: AgentLifecycleProtocol>(factory: &impl Fn() -> A) {
    let alone = factory();
    started(&alone).await;
    let expected = alone.metrics().state_transitions;
    alone.shutdown(None).await;

    let agent = factory();
    tokio::join!(
        started(&agent),
        started(&agent),
        started(&agent),
        started(&agent),
        started(&agent)
    );
    let made = agent.metrics().state_transitions;
    assert!(
        made == expected,
        "five startups at once start an agent once, in {expected} transitions, but it made {made}"
    );
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| in_state(&agent, AgentState::Ready, "seen from another thread"));
        }
    });

    let before = agent.metrics().state_transitions;
    tokio::join!(
        agent.shutdown(None),
        agent.shutdown(None),
        agent.shutdown(None),
        agent.shutdown(None),
        agent.shutdown(None)
    );
    in_state(&agent, AgentState::Terminated, "after five shutdowns at once");
    let made = agent.metrics().state_transitions - before;
    assert!(made == 2, "five shutdowns at once take two transitions, but this took {made}");
}
