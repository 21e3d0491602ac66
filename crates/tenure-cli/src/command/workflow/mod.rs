//! Workflows on the command line.
//!
//! [`find`] says which workflow is meant, `opened` reads and checks it, [`run()`] runs a chat,
//! `drive` is that from the first agent's start to the last one's end, `ended` what is said of it
//! then, `clock` the time that it may take, and [`explain()`] shows how it is put together.

mod clock;
mod drive;
mod ended;
mod explain;
mod find;
mod opened;
mod run;

pub(super) use ended::Ended as EndedChat;
pub(super) use explain::explain;
pub(super) use find::{Meant, meant, not_for_workflows};
pub(super) use opened::OpenedWorkflow;
pub(super) use run::{Chat, run};
