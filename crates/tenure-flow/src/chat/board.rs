//! Who waits for a person, of a chat and of all that run inside of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::Error;
use tenure_core::chat::Chat;
use tokio::time::sleep;

/// How often is looked whether everybody waits.
const LOOK: Duration = Duration::from_millis(50);

/// The chats that run, of one that is to be parked when all of them wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Board(Arc<Mutex<Vec<(u64, Chat)>>>);

impl Board {
    /// Counts a chat among those that run, for as long as the result lives.
    pub(super) fn enter(&self, chat: &Chat) -> OnBoard {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.chats().push((number, chat.clone()));
        OnBoard { board: self.clone(), number }
    }

    fn chats(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Chat)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waits(&self) -> bool {
        let chats = self.chats();
        !chats.is_empty() && chats.iter().all(|(_, chat)| chat.is_waiting())
    }

    /// Waits until everybody can only wait for a person, and says so.
    pub(super) async fn waiting(&self) -> Error {
        let mut before = false;
        loop {
            sleep(LOOK).await;
            let now = self.waits();
            // Twice, so that nobody is caught between an answer and what follows from it.
            if before && now {
                return Error::waiting(
                    "the chat waits for a person who is not here; its questions are on record, and \
                     it goes on when they are answered and its run is resumed",
                );
            }
            before = now;
        }
    }
}

/// A chat that runs.
pub(super) struct OnBoard {
    board: Board,
    number: u64,
}

impl Drop for OnBoard {
    fn drop(&mut self) {
        self.board.chats().retain(|(number, _)| *number != self.number);
    }
}
