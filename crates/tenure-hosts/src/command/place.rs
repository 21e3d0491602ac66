//! Where a command is called from, for what differs between the kinds of contexts.

use crate::reply::{Expect, Reply, apply};
use tenure_core::Error;
use tenure_core::ask::{Answer, Ask};
use tenure_core::context::{ChatCx, Cx, InstanceCx, PhaseCx, ToolCx, TurnCx};
use tenure_core::hook::HookError;

/// The context of a call.
pub(super) enum Place<'a> {
    /// Where nobody can be asked.
    Plain(Cx<'a>),
    Chat(ChatCx<'a>),
    Turn(TurnCx<'a>),
    Tool(ToolCx<'a>),
}

impl<'a> Place<'a> {
    pub(super) fn cx(&self) -> &Cx<'a> {
        match self {
            Self::Plain(cx) => cx,
            Self::Chat(cx) => cx,
            Self::Turn(cx) => cx,
            Self::Tool(cx) => cx,
        }
    }

    pub(super) async fn ask(&self, expect: &Expect, ask: Ask) -> Result<Answer, HookError> {
        let answer: Result<Answer, Error> = match self {
            Self::Plain(_) => return Err(expect.bad("nobody can be asked here")),
            Self::Chat(cx) => cx.ask(ask).await,
            Self::Turn(cx) => cx.ask(ask).await,
            Self::Tool(cx) => cx.ask(ask).await,
        };
        Ok(answer?)
    }

    /// Does what a reply may say at every point.
    pub(super) fn common(
        &self,
        hook: &str,
        expect: &Expect,
        reply: &mut Reply,
    ) -> Result<(), HookError> {
        match self {
            Self::Tool(cx) => apply::common_in_tool(cx, hook, expect, reply),
            other => apply::common(other.cx(), hook, expect, reply),
        }
    }
}

impl<'a> From<InstanceCx<'a>> for Place<'a> {
    fn from(cx: InstanceCx<'a>) -> Self {
        Self::Plain(*cx)
    }
}

impl<'a> From<PhaseCx<'a>> for Place<'a> {
    fn from(cx: PhaseCx<'a>) -> Self {
        Self::Plain(*cx)
    }
}

impl<'a> From<ChatCx<'a>> for Place<'a> {
    fn from(cx: ChatCx<'a>) -> Self {
        Self::Chat(cx)
    }
}

impl<'a> From<TurnCx<'a>> for Place<'a> {
    fn from(cx: TurnCx<'a>) -> Self {
        Self::Turn(cx)
    }
}

impl<'a> From<ToolCx<'a>> for Place<'a> {
    fn from(cx: ToolCx<'a>) -> Self {
        Self::Tool(cx)
    }
}
