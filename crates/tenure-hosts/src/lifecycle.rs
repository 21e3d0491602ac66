//! A call of a lifecycle tool, whatever it is written in.

use crate::payload::At;
use crate::site::Site;
use std::fmt;
use tenure_core::Error;
use tenure_core::Outcome;
use tenure_core::ask::{Answer, Ask};
use tenure_core::chat::{ChatEnd, ContextVariables};
use tenure_core::context::{ChatCx, Cx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::Point;

/// A call of a lifecycle tool: where it is called from, and what it is told.
pub struct LifecycleCall<'a> {
    pub(crate) site: Site<'a>,
    pub(crate) at: At<'a>,
}

impl<'a> LifecycleCall<'a> {
    /// Before a chat.
    pub fn before_chat(cx: ChatCx<'a>) -> Self {
        Self { site: cx.into(), at: At::Plain {} }
    }

    /// After a chat.
    pub fn after_chat(cx: ChatCx<'a>, end: &'a ChatEnd) -> Self {
        Self { site: cx.into(), at: At::chat_end(end) }
    }

    /// Before a turn.
    pub fn before_agent(cx: TurnCx<'a>, input: &'a Input) -> Self {
        Self { site: cx.into(), at: At::input(&cx, input) }
    }

    /// After a turn.
    pub fn after_agent(cx: TurnCx<'a>, end: &'a TurnEnd<'_>) -> Self {
        Self { site: cx.into(), at: At::turn_end(end) }
    }

    /// The context that it is called in.
    pub fn cx(&self) -> &Cx<'a> {
        self.site.cx()
    }

    /// The point of an agent's life that it is called at.
    pub fn point(&self) -> Point {
        self.cx().hook_type()
    }

    /// Whose turn it is; none at a chat's begin and end.
    pub fn agent(&self) -> Option<&'a str> {
        matches!(self.site, Site::Turn(_)).then(|| self.cx().agent_name())
    }

    /// The chat's variables, if it is called in a chat.
    pub fn variables(&self) -> Option<ContextVariables<'a>> {
        self.cx().chat_variables()
    }

    /// How it ended, at an end.
    pub fn outcome(&self) -> Option<Outcome> {
        match &self.at {
            At::End { outcome, .. } => Some(*outcome),
            _ => None,
        }
    }

    /// Why it did not end well, at an end.
    pub fn error(&self) -> Option<&str> {
        match &self.at {
            At::End { error, .. } => error.as_deref(),
            _ => None,
        }
    }

    /// What an agent is told, before its turn.
    pub fn input(&self) -> Option<&'a str> {
        match &self.at {
            At::Input { input, .. } => Some(*input),
            _ => None,
        }
    }

    /// What an agent said, after a turn that ended well.
    pub fn output(&self) -> Option<&'a str> {
        match &self.at {
            At::End { output, .. } => *output,
            _ => None,
        }
    }

    /// Asks a person and waits for the answer; the tool's own time stands still meanwhile.
    pub async fn ask(&self, ask: Ask) -> Result<Answer, Error> {
        self.site.ask(ask).await
    }
}

impl fmt::Debug for LifecycleCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifecycleCall")
            .field("point", &self.point())
            .field("agent", &self.agent())
            .field("outcome", &self.outcome())
            .finish_non_exhaustive()
    }
}
