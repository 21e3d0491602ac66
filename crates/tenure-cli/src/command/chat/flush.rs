//! Questions behind what was said before them.
//!
//! The text of an answer and the questions of hooks and tools come to the screen by different ways.
//! A question waits here until everything has been shown that came before it.

use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, MutexGuard, oneshot};

/// Who shows an answer, and who waits for that. Clones are one.
#[derive(Clone)]
pub(super) struct Flush {
    send: UnboundedSender<oneshot::Sender<()>>,
    waiting: Arc<Mutex<UnboundedReceiver<oneshot::Sender<()>>>>,
    /// Whether an answer is being shown.
    is_on: Arc<AtomicBool>,
}

impl Default for Flush {
    fn default() -> Self {
        let (send, waiting) = unbounded_channel();
        Self { send, waiting: Arc::new(Mutex::new(waiting)), is_on: Arc::default() }
    }
}

impl Flush {
    /// An asker whose questions wait.
    pub(super) fn before<A: Asker>(&self, asker: A) -> impl Asker {
        Patient { asker, flush: self.clone() }
    }

    /// Listens to who waits, for as long as an answer is shown.
    pub(super) async fn listen(&self) -> Questions<'_> {
        let waiting = self.waiting.lock().await;
        self.is_on.store(true, Ordering::Release);
        Questions { waiting, is_on: &self.is_on }
    }
}

/// Those who wait.
pub(super) struct Questions<'a> {
    waiting: MutexGuard<'a, UnboundedReceiver<oneshot::Sender<()>>>,
    is_on: &'a AtomicBool,
}

impl Questions<'_> {
    /// Somebody who waits.
    pub(super) async fn next(&mut self) -> Waits {
        match self.waiting.recv().await {
            Some(shown) => Waits(shown),
            None => std::future::pending().await,
        }
    }
}

impl Drop for Questions<'_> {
    fn drop(&mut self) {
        self.is_on.store(false, Ordering::Release);
        // Nobody is left waiting.
        while self.waiting.try_recv().is_ok() {}
    }
}

/// A question that waits.
pub(super) struct Waits(oneshot::Sender<()>);

impl Waits {
    /// Everything has been shown that came before it.
    pub(super) fn done(self) {
        // Whoever asked may be gone.
        let _ = self.0.send(());
    }
}

/// Longer than it takes to show what is there.
const PATIENCE: Duration = Duration::from_secs(1);

struct Patient<A> {
    asker: A,
    flush: Flush,
}

#[async_trait]
impl<A: Asker> Asker for Patient<A> {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        if self.flush.is_on.load(Ordering::Acquire) {
            // What was said in the same breath is on its way after this.
            tokio::task::yield_now().await;
            let (shown, done) = oneshot::channel();
            if self.flush.send.send(shown).is_ok() {
                // The answer may have come to its end meanwhile, and then nothing is waited for.
                let _ = tokio::time::timeout(PATIENCE, done).await;
            }
        }
        self.asker.answer(ask).await
    }

    fn is_there(&self) -> bool {
        self.asker.is_there()
    }
}
