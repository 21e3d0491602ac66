//! A life that fits together, doctored in one place: the check must see it.

use super::{Recorder, pairing};
use crate::{FaultPlan, FaultyHook, HookHarness};
use serde_json::json;
use std::sync::Arc;
use tenure_core::event::{Event, EventBus, EventKind};
use tenure_core::life::{AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent};
use tenure_core::phase::Phase;

async fn life() -> Vec<Arc<Event>> {
    let everywhere = FaultyHook::new(&FaultPlan::seeded(0, 0));
    let harness = HookHarness::new(everywhere).tool("look", "seen");
    let run = harness.wrap_tool_call("look", json!({})).await;
    let events = run.recorder().events();
    assert_eq!(pairing::faults(&events), [""; 0]);
    events
}

fn matters(event: &Event) -> bool {
    let name = event.name();
    let once = ["agent.phase.bootstrapping_started", "agent.phase.shutdown_completed"];
    once.contains(&name)
        || [".started", ".ended"].iter().any(|end| name.ends_with(end)) && !name.contains(".phase.")
}

#[tokio::test]
async fn a_begin_or_an_end_that_is_missing_is_found() {
    let events = life().await;
    for at in 0..events.len() {
        let mut fewer = events.clone();
        let gone = fewer.remove(at);
        // Without its first phase a life looks as if the recorder had come later.
        let first = gone.name() == "agent.phase.bootstrapping_started";
        if matters(&gone) && !first {
            assert!(!pairing::faults(&fewer).is_empty(), "{gone:?} was not missed");
        }
    }
}

#[tokio::test]
async fn a_begin_or_an_end_that_comes_twice_is_found() {
    let events = life().await;
    for at in 0..events.len() {
        let mut more = events.clone();
        more.insert(at, events[at].clone());
        if matters(&events[at]) {
            assert!(!pairing::faults(&more).is_empty(), "{:?} was not found", events[at]);
        }
    }
}

#[tokio::test]
async fn a_transition_that_the_table_does_not_allow_is_found() {
    let events = life().await;
    let idle = events.iter().position(|event| event.name() == "agent.phase.idle_entered").unwrap();
    let mut wrong = events.clone();
    let mut event = (*events[idle]).clone();
    event.kind = EventKind::PhaseEntered { from: Phase::Idle, to: Phase::ToolDenied, reason: None };
    wrong.insert(idle + 1, Arc::new(event));
    let faults = pairing::faults(&wrong);
    assert!(
        faults[0].contains("went from idle to tool_denied, which the table does not allow"),
        "{faults:?}"
    );
}

#[tokio::test]
async fn what_begins_after_the_end_is_found() {
    let mut events = life().await;
    let begin = events.iter().find(|event| event.name() == "model.started").unwrap().clone();
    let end = events.iter().find(|event| event.name() == "model.ended").unwrap().clone();
    events.extend([begin, end]);
    let faults = pairing::faults(&events);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("began after the agent was terminated"), "{faults:?}");
}

struct Worker(Lifecycle);

#[async_trait::async_trait]
impl ManagedAgent for Worker {
    fn lifecycle(&self) -> &Lifecycle {
        &self.0
    }

    async fn do_startup(&self, _: &LifecycleConfig) -> Result<(), tenure_core::hook::HookError> {
        Ok(())
    }

    async fn do_shutdown(
        &self,
        _: std::time::Duration,
    ) -> Result<(), tenure_core::hook::HookError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_type_of_ones_own_is_recorded_like_any_agent() {
    let bus = EventBus::new();
    let recorder = Recorder::new(&bus);
    let worker = Worker(Lifecycle::new("worker").with_events(bus.clone()));
    worker.startup(None).await.unwrap();
    let faults = recorder.faults();
    assert!(faults[0].contains("`worker`"), "{faults:?}");
    worker.pause().await.unwrap();
    worker.shutdown(None).await;
    assert_eq!(recorder.faults(), [""; 0]);
}
