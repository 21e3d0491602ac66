//! One worker process, and the conversation with it.
//!
//! Nobody reads while nothing is asked: whoever waits for an answer reads, and hands what is not
//! for it to whom it is for. So the usual call, which is alone, goes through no other task.

use super::desk::Desk;
use super::frame::{self, Heard, Inbox};
use super::life::{AFTERMATH, End, Life};
use super::outbox::Outbox;
use super::{PythonFile, start};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tenure_core::InstanceId;
use tenure_core::hook::HookError;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::task::TaskTracker;

/// How long a worker that was asked to go, or to stop, may take.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);

/// Why a frame could not be sent: the worker takes nothing any more.
#[derive(Debug)]
pub(super) struct NotSent;

/// A worker that has said that it is ready. Dropping it kills it.
pub(super) struct Worker {
    life: Arc<Life>,
    pid: u32,
    inbox: Mutex<Inbox<ChildStdout>>,
    outbox: Mutex<Outbox>,
    desk: Desk,
}

impl Worker {
    /// Starts a worker and waits until it is ready. The error says why it is not.
    pub(super) async fn start(
        config: &super::PythonConfig,
        tracker: &TaskTracker,
    ) -> Result<Worker, String> {
        start::start(config, tracker).await
    }

    /// The two ends of a conversation that begins.
    pub(super) fn new(life: Arc<Life>, pid: u32, pipes: (ChildStdin, ChildStdout)) -> Self {
        Self {
            life,
            pid,
            inbox: Mutex::new(Inbox::new(pipes.1)),
            outbox: Mutex::new(Outbox::new(pipes.0)),
            desk: Desk::default(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// The calls that are in flight.
    pub(super) fn desk(&self) -> &Desk {
        &self.desk
    }

    pub(super) fn is_gone(&self) -> bool {
        self.life.end().is_some()
    }

    pub(super) fn end(&self) -> Option<&End> {
        self.life.end()
    }

    /// Kills the worker and everything that it started, now.
    pub(super) fn kill(&self, why: &str) {
        self.life.kill(End::Killed(why.into()));
    }

    /// Gives up a worker that takes no more frames.
    pub(super) fn abandon(&self, why: &str, tracker: &TaskTracker) {
        self.life.kill_elsewhere(End::Silent(why.into()), tracker);
    }

    /// Asks the worker to go, so that what it registered for its end runs; then makes it.
    pub(super) async fn dismiss(&self) {
        if !self.is_gone() && self.send(&frame::of(&json!({ "exit": true }))).await.is_ok() {
            let _ = tokio::time::timeout(FAREWELL, self.life.gone()).await;
        }
        self.kill("the worker was dismissed");
    }

    /// What goes to the worker, for whoever has something to send.
    pub(super) async fn outbox(&self) -> Result<MutexGuard<'_, Outbox>, NotSent> {
        let outbox = match self.outbox.try_lock() {
            Ok(outbox) => outbox,
            Err(_) => self.outbox.lock().await,
        };
        if self.is_gone() { Err(NotSent) } else { Ok(outbox) }
    }

    /// Lets go of what an instance that has ended left in the worker.
    pub(super) async fn forget(&self, instance: InstanceId) {
        if let Ok(mut outbox) = self.outbox().await {
            outbox.put_end_of(instance);
            let _ = outbox.flush().await;
        }
    }

    /// Sends a file ahead of the first call, so that it is compiled by then. It does not run.
    pub(super) async fn prepare(&self, file: (u32, &PythonFile)) {
        if let Ok(mut outbox) = self.outbox().await {
            outbox.put_file(file);
            // A worker that takes nothing any more is found out by whoever calls it.
            let _ = outbox.flush().await;
        }
    }

    /// Sends frames. Dropping the future in the middle of one tears it, and the worker is lost.
    pub(super) async fn send(&self, frames: &[u8]) -> Result<(), NotSent> {
        let mut outbox = self.outbox().await?;
        outbox.put(frames);
        outbox.flush().await
    }

    /// Answers a question of a call.
    pub(super) async fn answer(&self, answer: Value) {
        // If it cannot be sent, the worker is gone, and whoever reads finds out.
        let _ = self.send(&frame::of(&answer)).await;
    }

    /// The first frame of a worker's life; `None` if it ended instead.
    pub(super) async fn first(&self) -> Option<Heard> {
        let first = self.inbox.lock().await.next().await;
        if !matches!(first, Ok(Some(_))) {
            // It has ended, or soon will; how is worth knowing.
            let _ = tokio::time::timeout(AFTERMATH, self.life.gone()).await;
        }
        first.ok().flatten()
    }

    /// The next frame of a call.
    ///
    /// # Cancel safety
    ///
    /// No frame is lost if the future is dropped.
    pub(super) async fn receive(&self, id: u64) -> Result<Heard, HookError> {
        loop {
            let mut inbox = match self.inbox.try_lock() {
                Ok(inbox) => inbox,
                Err(_) => match Box::pin(self.turn(id)).await {
                    Ok(inbox) => inbox,
                    Err(frame) => return Ok(frame),
                },
            };
            // Whoever read until now may have read ours.
            if let Some(frame) = self.desk.take(id) {
                return Ok(frame);
            }
            match self.read(&mut inbox).await {
                Ok(Some(frame)) if frame.id() == Some(id) => return Ok(frame),
                Ok(Some(frame)) => self.hand_on(frame),
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

    /// Waits until nobody else reads; or until whoever does has read a frame of this call.
    async fn turn(&self, id: u64) -> Result<MutexGuard<'_, Inbox<ChildStdout>>, Heard> {
        tokio::select! {
            biased;
            frame = poll_fn(|cx| self.desk.poll_take(id, cx)) => Err(frame),
            inbox = self.inbox.lock() => Ok(inbox),
        }
    }

    /// Reads a frame. What something that outlives the worker writes is not waited for.
    async fn read(&self, inbox: &mut Inbox<ChildStdout>) -> io::Result<Option<Heard>> {
        let read = poll_fn(|cx| match inbox.poll_next(cx) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending if self.life.poll_over(cx.waker()) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        match read.await {
            Some(read) => read,
            None => {
                let last = Box::pin(tokio::time::timeout(AFTERMATH, inbox.next()));
                last.await.unwrap_or(Ok(None))
            }
        }
    }

    #[cold]
    fn hand_on(&self, frame: Heard) {
        match (frame.id(), frame) {
            (Some(id), frame) => self.desk.hand_on(id, frame),
            (None, Heard::Said(frame)) => {
                if let Some(line) = &frame.log {
                    self.life.stray(line.as_bytes());
                }
            }
            (None, Heard::End(_)) => {}
        }
    }

    /// How the worker ended; if it goes on without a pipe, it is killed.
    async fn ended(&self, how: &str) -> HookError {
        let _ = tokio::time::timeout(AFTERMATH, self.life.gone()).await;
        self.life.kill(End::Silent(how.into()));
        self.end().map_or_else(|| HookError::new("the worker is gone"), End::fault)
    }

    /// Lines that nobody can be named for, once.
    pub(super) fn take_stray(&self) -> VecDeque<String> {
        self.life.take_stray()
    }

    /// Cancels a call whose future is gone. If it does not end soon, the worker is killed.
    pub(super) async fn cancel(&self, id: u64, hook: &str) {
        let settled = async {
            self.send(&frame::of(&json!({ "cancel": id }))).await.ok()?;
            loop {
                match self.receive(id).await.ok()? {
                    Heard::Said(frame) if !frame.is_end() => {}
                    _ => return Some(()),
                }
            }
        };
        if !matches!(tokio::time::timeout(FAREWELL, settled).await, Ok(Some(()))) {
            self.kill(&format!(
                "the worker was killed because `{hook}` did not stop when it was cancelled"
            ));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill("the host of the worker is gone");
    }
}
