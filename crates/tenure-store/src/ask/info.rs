//! What is known of questions.

use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::time::SystemTime;
use tenure_core::RunId;
use tenure_core::ask::{Answer, Misfit, check, check_text};

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AskStatus {
    /// It waits for an answer.
    Open,
    /// Somebody answered.
    Answered,
    /// Nobody answered in time; it counts as rejected.
    Expired,
    /// It was taken back, since nobody waits for it any more; it counts as rejected.
    Cancelled,
}

impl AskStatus {
    /// Every status.
    pub const ALL: [AskStatus; 4] = [Self::Open, Self::Answered, Self::Expired, Self::Cancelled];

    /// The status's name as the file spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

impl fmt::Display for AskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A question, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AskInfo {
    /// Its id: the same in every life of its run.
    pub id: String,
    /// The run that asks.
    pub run: RunId,
    /// What that run is called.
    pub run_name: String,
    /// The step that asks, for people.
    pub step: String,
    /// The agent that asks.
    pub agent: String,
    /// The hook that asks; none if a tool itself does.
    pub hook: Option<String>,
    /// The tool whose call it is about.
    pub tool: Option<String>,
    /// The id of that call.
    pub call_id: Option<String>,
    /// The question, in words.
    pub prompt: String,
    /// The exact action that would be taken, for an approval.
    pub action: Option<Value>,
    /// The JSON Schema of a reply, for input.
    pub schema: Option<Value>,
    /// What a front end shows with it.
    pub form: Option<Value>,
    /// The JSON Schema of the tool's arguments: what an edited action has to fit.
    pub parameters: Option<Value>,
    /// The SHA-256 of exactly what would be done, in hex. An answer counts for nothing else.
    pub action_hash: String,
    /// When it was first asked.
    pub created: SystemTime,
    /// When it expires.
    pub expires: Option<SystemTime>,
    /// Where it stands.
    pub status: AskStatus,
    /// What was decided.
    pub answer: Option<Answer>,
    /// Who decided.
    pub by: Option<String>,
    /// When it was decided.
    pub decided: Option<SystemTime>,
}

impl AskInfo {
    /// Whether it asks for leave rather than for input.
    pub fn is_approval(&self) -> bool {
        self.action.is_some()
    }

    /// Whether the answer has the form that was asked for: a reply that of the schema, an edited
    /// action that of the tool's arguments.
    pub fn check(&self, answer: &Answer) -> Result<(), Misfit> {
        let (schema, parameters) = (self.schema.as_ref(), self.parameters.as_ref());
        match answer {
            Answer::Edit(value) if self.is_approval() => {
                let mut forms = parameters.into_iter().chain(schema);
                forms.try_for_each(|form| check(form, value))
            }
            Answer::Edit(value) => schema.map_or(Ok(()), |schema| check(schema, value)),
            Answer::Respond(text) if !self.is_approval() => {
                schema.map_or(Ok(()), |schema| check_text(schema, text))
            }
            Answer::Approve | Answer::Reject(_) | Answer::Respond(_) => Ok(()),
        }
    }
}

/// Which questions are asked for. Empty, it means those that are open, oldest first.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AskQuery {
    /// Also those that are decided.
    pub decided: bool,
    /// Only of this run.
    pub run: Option<RunId>,
    /// At most so many.
    pub limit: Option<usize>,
}

impl AskQuery {
    /// The questions that are open.
    pub fn open() -> Self {
        Self::default()
    }

    /// All questions, also those that are decided.
    pub fn all() -> Self {
        Self { decided: true, ..Self::default() }
    }

    /// Only of this run.
    #[must_use]
    pub fn run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// At most so many.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }
}
