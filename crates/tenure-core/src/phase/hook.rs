//! Hooks that describe themselves: which transition, and what to do.

use super::Phase;
use crate::context::PhaseCx;
use crate::hook::{HookError, short_type_name};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One side of a transition a hook waits for: one phase, or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhasePattern {
    /// Every phase.
    Any,
    /// Exactly this phase.
    Is(Phase),
}

impl PhasePattern {
    /// Whether the table has a transition from what `source` matches to what `target` matches.
    pub fn can_meet(source: Self, target: Self) -> bool {
        let from = Phase::ALL.into_iter().filter(|phase| source.matches(*phase));
        from.flat_map(Phase::targets).any(|to| target.matches(to))
    }

    /// What to write in place of a pair that the table does not have, in words.
    pub fn instead_of(source: Self, target: Self) -> String {
        let names = |phases: Vec<Phase>| {
            let names: Vec<_> = phases.into_iter().map(Phase::as_str).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        match (source, target) {
            (Self::Is(from), _) => {
                format!("from {from} an agent goes to: {}", names(from.targets().collect()))
            }
            (Self::Any, Self::Is(to)) => {
                let leads = |from: &Phase| from.may_go_to(to);
                format!(
                    "{to} is reached from: {}",
                    names(Phase::ALL.into_iter().filter(leads).collect())
                )
            }
            (Self::Any, Self::Any) => "every transition matches".to_owned(),
        }
    }

    pub(crate) fn matches(self, phase: Phase) -> bool {
        match self {
            Self::Any => true,
            Self::Is(wanted) => wanted == phase,
        }
    }
}

impl From<Phase> for PhasePattern {
    fn from(phase: Phase) -> Self {
        Self::Is(phase)
    }
}

impl fmt::Display for PhasePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Is(phase) => phase.fmt(f),
        }
    }
}

/// A hook on one transition, or a family of them.
///
/// | | |
/// |---|---|
/// | fires when | the agent has moved from a phase that `source` matches to one that `target` matches; it sees the new phase, and runs before the event goes out |
/// | may change | agent state |
/// | on failure | the failure is recorded and the agent goes on, always |
/// | on cancel | it runs |
/// | on resume | it runs: a transition that happens again is a transition |
///
/// A hook on `bootstrapping -> idle` runs exactly once in a life.
#[async_trait]
#[doc(alias = "BasePhaseHook")]
pub trait PhaseHook: Send + Sync + 'static {
    /// The phase the agent comes from.
    #[doc(alias = "source_phase")]
    fn source(&self) -> PhasePattern;
    /// The phase the agent has just entered.
    #[doc(alias = "target_phase")]
    fn target(&self) -> PhasePattern;
    /// What to do. It is bounded and its panics are caught.
    async fn execute(&self, cx: PhaseCx<'_>) -> Result<(), HookError>;
    /// Hooks with a smaller order run first; equal ones in the order of the list.
    #[doc(alias = "get_order")]
    fn order(&self) -> i32 {
        500
    }
    /// How long a call may take; as every hook, 30 s, if it does not say.
    fn limit(&self) -> Option<Duration> {
        None
    }
    /// The name under which reports, events and order constraints know the hook: the last part of its
    /// type's path, if it does not say. Of hooks with the same name the second is `Name#2`, and so on.
    #[doc(alias = "get_name")]
    fn name(&self) -> &str {
        short_type_name::<Self>()
    }
}

/// A phase hook as an entry of the one chain: it implements `on_transition` and nothing else. The
/// chain calls it only for transitions that match.
pub(crate) struct PhaseHookEntry(pub(crate) Arc<dyn PhaseHook>);

#[async_trait]
impl crate::hook::AgentLifecycle for PhaseHookEntry {
    fn points(&self) -> crate::hook::Points {
        crate::hook::Points::from(crate::hook::Point::OnTransition)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        self.0.execute(cx).await
    }
}
