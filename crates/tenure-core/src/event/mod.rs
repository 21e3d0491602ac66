//! What happened, for whoever listens.
//!
//! Events are built only if somebody listens. A subscriber has a bounded queue; a slow one is told
//! how much it missed, and never slows an agent.

mod bus;
mod kind;

pub use bus::{EventBus, Received, Subscriber};
pub(crate) use bus::{Listening, emit_once};
pub(crate) use kind::reason_of;
pub use kind::{EventKind, LogStream};

use crate::id::{InstanceId, RunId};
use serde::Serialize;
use std::sync::Arc;
use std::time::SystemTime;

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// Rises by one with every event of the bus, without a gap; zero where there is no bus.
    pub id: u64,
    /// When it happened.
    pub time: SystemTime,
    /// The agent's name.
    pub agent: Arc<str>,
    /// The instance.
    pub instance: InstanceId,
    /// The turn, if it happened in one.
    pub run: Option<RunId>,
    /// The trace, if it happened in one.
    pub trace: Option<Arc<str>>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// The name of what happened, such as `agent.phase.idle_entered`.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }
}
