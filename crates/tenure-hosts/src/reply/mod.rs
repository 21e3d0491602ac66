//! A decision as it comes back: one JSON object, the same for Python and for commands.
//!
//! [`Reply::parse`] takes only what makes sense at the point that was called: an unknown key, a
//! wrong type and two decisions that contradict each other are bad replies, and a guard that says
//! nothing is one too. The functions of [`apply`] then make it happen.

pub(crate) mod apply;
mod keys;
pub(crate) mod once;
mod parse;
mod parts;
#[cfg(test)]
mod tests;

pub(crate) use keys::Expect;
pub(crate) use parse::{Decision, Reply};
pub(crate) use parts::{RequestPatch, found};
