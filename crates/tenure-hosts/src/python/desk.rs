//! The calls that are in flight at a worker.

use super::frame::Heard;
use super::lock;
use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::task::{Context, Poll, Waker};

/// The calls that are in flight at a worker, and the frames that wait for them because somebody
/// else has read them. They are few, and mostly one.
#[derive(Default)]
pub(super) struct Desk {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    open: Vec<Call>,
}

/// The number of a call, which a function that was not told it cannot guess.
pub(super) type CallId = u64;

/// Returns a number for a call. It fits into what every reader of JSON takes for an integer.
fn fresh_id() -> CallId {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static LAST: AtomicU64 = AtomicU64::new(0);
    KEY.hash_one(LAST.fetch_add(1, Ordering::Relaxed)) >> 11
}

struct Call {
    id: u64,
    frames: VecDeque<Heard>,
    waker: Option<Waker>,
}

impl Calls {
    fn call(&mut self, id: u64) -> Option<&mut Call> {
        self.open.iter_mut().find(|call| call.id == id)
    }
}

impl Desk {
    /// Begins a call, and gives it a number.
    pub(super) fn open(&self) -> u64 {
        let id = fresh_id();
        let mut calls = lock(&self.calls);
        calls.open.push(Call { id, frames: VecDeque::new(), waker: None });
        id
    }

    /// Ends a call.
    pub(super) fn close(&self, id: u64) {
        let mut calls = lock(&self.calls);
        if let Some(at) = calls.open.iter().position(|call| call.id == id) {
            calls.open.swap_remove(at);
        }
    }

    /// Whether exactly one call is in flight.
    pub(super) fn is_alone(&self) -> bool {
        lock(&self.calls).open.len() == 1
    }

    /// A frame that waits for a call.
    pub(super) fn take(&self, id: u64) -> Option<Heard> {
        lock(&self.calls).call(id)?.frames.pop_front()
    }

    /// The next frame that somebody else has read for a call.
    pub(super) fn poll_take(&self, id: u64, cx: &Context<'_>) -> Poll<Heard> {
        let mut calls = lock(&self.calls);
        let Some(call) = calls.call(id) else { return Poll::Pending };
        if let Some(frame) = call.frames.pop_front() {
            return Poll::Ready(frame);
        }
        call.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Keeps a frame for the call that it belongs to. If that is over, nobody wants it.
    pub(super) fn hand_on(&self, id: u64, frame: Heard) {
        let mut calls = lock(&self.calls);
        let Some(call) = calls.call(id) else { return };
        call.frames.push_back(frame);
        let waker = call.waker.take();
        drop(calls);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
