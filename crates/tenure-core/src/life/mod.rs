//! The contract of a life: startup, shutdown, pause, resume, and the numbers kept of it.
//!
//! `LifeCell` is the protocol between whoever starts, uses and stops an agent, in two atomic
//! cells; everything else stands on it. [`ManagedAgent`] gives the whole contract to any type of
//! one's own. Tenure's own [`Agent`](crate::agent::Agent) keeps the same contract.

mod cell;
mod config;
mod contract;
mod lifecycle;
mod metrics;
mod own;
pub(crate) mod protocol;

pub(crate) use cell::LifeCell;
pub use config::LifecycleConfig;
pub(crate) use contract::wait_ready;
pub use contract::{AgentLifecycleProtocol, ManagedAgent, agent_lifecycle, own_agent};
pub use lifecycle::{BusyGuard, Lifecycle};
pub use metrics::LifecycleMetrics;
pub(crate) use metrics::Metrics;
pub(crate) use own::{Own, OwnSlot};
