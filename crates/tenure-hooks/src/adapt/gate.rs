//! How many calls there are at the same time, where those who come have different ideas of it.

use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Counts who is inside. Instances with an older setting have another limit than newer ones; each
/// waits until fewer are inside than it allows.
#[derive(Debug, Default)]
pub(super) struct Gate {
    inside: Mutex<usize>,
    left: Notify,
}

/// A place inside, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Gate);

impl Gate {
    /// Waits until fewer than `most` are inside.
    pub(super) async fn enter(&self, most: usize) -> Place<'_> {
        loop {
            let left = self.left.notified();
            tokio::pin!(left);
            // Before looking, so that nobody who leaves meanwhile is missed.
            left.as_mut().enable();
            if let Some(place) = self.try_enter(most) {
                return place;
            }
            left.await;
        }
    }

    fn try_enter(&self, most: usize) -> Option<Place<'_>> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        (*inside < most.max(1)).then(|| {
            *inside += 1;
            Place(self)
        })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.inside.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.left.notify_waiters();
    }
}
