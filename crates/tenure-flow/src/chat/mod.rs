//! One chat of a flow: from the start of its agents to the last of their ends.
//!
//! `life.rs` starts the agents, runs the chat's scope and stops them again; `talk.rs` is what
//! happens within the scope, one turn after the other.

mod board;
mod cast;
mod leaving;
mod life;
mod message;
mod parking;
mod person;
mod questions;
mod record;
mod report;
mod request;
mod status;
mod talk;
mod turn;
mod variables;

pub(crate) use cast::Cast;
pub(crate) use life::begin;
pub use message::{ChatMessage, Speaker};
pub(crate) use questions::Questions;
pub(crate) use record::{Outcome, is_final};
pub use report::{ChatReport, TurnSummary};
pub use request::ChatRequest;
pub use status::ChatStatus;
