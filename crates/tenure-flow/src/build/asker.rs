//! Somebody who answers for all agents of a workflow.

use async_trait::async_trait;
use std::sync::Arc;
use tenure_core::ask::{Answer, Asker, PendingAsk};

#[derive(Clone)]
pub(super) struct SharedAsker(pub(super) Arc<dyn Asker>);

#[async_trait]
impl Asker for SharedAsker {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        self.0.answer(ask).await
    }

    fn is_there(&self) -> bool {
        self.0.is_there()
    }
}
