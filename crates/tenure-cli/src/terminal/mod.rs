//! What people see: progress while a run lasts, timeline and usage at its end, and questions.
//!
//! [`record`] keeps what happened, [`line`](mod@line), [`timeline`] and [`usage`] turn that into
//! text; all of them are pure. [`screen`] shows a run on standard error, live or line by line;
//! [`sink`] is the only place that prints (by way of `stream`, which is never held up for good).
//! [`question`] and [`editor`] read from the terminal, and `keyboard` sees to it that only one of
//! them does.

mod board;
mod calls;
mod editor;
mod flow_line;
mod group;
mod hook_line;
mod keyboard;
mod line;
mod live;
pub(crate) mod question;
mod reasons;
mod record;
mod screen;
pub(crate) mod sink;
pub(crate) mod size;
mod speech;
mod stream;
pub(crate) mod style;
pub(crate) mod text;
mod timeline;
mod usage;
mod words;
mod yes;

pub(crate) use editor::{LineEditor, Typed, Words, restore_terminal};
pub(crate) use record::lifecycle_tool;
pub(crate) use screen::{EventLines, Held, Progress, Screen};
pub(crate) use sink::{print_json, print_plain};
pub(crate) use stream::{fresh_line, hurry};
pub(crate) use yes::asker;

#[cfg(test)]
mod tests;
