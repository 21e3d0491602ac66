//! What has been done in a turn, as its messages tell it, and what a planner makes of that.

use super::llm::Llm;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use tenure_core::message::{Message, ToolStatus};
use tenure_core::model::{Messages, ModelError, ModelErrorKind};

/// Decides what comes next.
#[async_trait]
pub(super) trait Planner: fmt::Debug + Send + Sync + 'static {
    /// The type's name, as cards spell it.
    fn kind(&self) -> &'static str;

    /// What comes next. `progress` is all there is to know.
    async fn next(&self, progress: &Progress<'_>, llm: &mut Llm<'_>) -> Result<Move, ModelError>;
}

/// What comes next.
#[derive(Debug, PartialEq)]
pub(super) enum Move {
    /// These members are asked, all at once. What is said beside it is how a plan is remembered.
    Ask { say: String, tasks: Vec<Task> },
    /// This is the answer.
    Answer(String),
}

impl Move {
    pub(super) fn ask(task: Task) -> Self {
        Self::Ask { say: String::new(), tasks: vec![task] }
    }
}

/// One thing that one member is asked.
#[derive(Debug, PartialEq)]
pub(super) struct Task {
    /// What it is for; the planner reads it again in [`Done::role`].
    pub(super) role: &'static str,
    pub(super) agent: Arc<str>,
    pub(super) message: String,
}

impl Task {
    pub(super) fn new(role: &'static str, agent: &Arc<str>, message: impl Into<String>) -> Self {
        Self { role, agent: agent.clone(), message: message.into() }
    }
}

/// The turn so far.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    /// What was asked.
    pub(super) request: &'a str,
    /// What was said before this turn.
    pub(super) earlier: Vec<&'a Message>,
    /// What was done, oldest first.
    pub(super) rounds: Vec<Round<'a>>,
}

/// One message that asked members, and what they answered.
#[derive(Debug)]
pub(super) struct Round<'a> {
    /// What was said beside the calls.
    pub(super) said: &'a str,
    pub(super) done: Vec<Done<'a>>,
}

/// One answer of one member.
#[derive(Debug)]
pub(super) struct Done<'a> {
    /// What it was asked for.
    pub(super) role: &'a str,
    pub(super) content: &'a str,
    pub(super) status: ToolStatus,
}

impl<'a> Progress<'a> {
    /// Reads the messages of a request: the turn is what comes after the user's last message.
    pub(super) fn read(messages: &'a Messages) -> Self {
        let mut progress = Self { request: "", earlier: Vec::new(), rounds: Vec::new() };
        let all: Vec<_> = messages.iter().collect();
        let asked = all.iter().rposition(|message| matches!(message, Message::User { .. }));
        let turn = match asked {
            Some(at) => {
                progress.request = all[at].text();
                progress.earlier = all[..at].to_vec();
                &all[at + 1..]
            }
            None => &all[..],
        };
        for message in turn {
            match message {
                Message::Assistant { content, .. } => {
                    progress.rounds.push(Round { said: content.text(), done: Vec::new() });
                }
                Message::Tool(result) => {
                    if let Some(round) = progress.rounds.last_mut() {
                        round.done.push(Done {
                            role: result.call_id.split(':').next().unwrap_or_default(),
                            content: result.content.text(),
                            status: result.status,
                        });
                    }
                }
                _ => {}
            }
        }
        progress
    }

    /// Every answer of the turn, oldest first.
    pub(super) fn done(&self) -> impl Iterator<Item = &Done<'a>> {
        self.rounds.iter().flat_map(|round| &round.done)
    }
}

impl<'a> Done<'a> {
    pub(super) fn is_ok(&self) -> bool {
        self.status == ToolStatus::Ok
    }

    /// The answer, or the error that ends the turn because `who` did not answer.
    pub(super) fn answer(&self, who: &str) -> Result<&'a str, ModelError> {
        if self.is_ok() { Ok(self.content) } else { Err(self.failure(who)) }
    }

    pub(super) fn failure(&self, who: &str) -> ModelError {
        let what = match self.status {
            ToolStatus::Denied => "was not allowed to run",
            ToolStatus::Cancelled => "was cancelled",
            ToolStatus::NotExecuted => "was not run",
            _ => "failed",
        };
        ModelError::new(ModelErrorKind::Other, format!("{who} {what}: {}", self.plain()))
    }

    /// What went wrong, without the word that every tool error begins with.
    pub(super) fn plain(&self) -> &'a str {
        self.content.strip_prefix("Error: ").unwrap_or(self.content)
    }

    /// The answer as others read it: a failure says that it is one.
    pub(super) fn shown(&self) -> String {
        if self.is_ok() { self.content.to_owned() } else { format!("error: {}", self.plain()) }
    }
}
