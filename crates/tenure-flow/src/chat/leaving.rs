//! The end of everything that belongs to a chat and is no agent of it.

use crate::flow::Flow;
use std::sync::Arc;

/// Says farewell to a chat, also to one that did not come to its end.
pub(super) struct Leaving {
    flow: Flow,
    chat: Option<Arc<str>>,
}

impl Leaving {
    /// Of this chat, once its agents are over.
    pub(super) fn of(flow: &Flow, chat: &Arc<str>) -> Self {
        Self { flow: flow.clone(), chat: Some(chat.clone()) }
    }

    pub(super) async fn now(mut self) {
        if let (Some(farewell), Some(chat)) = (&self.flow.inner.farewell, self.chat.take()) {
            farewell(&chat).await;
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let (Some(farewell), Some(chat)) = (&self.flow.inner.farewell, self.chat.take()) else {
            return;
        };
        // Where no runtime is left there are no processes either: their host goes with it.
        if tokio::runtime::Handle::try_current().is_ok() {
            drop(self.flow.inner.tracker.spawn(farewell(&chat)));
        }
    }
}
