//! Journeys: parts of a chat that are chats of their own, at the same time.
//!
//! When the trigger agent of a [`Journey`] has given its structured output, one child chat is begun
//! for each part of it (the fan-out). When they are over their results are merged into a variable of
//! the chat (the fan-in), and the resume agent speaks.

mod check;
mod children;
mod data;
mod merge;
mod parts;
mod run;

pub(crate) use check::defects;
pub(crate) use run::Journeys;

pub use data::{
    FanIn, FanOut, InputContract, Journey, MOST_CHILDREN, MergeMode, OnPartialFailure,
    OutputContract, SpawnMode,
};
