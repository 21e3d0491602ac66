//! Processes: how they start, what they get to see of our environment, and how they end.
//!
//! A [`Process`] leads a process group of its own and is the only owner of it. Whatever becomes of
//! the future that waits for it, the group and everything that descends from it is killed and the
//! process is reaped: no zombie and no orphan stays behind.

mod child;
mod environment;
mod output;
mod tree;

pub(crate) use child::{Ended, Launch, Leftovers, Process};
pub use environment::Environment;
pub(crate) use output::output_within;
