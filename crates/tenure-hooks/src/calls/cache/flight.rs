//! Calls that are being made: whoever wants the same waits for the first.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::model::ModelResponse;
use tokio::sync::watch;

/// What comes of a call: nothing yet, or an answer, or none.
type Outcome = Option<Option<Arc<ModelResponse>>>;

/// The calls that are being made, by key.
#[derive(Default)]
pub(super) struct Flights {
    made: Mutex<HashMap<String, watch::Receiver<Outcome>>>,
    ended: AtomicU64,
}

/// What somebody is to a call.
pub(super) enum Joined<'a, F> {
    /// Whoever makes it.
    Leads(Lead<'a>),
    /// Whoever waits for it. None if it did not become an answer that may be given to others.
    Waits(F),
}

impl Flights {
    fn made(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Outcome>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many have ended. If it is more than before a look at the cache, that may have come too
    /// early.
    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Makes the call of this key, or waits for it.
    pub(super) fn join(
        &self,
        key: &str,
    ) -> Joined<'_, impl Future<Output = Option<ModelResponse>> + Send + use<>> {
        let mut made = self.made();
        if let Some(outcome) = made.get(key) {
            let mut outcome = outcome.clone();
            return Joined::Waits(async move {
                // Whoever made it and is gone without a word has given it up.
                let answer = outcome.wait_for(Option::is_some).await.ok()?.clone();
                answer.flatten().map(|answer| (*answer).clone())
            });
        }
        let (tell, outcome) = watch::channel(None);
        made.insert(key.to_owned(), outcome);
        Joined::Leads(Lead { flights: self, key: key.to_owned(), tell })
    }
}

/// The right to make a call, for all who want the same. Dropping it gives it up.
pub(super) struct Lead<'a> {
    flights: &'a Flights,
    key: String,
    tell: watch::Sender<Outcome>,
}

impl Lead<'_> {
    /// Tells those who wait what came of it, and those who come until this is dropped.
    pub(super) fn tell(&self, answer: Option<ModelResponse>) {
        self.tell.send_replace(Some(answer.map(Arc::new)));
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.flights.made().remove(&self.key);
        self.flights.ended.fetch_add(1, Ordering::Release);
    }
}

impl fmt::Debug for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.made().keys()).finish()
    }
}
