//! People in a chat: their own turns, and tools that ask them.
//!
//! Everything that a person is asked is an [`Ask`](tenure_core::ask::Ask) of an agent of the chat,
//! so it is answered in one way, and the chat's status is `paused` for as long as one stands.

mod shown_tool;
mod ui_tool;
mod user;

pub use shown_tool::ShownTool;
pub use ui_tool::{TakesResponse, UI_RESPONSE, UiTool};
pub(crate) use user::{AskPerson, WaitsForPerson};
