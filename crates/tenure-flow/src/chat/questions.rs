//! The questions of chats that run inside of another one.

use std::sync::Arc;
use tenure_core::chat::Waits;
use tokio::sync::watch;

/// How many chats wait for a person, of those that are handed a clone of this. Whoever runs them
/// waits with them, and its clocks stand still.
#[derive(Clone, Debug)]
pub(crate) struct Questions(Arc<watch::Sender<usize>>);

impl Questions {
    pub(crate) fn none() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// One of the chats begins to wait, or goes on.
    pub(crate) fn tell(&self, waits: Waits) {
        self.0.send_modify(|open| {
            *open = match waits {
                Waits::ForPerson => *open + 1,
                Waits::NoLonger => open.saturating_sub(1),
            };
        });
    }

    /// Waits until somebody is asked.
    pub(crate) async fn asked(&self) {
        // Only fails if there is no sender, and this is one.
        let _ = self.0.subscribe().wait_for(|open| *open > 0).await;
    }

    /// Waits until nobody is asked any more.
    pub(crate) async fn settled(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open == 0).await;
    }
}
