//! A lane: the conversation with one thread of a worker, which runs the functions of one instance.
//!
//! No task reads while nothing is asked: the call that waits for an answer reads, and hands on the frames of
//! others. So the usual call, which is alone, goes through no other task.

use super::desk::Desk;
use super::frame::{self, Heard, Inbox};
use super::life::{AFTERMATH, End, Life};
use super::outbox::Outbox;
use futures_util::task::AtomicWaker;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use tenure_core::hook::{FaultKind, HookError};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Mutex, MutexGuard, Notify};

/// Why a frame could not be sent: the worker takes nothing any more.
#[derive(Debug)]
pub(super) struct NotSent;

/// Why a call got no answer: its thread or its process is gone.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    pub(super) kind: FaultKind,
    pub(super) why: Arc<str>,
    /// The call that is to blame, where that is known.
    pub(super) culprit: Option<u64>,
    /// Calls that had begun although their callers have not heard of it.
    pub(super) begun: Arc<[u64]>,
}

impl Gone {
    pub(super) fn new(kind: FaultKind, why: Arc<str>) -> Self {
        Self { kind, why, culprit: None, begun: Arc::default() }
    }

    pub(super) fn fault(&self) -> HookError {
        HookError::of_kind(self.kind, self.why.to_string())
    }
}

/// One thread of a worker. The functions of an instance run on its first lane; a plain function that waits
/// for an answer has a further one, so that the instance's other functions can run.
pub(super) struct Lane {
    number: u32,
    life: Arc<Life>,
    /// Wakes the reader when the process or the lane is gone.
    waker: Arc<AtomicWaker>,
    inbox: Mutex<Inbox<Receiver>>,
    outbox: Mutex<Outbox>,
    desk: Desk,
    /// Whether a plain function runs here, or is about to.
    is_claimed: AtomicBool,
    /// How many calls of plain functions wait here for an answer.
    blocked: AtomicU32,
    /// How many cancels and setups the next call has to wait for.
    holds: AtomicU32,
    /// Told of every change of the three above.
    pub(super) changed: Notify,
    lost: OnceLock<Gone>,
}

impl Lane {
    pub(super) fn new(number: u32, life: Arc<Life>, (read, write): (Receiver, Sender)) -> Self {
        let waker = Arc::new(AtomicWaker::new());
        life.add_reader(&waker);
        Self {
            number,
            life,
            waker,
            inbox: Mutex::new(Inbox::new(read)),
            outbox: Mutex::new(Outbox::new(write)),
            desk: Desk::default(),
            is_claimed: AtomicBool::new(false),
            blocked: AtomicU32::new(0),
            holds: AtomicU32::new(0),
            changed: Notify::new(),
            lost: OnceLock::new(),
        }
    }

    /// Says whose functions the thread runs, in the frame before its first call.
    pub(super) fn assign(&self, told: &Value) {
        let mut outbox =
            self.outbox.try_lock().expect("no call has the lane before its instance does");
        outbox.put(&frame::of(told));
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// The calls that are in flight.
    pub(super) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Returns `true` if it can take calls: neither its thread nor its process was given up.
    pub(super) fn is_open(&self) -> bool {
        self.lost.get().is_none() && self.life.end().is_none()
    }

    /// Returns `true` if a cancel is pending here, or the instance is being set up.
    pub(super) fn is_held(&self) -> bool {
        self.holds.load(Ordering::Acquire) > 0
    }

    /// Makes later calls wait until [`Lane::let_go`].
    pub(super) fn hold(&self) {
        self.holds.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn let_go(&self) {
        self.holds.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Returns `true` if a plain function waits here for an answer, so that nothing else can run.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Acquire) > 0
    }

    /// Says that a plain function waits here, until the result is dropped.
    pub(super) fn block(&self) -> Blocked<'_> {
        self.blocked.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
        Blocked(self)
    }

