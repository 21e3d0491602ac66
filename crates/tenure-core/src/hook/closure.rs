//! Hooks made of closures, one function per point.

use super::{After, AgentLifecycle, Flow, HookAction, HookError, Point, Points};
use crate::BoxFuture;
use crate::chat::ChatEnd;
use crate::context::{ChatCx, InstanceCx, PhaseCx, ToolCx, TurnCx};
use crate::drive::{Input, TurnEnd};
use crate::kernel::{NextModel, NextTool};
use crate::model::{ModelRequest, ModelResponse};
use crate::outcome::ExitReason;
use crate::tool::{ToolOutput, ToolRequest};
use async_trait::async_trait;

macro_rules! closures {
    ($(
        $(#[$doc:meta])*
        $point:ident $name:ident($($arg:ident: $bound:ty = $ty:ty),*) -> $out:ty;
    )+) => {$(
        $(#[$doc])*
        ///
        /// The closure returns a boxed future: `|…| Box::pin(async move { … })`.
        pub fn $name<F>(body: F) -> impl AgentLifecycle
        where
            F: for<'a> Fn($($bound),*) -> BoxFuture<'a, Result<$out, HookError>>
                + Send + Sync + 'static,
        {
            struct Closure<F>(F);

            #[async_trait]
            impl<F> AgentLifecycle for Closure<F>
            where
                F: for<'a> Fn($($bound),*) -> BoxFuture<'a, Result<$out, HookError>>
                    + Send + Sync + 'static,
            {
                fn points(&self) -> Points {
                    Points::from(Point::$point)
                }

                fn name(&self) -> &str {
                    stringify!($name)
                }

                async fn $name(&self, $($arg: $ty),*) -> Result<$out, HookError> {
                    (self.0)($($arg),*).await
                }
            }

            Closure(body)
        }
    )+};
}

closures! {
    /// A hook on [`AgentLifecycle::on_start`].
    OnStart on_start(cx: InstanceCx<'a> = InstanceCx<'_>) -> ();
    /// A hook on [`AgentLifecycle::on_shutdown`].
    OnShutdown on_shutdown(
        cx: InstanceCx<'a> = InstanceCx<'_>,
        reason: ExitReason = ExitReason
    ) -> ();
    /// A hook on [`AgentLifecycle::before_chat`].
    BeforeChat before_chat(cx: ChatCx<'a> = ChatCx<'_>) -> Flow;
    /// A hook on [`AgentLifecycle::after_chat`].
    AfterChat after_chat(cx: ChatCx<'a> = ChatCx<'_>, end: &'a ChatEnd = &ChatEnd) -> ();
    /// A hook on [`AgentLifecycle::before_agent`].
    BeforeAgent before_agent(
        cx: TurnCx<'a> = TurnCx<'_>,
        input: &'a mut Input = &mut Input
    ) -> Flow;
    /// A hook on [`AgentLifecycle::after_agent`].
    AfterAgent after_agent(
        cx: TurnCx<'a> = TurnCx<'_>,
        end: &'a mut TurnEnd<'_> = &mut TurnEnd<'_>
    ) -> After;
    /// A hook on [`AgentLifecycle::before_model`].
    BeforeModel before_model(
        cx: TurnCx<'a> = TurnCx<'_>,
        request: &'a mut ModelRequest = &mut ModelRequest
    ) -> Flow;
    /// A hook on [`AgentLifecycle::wrap_model_call`].
    WrapModelCall wrap_model_call(
        cx: TurnCx<'a> = TurnCx<'_>,
        request: &'a mut ModelRequest = &mut ModelRequest,
        next: NextModel<'a> = NextModel<'_>
    ) -> ModelResponse;
    /// A hook on [`AgentLifecycle::after_model`].
    AfterModel after_model(
        cx: TurnCx<'a> = TurnCx<'_>,
        response: &'a ModelResponse = &ModelResponse
    ) -> HookAction;
    /// A hook on [`AgentLifecycle::wrap_tool_call`].
    WrapToolCall wrap_tool_call(
        cx: ToolCx<'a> = ToolCx<'_>,
        request: &'a mut ToolRequest = &mut ToolRequest,
        next: NextTool<'a> = NextTool<'_>
    ) -> ToolOutput;
    /// A hook on [`AgentLifecycle::on_transition`].
    OnTransition on_transition(cx: PhaseCx<'a> = PhaseCx<'_>) -> ();
}
