//! Clones: detached instances of an agent, and agents as tools.
//!
//! A clone has its own id, state, history, start and shutdown; the parent's guards come along and
//! stand next to its effects (G11). Spawning copies no definition: a clone is a small struct beside
//! the blueprint that it shares.

mod options;
mod spawn;
mod told;
mod tool;

pub use options::{ChildOptions, HistoryIn, HistoryOut};
pub(crate) use tool::AgentTool;
