//! The kit against real agents, and against broken ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod broken;
mod compliance;
mod faults;
mod harness;
mod recorder;
