//! People in a chat: the person's own turns.

mod user;

pub(crate) use user::{AskPerson, WaitsForPerson};
