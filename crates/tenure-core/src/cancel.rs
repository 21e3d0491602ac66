//! Cancellation: a flag that wakes whoever waits for it.
//!
//! Unlike a token tree this allocates nothing until somebody waits, which is what the drive loop
//! needs: effects listen for a cancel only once they are pending.

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// The cause of a cancel, which decides the outcome of what it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelCause {
    /// A request: the outcome is `cancelled`.
    #[default]
    Requested,
    /// A limit that has passed: the outcome is `timed_out`.
    TimeIsUp,
}

#[derive(Default)]
pub(crate) struct Signal {
    set: AtomicBool,
    /// Whether the time of what it cuts off is up.
    late: AtomicBool,
    waiters: Mutex<Waiters>,
}

#[derive(Default)]
struct Waiters {
    wakers: Vec<Waker>,
    /// How many there may be before the list is swept.
    room: usize,
}

/// Room for the waits of an ordinary turn.
const FIRST_ROOM: usize = 64;
/// However long a turn is, no more finished waits than these are kept.
const MOST_ROOM: usize = 1 << 16;

impl Signal {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Whether it was set because time is up.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Ordering::Acquire)
    }

    /// The cause that it was set for, if it is set.
    pub(crate) fn cause(&self) -> Option<CancelCause> {
        let cause = if self.is_late() { CancelCause::TimeIsUp } else { CancelCause::Requested };
        self.is_set().then_some(cause)
    }

    pub(crate) fn set(&self) {
        self.set_for(CancelCause::Requested);
    }

    /// Of several causes the first counts.
    pub(crate) fn set_for(&self, cause: CancelCause) {
        // Under the lock, so that a waiter is either woken here or sees the flag.
        let wakers = {
            let mut waiters = self.waiters.lock();
            if cause == CancelCause::TimeIsUp && !self.is_set() {
                self.late.store(true, Ordering::Release);
            }
            self.set.store(true, Ordering::Release);
            std::mem::take(&mut waiters.wakers)
        };
        for waker in wakers {
            waker.wake();
        }
    }

    /// Makes the signal ready for the next turn.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.is_set() {
            self.late.store(false, Ordering::Release);
            self.set.store(false, Ordering::Release);
        }
    }

    /// Registers `waker` and says whether the signal is set.
    pub(crate) fn register(&self, waker: &Waker) -> bool {
        let swept = {
            let mut waiters = self.waiters.lock();
            if self.set.load(Ordering::Acquire) {
                return true;
            }
            if waiters.wakers.iter().any(|known| known.will_wake(waker)) {
                return false;
            }
            // What is left of finished waits must not pile up over a long turn. Whoever still
            // waits is woken, and comes back to register again; there is room for all of them
            // then, so that they do not sweep each other away.
            let full = waiters.wakers.len() >= waiters.room.max(FIRST_ROOM);
            let swept = if full { std::mem::take(&mut waiters.wakers) } else { Vec::new() };
            if full {
                waiters.room = (swept.len() * 2).min(MOST_ROOM);
            }
            waiters.wakers.push(waker.clone());
            swept
        };
        for waker in swept {
            waker.wake();
        }
        false
    }

    pub(crate) async fn wait(&self) {
        poll_fn(|cx| if self.register(cx.waker()) { Poll::Ready(()) } else { Poll::Pending }).await;
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
pub struct CancelToken {
    inner: Arc<TokenInner>,
    /// Cancels this one with its parent.
    _parent: Option<Arc<TokenLink>>,
}

#[derive(Default)]
struct TokenInner {
    signal: Signal,
    links: Mutex<Vec<Arc<Link>>>,
}

/// What a token cancels, for as long as the link is open.
struct Link {
    open: Mutex<bool>,
    cancel: Box<dyn Fn(CancelCause) + Send + Sync>,
}

impl Link {
    /// Under the lock, so that a link that was severed never cancels what came after it.
    fn call(&self, cause: CancelCause) {
        let open = self.open.lock();
        if *open {
            (self.cancel)(cause);
        }
    }
}

impl TokenInner {
    fn cancel(&self, cause: CancelCause) {
        self.signal.set_for(cause);
        let first = self.signal.cause().unwrap_or(cause);
        let links = std::mem::take(&mut *self.links.lock());
        for link in links {
            link.call(first);
        }
    }
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that is cancelled with this one, and can be cancelled without it.
    #[must_use]
    pub fn child(&self) -> Self {
        // The link holds the flag and not the token, so that it goes with the last handle.
        let inner = Arc::<TokenInner>::default();
        let flag = inner.clone();
        let link = self.link(move |cause| flag.cancel(cause));
        Self { inner, _parent: Some(Arc::new(link)) }
    }

    /// Cancels, once and for good.
    pub fn cancel(&self) {
        self.cancel_for(CancelCause::Requested);
    }

    /// Cancels for a cause. Of several the first counts.
    pub fn cancel_for(&self, cause: CancelCause) {
        self.inner.cancel(cause);
    }

    /// Returns the cause that it was cancelled for, if it was.
    pub fn cause(&self) -> Option<CancelCause> {
        self.inner.signal.cause()
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.inner.signal.is_set()
    }

    /// Waits until it is cancelled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn cancelled(&self) {
        self.inner.signal.wait().await;
    }

    /// Calls `cancel` when the token is cancelled, until the link is severed.
    pub(crate) fn link(&self, cancel: impl Fn(CancelCause) + Send + Sync + 'static) -> TokenLink {
        let link = Arc::new(Link { open: Mutex::new(true), cancel: Box::new(cancel) });
        let cause = {
            let mut links = self.inner.links.lock();
            links.push(link.clone());
            self.cause()
        };
        if let Some(cause) = cause {
            link.call(cause);
        }
        TokenLink { token: self.clone(), link }
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish()
    }
}

pub(crate) struct TokenLink {
    token: CancelToken,
    link: Arc<Link>,
}

impl TokenLink {
    /// From here on the token cancels nothing through this link.
    pub(crate) fn sever(&self) {
        *self.link.open.lock() = false;
    }
}

impl Drop for TokenLink {
    fn drop(&mut self) {
        self.sever();
        self.token.inner.links.lock().retain(|link| !Arc::ptr_eq(link, &self.link));
    }
}
