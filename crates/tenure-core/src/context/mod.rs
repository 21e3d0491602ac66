//! What hooks, models and tools get to see of the agent they run in.
//!
//! [`Cx`] is what all of them share; each point has a type of its own on top of it, so that a hook
//! can only do what is legal at its point. A context is `Copy` and lives as long as the call.

mod cx;
mod execution;
mod logger;
mod points;

pub use cx::{AgentView, Cx, LimitPaused};
pub use execution::{ContextDefect, ExecutionContext};
pub use logger::Logger;
pub use points::{Batch, ChatCx, InstanceCx, ModelCx, PhaseCx, ToolCx, TurnCx};
