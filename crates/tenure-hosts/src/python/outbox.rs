//! What goes to a worker.

use super::host::Entry;
use super::lane::NotSent;
use super::{PythonFunction, Style, frame};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;

/// What the buffer may keep when it is empty again.
const KEPT: usize = 256 << 10;

/// The pipe to a thread of a worker, and what has been told through it.
pub(super) struct Outbox {
    pipe: Sender,
    /// Frames that are to be sent, and how much of them has been: a call that is dropped in the middle of its
    /// frame leaves the rest to the next.
    buffer: Vec<u8>,
    sent: usize,
    /// The functions that the thread has been told of, by their numbers, which are small.
    functions: Vec<bool>,
}

/// Whether the host is told when a function begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// It begins at once, so that is not worth a frame.
    AtOnce,
    /// Its module is loaded first.
    Loads,
    /// Other calls of its instance are in flight.
    Queued,
    /// Other calls of its instance are in flight, and then its module is loaded.
    QueuedToLoad,
}

impl Begin {
    /// Returns what the worker is asked to tell.
    const fn asked(self) -> &'static [u8] {
        match self {
            Self::AtOnce => b"",
            Self::Loads | Self::Queued => b",\"tell\":true",
            Self::QueuedToLoad => b",\"tell\":\"loads\"",
        }
    }
}

impl Outbox {
    pub(super) fn new(pipe: Sender) -> Self {
        let buffer = Vec::with_capacity(1 << 10);
        Self { pipe, buffer, sent: 0, functions: Vec::new() }
    }

    /// Returns `true` if the thread has been told of a function.
    pub(super) fn knows(&self, entry: &Entry) -> bool {
        self.functions.get(entry.id as usize).copied().unwrap_or(false)
    }

    /// Puts down the frame of a call, and before it the function, if the thread has not heard of it. `body`
    /// writes what the call holds behind its numbers. Gives where the frame of the call begins, and how
    /// long it is.
    pub(super) fn compose(
        &mut self,
        id: u64,
        entry: &Entry,
        begin: Begin,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> (usize, usize) {
        if !self.knows(entry) {
            self.introduce(entry);
        }
        let buffer = &mut self.buffer;
        let start = frame::open(buffer);
        buffer.extend_from_slice(b"{\"id\":");
        frame::number(buffer, id);
        buffer.extend_from_slice(b",\"fn\":");
        frame::number(buffer, entry.id.into());
        buffer.extend_from_slice(begin.asked());
        body(buffer);
        buffer.push(b'}');
        frame::seal(buffer, start);
        (start, buffer.len() - start)
    }

    #[cold]
    fn introduce(&mut self, entry: &Entry) {
        let PythonFunction { name, style, takes, .. } = &entry.function;
        let about = json!({
            "file": entry.file, "name": name, "async": *style == Style::Async, "takes": takes,
        });
        frame::push(&mut self.buffer, &json!({ "def": entry.id, "function": about }));
        let at = entry.id as usize;
        let length = self.functions.len().max(at + 1);
        self.functions.resize(length, false);
        self.functions[at] = true;
    }

    /// Puts down frames that are made already.
    pub(super) fn put(&mut self, frames: &[u8]) {
        self.buffer.extend_from_slice(frames);
    }

    /// Takes back what was put down behind this place.
    pub(super) fn take_back(&mut self, start: usize) {
        self.buffer.truncate(start);
    }

    /// Sends what was put down.
    ///
    /// # Cancel safety
    ///
    /// What was not sent yet when the future is dropped is sent by the next call.
    pub(super) async fn flush(&mut self) -> Result<(), NotSent> {
        while self.sent < self.buffer.len() {
            match self.pipe.write(&self.buffer[self.sent..]).await {
                Ok(0) | Err(_) => return Err(NotSent),
                Ok(count) => self.sent += count,
            }
        }
        self.sent = 0;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        Ok(())
    }
}