    /// Takes the thread for a plain function, if none has it.
    pub(super) fn claim(&self) -> bool {
        self.is_claimed.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub(super) fn unclaim(&self) {
        self.is_claimed.store(false, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Gives the thread up: its calls fail, and it takes no more.
    pub(super) fn lose(&self, gone: Gone) {
        if self.lost.set(gone).is_ok() {
            self.waker.wake();
            self.changed.notify_waiters();
        }
    }

    /// Locks what goes to the thread.
    pub(super) async fn outbox(&self) -> Result<MutexGuard<'_, Outbox>, NotSent> {
        let outbox = match self.outbox.try_lock() {
            Ok(outbox) => outbox,
            Err(_) => self.outbox.lock().await,
        };
        if self.is_open() { Ok(outbox) } else { Err(NotSent) }
    }

    /// Sends frames. What is left of them when the future is dropped goes before the next.
    pub(super) async fn send(&self, frames: &[u8]) -> Result<(), NotSent> {
        let mut outbox = self.outbox().await?;
        outbox.put(frames);
        outbox.flush().await
    }

    /// Answers a question of a call.
    pub(super) async fn answer(&self, answer: Value) {
        // If it cannot be sent, the worker is gone, and the call that reads finds out.
        let _ = self.send(&frame::of(&answer)).await;
    }

    /// Asks a call to end that waits, in its event loop or for an answer.
    pub(super) async fn cancel(&self, id: u64) {
        let _ = self.send(&frame::of(&json!({ "cancel": id }))).await;
    }

    /// Returns the next frame of a call.
    ///
    /// # Cancel safety
    ///
    /// No frame is lost if the future is dropped.
    pub(super) async fn receive(&self, id: u64) -> Result<Heard, Gone> {
        loop {
            let mut inbox = match self.inbox.try_lock() {
                Ok(inbox) => inbox,
                Err(_) => match Box::pin(self.turn(id)).await {
                    Ok(inbox) => inbox,
                    Err(frame) => return Ok(frame),
                },
            };
            // The reader until now may have read ours.
            if let Some(frame) = self.desk.take(id) {
                return Ok(frame);
            }
            match self.read(&mut inbox).await {
                Ok(Some(frame)) if frame.id() == Some(id) => return Ok(frame),
                Ok(Some(frame)) => {
                    if let Some(id) = frame.id() {
                        self.desk.hand_on(id, frame);
                    }
                }
                Ok(None) => {
                    drop(inbox);
                    return Err(Box::pin(self.ended("the worker closed its pipe")).await);
                }
                Err(error) => {
                    drop(inbox);
                    let how = format!("the worker wrote no frame: {error}");
                    return Err(Box::pin(self.ended(&how)).await);
                }
            }
        }
    }

    /// Waits until no other call reads; or until the one that does has read a frame of this call.
    async fn turn(&self, id: u64) -> Result<MutexGuard<'_, Inbox<Receiver>>, Heard> {
        tokio::select! {
            biased;
            frame = poll_fn(|cx| self.desk.poll_take(id, cx)) => Err(frame),
            inbox = self.inbox.lock() => Ok(inbox),
        }
    }

    /// Reads a frame. What outlives the worker and still has its pipe is not waited for.
    async fn read(&self, inbox: &mut Inbox<Receiver>) -> io::Result<Option<Heard>> {
        let read = poll_fn(|cx| match inbox.poll_next(cx) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending => {
                self.waker.register(cx.waker());
                if self.life.is_over() || self.lost.get().is_some() {
                    Poll::Ready(None)
                } else {
                    Poll::Pending
                }
            }
        });
        match read.await {
            Some(read) => read,
            None if self.lost.get().is_some() => Ok(None),
            None => {
                let last = Box::pin(tokio::time::timeout(AFTERMATH, inbox.next()));
                last.await.unwrap_or(Ok(None))
            }
        }
    }

    /// Says why there is no answer; a worker that goes on without the lane's pipes is killed.
    async fn ended(&self, how: &str) -> Gone {
        if let Some(lost) = self.lost.get() {
            return lost.clone();
        }
        // The main thread may say why, or the process may be about to end.
        let lost = async {
            loop {
                let mut changed = pin!(self.changed.notified());
                changed.as_mut().enable();
                if let Some(lost) = self.lost.get() {
                    return lost.clone();
                }
                changed.await;
            }
        };
        let gone = async {
            tokio::select! { lost = lost => Some(lost), () = self.life.gone() => None }
        };
        if let Ok(Some(lost)) = tokio::time::timeout(AFTERMATH, gone).await {
            return lost;
        }
        self.life.kill(End::Silent(how.into()));
        self.gone()
    }

    /// Says why it takes nothing any more.
    pub(super) fn gone(&self) -> Gone {
        let fate = self.lost.get().cloned().or_else(|| self.life.fate());
        let unknown = || Gone::new(FaultKind::NotStarted, "the worker took no more calls".into());
        fate.unwrap_or_else(unknown)
    }
}

/// A plain function waits for an answer until this is dropped.
pub(super) struct Blocked<'a>(&'a Lane);

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        self.0.blocked.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_waiters();
    }
}
