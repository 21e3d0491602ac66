//! The chat scope: several agents in one conversation, with a begin and an end around it.
//!
//! Who speaks when is not decided here; that is the business of a workflow. This room holds the
//! scope itself: `before_chat` and `after_chat` of every agent that takes part, and the context
//! variables they share.

mod points;
mod run;
mod scope;
mod variables;

pub(crate) use run::ChatRun;
pub use run::{Question, Waits};
pub use scope::{Chat, ChatResult};
pub use variables::{ContextVariables, Declarations};

use crate::content::Content;
use crate::error::Error;
use crate::outcome::Outcome;

/// The end of a chat, as `after_chat` sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChatEnd {
    /// How the chat ended.
    pub outcome: Outcome,
    /// Why, if it did not end well.
    pub error: Option<Error>,
    /// The output of a hook that finished the chat before it began.
    pub output: Option<Content>,
}

impl ChatEnd {
    /// An end that was none of a scope: the chat could not begin.
    pub fn new(outcome: Outcome, error: Option<Error>, output: Option<Content>) -> Self {
        Self { outcome, error, output }
    }
}
