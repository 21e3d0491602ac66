//! What people see: progress while a run lasts, timeline and usage at its end, and questions.
//!
//! [`record`] keeps what happened, [`line`], [`timeline`] and [`usage`] turn that into text; all of
//! them are pure. [`screen`] puts text on standard error, live or line by line, and [`question`]
//! is the only place that reads from the terminal.

mod line;
mod live;
pub(crate) mod question;
mod record;
mod screen;
pub(crate) mod style;
pub(crate) mod text;
mod timeline;
mod usage;

pub(crate) use question::TerminalAsker;
pub(crate) use screen::{EventLines, Progress, Screen, print_json, print_plain};

#[cfg(test)]
mod tests;
