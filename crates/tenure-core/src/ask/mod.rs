//! Asking a person: one primitive for approvals and for input.
//!
//! A hook or a tool awaits [`TurnCx::ask`](crate::context::TurnCx::ask). Somebody answers: an
//! [`Asker`] of the agent, or whoever calls [`Agent::answer`](crate::agent::Agent::answer). The
//! first answer counts.

mod format;
mod pending;
mod schema;

pub use pending::{Answered, PendingAsk};
pub(crate) use pending::{Asks, ask, wait_on_behalf};
pub use schema::{Misfit, check, check_text, read_text};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ask {
    /// The question, in words.
    pub prompt: String,
    /// The exact action that would be taken, for an approval.
    pub action: Option<Value>,
    /// The JSON Schema of a reply, for input. A reply that does not fit is refused: see
    /// [`check`](fn@check) for what of a schema is looked at.
    pub schema: Option<Value>,
    /// What a front end shows with it, where words alone will not do: the form, and what is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    /// How long the question stands. When it expires it counts as rejected. Without it, it stands
    /// until it is answered or the turn is cancelled.
    pub expires_after: Option<Duration>,
}

impl Ask {
    /// Asks whether `action` may be taken.
    pub fn approval(prompt: impl Into<String>, action: impl Into<Value>) -> Self {
        Self {
            prompt: prompt.into(),
            action: Some(action.into()),
            schema: None,
            form: None,
            expires_after: None,
        }
    }

    /// Asks for something to go on with.
    pub fn input(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), action: None, schema: None, form: None, expires_after: None }
    }

    /// Lets the question expire. It then counts as rejected.
    #[must_use]
    pub fn expires_after(mut self, after: Duration) -> Self {
        self.expires_after = Some(after);
        self
    }

    /// The JSON Schema of the reply.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// What a front end shows with the question.
    #[must_use]
    pub fn form(mut self, form: Value) -> Self {
        self.form = Some(form);
        self
    }

    /// Whether it asks for leave rather than for input.
    pub fn is_approval(&self) -> bool {
        self.action.is_some()
    }
}

/// What the person said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", content = "value", rename_all = "snake_case")]
pub enum Answer {
    /// Do it.
    Approve,
    /// Do this instead.
    Edit(Value),
    /// Do not do it, and why.
    Reject(String),
    /// Do not do it; this is the answer.
    Respond(String),
}

impl Answer {
    /// The decision's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Edit(_) => "edit",
            Self::Reject(_) => "reject",
            Self::Respond(_) => "respond",
        }
    }
}

/// Somebody who answers in process.
#[async_trait]
pub trait Asker: Send + Sync + 'static {
    /// Answers, or returns `None` to leave it to whoever calls `Agent::answer`.
    ///
    /// A reply that does not fit [`Ask::schema`] fails the question with
    /// [`ErrorKind::Ask`](crate::ErrorKind::Ask), as a panic does: whoever talks to a person holds it
    /// against [`check_text`] first, and asks again.
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer>;

    /// Whether a person is there at all. What needs one may then be put off instead of refused.
    fn is_there(&self) -> bool {
        true
    }
}

#[async_trait]
impl<F> Asker for F
where
    F: Fn(&PendingAsk) -> Option<Answer> + Send + Sync + 'static,
{
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        self(ask)
    }
}
