//! Agents that change how they work when their goals are missed, within bounds.
//!
//! This is a loop of four parts around what is known: the hook *monitors* turns, a pure function
//! *analyses* them and *plans* one step, and new instances *execute* it. [`replay`] decides again by
//! what was observed.

mod adaptation;
mod gate;
mod log;
mod monitor;
mod options;
mod plan;
mod policy;

pub use adaptation::{Adaptation, Adaptive};
pub use log::{Entry, Log, replay};
pub use plan::{Decision, Observation};
pub use policy::{Bounds, Goal, Goals, Latency, Policy, Setting};

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[Ready::of::<options::AdaptOptions>()];
