//! Where a hook or a tool is called from, for what differs between the kinds of contexts.

use serde_json::{Map, Value};
use tenure_core::ask::{Answer, Ask};
use tenure_core::context::{ChatCx, Cx, InstanceCx, PhaseCx, ToolCx, TurnCx};
use tenure_core::{Error, RunId};

/// The context of a call.
#[derive(Clone, Copy)]
pub(crate) enum Site<'a> {
    /// Where nobody can be asked, and no step is recorded.
    Plain(Cx<'a>),
    Chat(ChatCx<'a>),
    Turn(TurnCx<'a>),
    Tool(ToolCx<'a>),
}

impl<'a> Site<'a> {
    pub(crate) fn cx(&self) -> &Cx<'a> {
        match self {
            Self::Plain(cx) => cx,
            Self::Chat(cx) => cx,
            Self::Turn(cx) => cx,
            Self::Tool(cx) => cx,
        }
    }

    /// Returns the run of the turn that the call is part of.
    pub(crate) fn run_id(&self) -> Option<RunId> {
        match self {
            Self::Plain(_) | Self::Chat(_) => None,
            Self::Turn(cx) => Some(cx.run_id()),
            Self::Tool(cx) => cx.run_id(),
        }
    }

    pub(crate) async fn ask(&self, ask: Ask) -> Result<Answer, Error> {
        match self {
            Self::Plain(cx) => Err(not_here("ask", cx)),
            Self::Chat(cx) => cx.ask(ask).await,
            Self::Turn(cx) => cx.ask(ask).await,
            Self::Tool(cx) => cx.ask(ask).await,
        }
    }

    pub(crate) async fn step(
        &self,
        name: &str,
        effect: impl Future<Output = Result<Value, Error>> + Send,
    ) -> Result<Value, Error> {
        match self {
            Self::Plain(cx) => Err(not_here("step", cx)),
            Self::Chat(cx) => cx.step(name, effect).await,
            Self::Turn(cx) => cx.step(name, effect).await,
            Self::Tool(cx) => cx.step(name, effect).await,
        }
    }

    pub(crate) fn write_state(&self, patch: Map<String, Value>) -> Result<(), Error> {
        match self {
            Self::Tool(cx) => cx.update_state(patch),
            other => other.cx().update_state(patch),
        }
    }

    /// Outside a chat a worker keeps its variables itself and sends none.
    pub(crate) fn write_variables(
        &self,
        patch: Map<String, Value>,
        gone: Vec<String>,
    ) -> Result<(), Error> {
        match self.cx().chat_variables() {
            Some(chat) => chat.change(patch, gone),
            None => Ok(()),
        }
    }
}

fn not_here(what: &str, cx: &Cx<'_>) -> Error {
    Error::invalid(format!("`{what}` is not possible at {}", cx.hook_type()))
}

macro_rules! from {
    ($($context:ident => $site:ident),+) => {$(
        impl<'a> From<$context<'a>> for Site<'a> {
            fn from(cx: $context<'a>) -> Self {
                Self::$site(cx)
            }
        }
    )+};
}

from!(ChatCx => Chat, TurnCx => Turn, ToolCx => Tool);

impl<'a> From<InstanceCx<'a>> for Site<'a> {
    fn from(cx: InstanceCx<'a>) -> Self {
        Self::Plain(*cx)
    }
}

impl<'a> From<PhaseCx<'a>> for Site<'a> {
    fn from(cx: PhaseCx<'a>) -> Self {
        Self::Plain(*cx)
    }
}
