//! What an agent without history has heard before every turn.

use async_trait::async_trait;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, Flow, HookError, Point, Points};
use tenure_core::message::{History, Message};
use tenure_core::model::ModelRequest;

/// Puts a card's `messages` before every request of an agent that does not remember: one that does
/// starts with them. Clones that are tools get what their parent says they get.
pub(super) struct InitialMessages(pub(super) History);

#[async_trait]
impl AgentLifecycle for InitialMessages {
    fn points(&self) -> Points {
        Point::BeforeModel.into()
    }

    fn name(&self) -> &str {
        "initial-messages"
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        if !cx.agent_name().ends_with("[tool]") {
            let messages: Vec<Message> = self.0.iter().cloned().collect();
            request.messages.edit().splice(0..0, messages);
        }
        Ok(Flow::Continue)
    }
}
