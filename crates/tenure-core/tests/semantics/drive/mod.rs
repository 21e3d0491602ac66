//! The drive loop: tools, limits, errors, streams, asks, events and history.

mod asks;
pub(crate) mod endings;
mod ends;
mod events;
mod flow;
mod streaming;
mod tools;
