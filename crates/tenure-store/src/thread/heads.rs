//! What this process saved or loaded last of each conversation.

use crate::journal::Hash;
use std::collections::HashMap;
use std::sync::Arc;
use tenure_core::message::History;

/// So many conversations are remembered. A history shares its messages with whoever holds it.
const MOST: usize = 256;

/// A conversation as the file has it.
pub(super) struct Saved {
    /// The row's `head`.
    pub(super) head: String,
    /// The hash of each message.
    pub(super) items: Vec<Hash>,
    /// The messages.
    pub(super) history: History,
}

impl Saved {
    /// How many messages from the first on `history` has as they were saved.
    pub(super) fn shared_with(&self, history: &History) -> usize {
        self.history.iter().zip(history.iter()).take_while(|(then, now)| then == now).count()
    }
}

/// The conversations of a file that this process saved or loaded last.
#[derive(Default)]
pub(crate) struct ThreadHeads(HashMap<(String, String), Arc<Saved>>);

impl ThreadHeads {
    pub(super) fn get(&self, thread: &str, agent: &str) -> Option<Arc<Saved>> {
        self.0.get(&(thread.to_owned(), agent.to_owned())).cloned()
    }

    pub(super) fn put(&mut self, thread: &str, agent: &str, saved: Saved) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert((thread.to_owned(), agent.to_owned()), Arc::new(saved));
    }
}
