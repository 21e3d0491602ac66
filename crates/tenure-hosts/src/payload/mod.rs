//! A call as it goes out: one JSON object, the same for Python and for commands.
//!
//! It is written straight from what the hook was called with; nothing is collected in between but
//! state and chat variables, which have to be copied out of their locks.

mod at;
mod call;

pub(crate) use at::{At, Response};
pub(crate) use call::{ConfigPart, Stage, encode};
