//! The names of hooks, and which transition it was that one of them failed at.

use crate::guarantees::support::{Events, Fault, Says, agent};
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::AgentBuilder;
use tenure_core::context::PhaseCx;
use tenure_core::event::{Event, EventKind};
use tenure_core::hook::{self, FaultKind, HookError, HookFailure, Point};
use tenure_core::phase::{Phase, PhaseHook, PhasePattern, Transition};

/// A hook on pausing that does as it is told.
macro_rules! on_pausing {
    ($module:ident::$name:ident) => {
        mod $module {
            use super::*;

            pub(super) struct $name(pub(super) Fault);

            #[async_trait]
            impl PhaseHook for $name {
                fn source(&self) -> PhasePattern {
                    PhasePattern::Any
                }

                fn target(&self) -> PhasePattern {
                    Phase::Paused.into()
                }

                fn limit(&self) -> Option<Duration> {
                    Some(Duration::from_millis(5))
                }

                async fn execute(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
                    self.0.meet("it").await
                }
            }
        }
    };
}

on_pausing!(one::Audit);
on_pausing!(two::Audit);

/// A hook with a type parameter.
struct Typed<T>(T);

#[async_trait]
impl<T: Send + Sync + 'static> PhaseHook for Typed<T> {
    fn source(&self) -> PhasePattern {
        PhasePattern::Any
    }

    fn target(&self) -> PhasePattern {
        PhasePattern::Any
    }

    async fn execute(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
        let _ = &self.0;
        Ok(())
    }
}

fn names(builder: AgentBuilder) -> Vec<String> {
    let blueprint = builder.blueprint().unwrap();
    blueprint.entrants(Point::OnTransition).iter().map(|entrant| entrant.name.to_string()).collect()
}

#[test]
fn a_phase_hook_is_called_by_the_last_part_of_its_type() {
    let builder = agent("agent", Says::Done)
        .phase_hook(one::Audit(Fault::None))
        .phase_hook(Typed(Duration::ZERO));
    assert_eq!(names(builder), ["Audit", "Typed"]);
}

#[test]
fn no_two_hooks_of_an_agent_have_one_name() {
    let hooks = || {
        agent("agent", Says::Done)
            .phase_hook(one::Audit(Fault::None))
            .phase_hook(two::Audit(Fault::None))
    };
    assert_eq!(names(hooks()), ["Audit", "Audit#2"]);
    // Also where a name that is given looks like one that is made.
    let given = hook::hook(hook::on_transition(|_| Box::pin(async { Ok(()) }))).named("Audit#2");
    assert_eq!(names(hooks().with_lifecycle(given)), ["Audit#2", "Audit", "Audit#3"]);
}

fn failed(events: &mut Events) -> Vec<EventKind> {
    let of = |event: &Arc<Event>| match &event.kind {
        kind @ EventKind::TransitionHookFailed { .. } => Some(kind.clone()),
        _ => None,
    };
    events.all().iter().filter_map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn g3_a_failure_at_a_transition_says_which_one_it_was() {
    for (fault, kind, message) in [
        (Fault::Fails, FaultKind::Failed, "it is broken"),
        (Fault::Panics, FaultKind::Panicked, "it fell over"),
        (Fault::Hangs, FaultKind::TimedOut, "no answer within 5ms"),
    ] {
        let mut events = Events::new();
        let agent = agent("agent", Says::Done)
            .phase_hook(one::Audit(fault))
            .events(&events.bus)
            .build()
            .unwrap();
        agent.startup().await.unwrap();
        agent.pause().await.unwrap();
        let [failure] = &agent.failures()[..] else { panic!("{:?}", agent.failures()) };
        let transition = Transition { from: Phase::Idle, to: Phase::Paused };
        assert_eq!((failure.transition, failure.kind), (Some(transition), kind));
        let verb = kind.as_str().replace('_', " ");
        assert_eq!(
            failure.to_string(),
            format!("hook `Audit` {verb} at on_transition (idle -> paused): {message}")
        );
        let hook: Arc<str> = "Audit".into();
        let reason = message.to_owned();
        let event = EventKind::TransitionHookFailed { hook, transition, fault: kind, reason };
        assert_eq!(event.name(), "transition.hook_failed");
        assert_eq!(failed(&mut events), [event]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_elsewhere_names_no_transition_and_old_records_are_read() {
    let agent = agent("agent", Says::Done)
        .with_lifecycle(hook::on_shutdown(|_, _| {
            Box::pin(async { Err(HookError::new("it is broken")) })
        }))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    agent.shutdown().await;
    let failure = agent.failures().remove(0);
    let record = json!({
        "hook": "on_shutdown", "point": "on_shutdown", "kind": "failed", "message": "it is broken",
    });
    assert_eq!(serde_json::to_value(&failure).unwrap(), record);
    assert_eq!(serde_json::from_value::<HookFailure>(record).unwrap(), failure);

    let mut failure = failure;
    failure.transition = Some(Transition { from: Phase::Idle, to: Phase::Paused });
    let record = serde_json::to_value(&failure).unwrap();
    assert_eq!(record["transition"], json!({ "from": "idle", "to": "paused" }));
    assert_eq!(serde_json::from_value::<HookFailure>(record).unwrap(), failure);
}
