//! Cancellation: a flag that wakes whoever waits for it.
//!
//! Unlike a token tree this allocates nothing until somebody waits, which is what the drive loop
//! needs: effects listen for a cancel only once they are pending.

use crate::sync::Mutex;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

#[derive(Default)]
pub(crate) struct Signal {
    set: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Signal {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self) {
        // Under the lock, so that a waiter is either woken here or sees the flag.
        let wakers = {
            let mut wakers = self.wakers.lock();
            self.set.store(true, Ordering::Release);
            std::mem::take(&mut *wakers)
        };
        for waker in wakers {
            waker.wake();
        }
    }

    /// Makes the signal ready for the next turn.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.is_set() {
            self.set.store(false, Ordering::Release);
        }
    }

    /// Registers `waker` and says whether the signal is set.
    pub(crate) fn register(&self, waker: &Waker) -> bool {
        let mut wakers = self.wakers.lock();
        if self.set.load(Ordering::Acquire) {
            return true;
        }
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            // What is left of finished waits must not pile up over a long turn. Whoever still
            // waits is woken, and comes back to register again.
            if wakers.len() >= 64 {
                for stale in wakers.drain(..) {
                    stale.wake();
                }
            }
            wakers.push(waker.clone());
        }
        false
    }

    pub(crate) async fn wait(&self) {
        poll_fn(|cx| {
            if self.register(cx.waker()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// Cancels turns from outside.
///
/// Clones are one token. Hand it to a [`Request`](crate::agent::Request); cancel it from anywhere.
///
/// ```
/// let token = tenure_core::CancelToken::new();
/// let other = token.clone();
/// token.cancel();
/// assert!(other.is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct CancelToken(Arc<TokenInner>);

#[derive(Default)]
struct TokenInner {
    signal: Signal,
    links: Mutex<Vec<Link>>,
}

struct Link {
    id: u64,
    cancel: Box<dyn Fn() + Send + Sync>,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels, once and for good.
    pub fn cancel(&self) {
        let links = {
            let mut links = self.0.links.lock();
            self.0.signal.set();
            std::mem::take(&mut *links)
        };
        for link in links {
            (link.cancel)();
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.signal.is_set()
    }

    /// Waits until it is cancelled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn cancelled(&self) {
        self.0.signal.wait().await;
    }

    /// Calls `cancel` when the token is cancelled, until the link is dropped.
    pub(crate) fn link(&self, cancel: impl Fn() + Send + Sync + 'static) -> TokenLink {
        static IDS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let mut links = self.0.links.lock();
        if self.is_cancelled() {
            drop(links);
            cancel();
        } else {
            links.push(Link {
                id,
                cancel: Box::new(cancel),
            });
        }
        TokenLink {
            token: self.clone(),
            id,
        }
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}

pub(crate) struct TokenLink {
    token: CancelToken,
    id: u64,
}

impl Drop for TokenLink {
    fn drop(&mut self) {
        self.token.0.links.lock().retain(|link| link.id != self.id);
    }
}
