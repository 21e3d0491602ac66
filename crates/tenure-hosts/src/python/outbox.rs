//! What goes to a worker.

use super::folding::Folding;
use super::host::Entry;
use super::worker::NotSent;
use super::{PythonFile, PythonFunction, Style, frame};
use serde_json::{Value, json};
use std::collections::HashMap;
use tenure_core::InstanceId;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;

/// What the buffer may keep when it is empty again.
const KEPT: usize = 256 << 10;

/// The pipe to a worker, and what has been told through it.
pub(super) struct Outbox {
    pipe: ChildStdin,
    /// Whether a frame was begun and not ended: nothing can follow it.
    is_torn: bool,
    /// Frames that are to be sent.
    buffer: Vec<u8>,
    known: Known,
}

/// What a worker has been told about. The numbers of files and functions are small.
#[derive(Default)]
struct Known {
    files: Vec<bool>,
    functions: Vec<bool>,
    instances: HashMap<InstanceId, u32, Folding>,
    last_instance: u32,
}

/// Whether this is the first time.
fn is_news(known: &mut Vec<bool>, number: u32) -> bool {
    let at = number as usize;
    if known.len() <= at {
        known.resize(at + 1, false);
    }
    !std::mem::replace(&mut known[at], true)
}

impl Outbox {
    pub(super) fn new(pipe: ChildStdin) -> Self {
        Self { pipe, is_torn: false, buffer: Vec::with_capacity(1 << 10), known: Known::default() }
    }

    /// Puts down the frame of a call, and before it whatever the worker has not heard of: the
    /// function, its file, and the instance, which `about` tells. `body` writes what the call
    /// holds behind its numbers. Gives where the frame of the call begins, and how long it is.
    pub(super) fn compose(
        &mut self,
        id: u64,
        entry: &Entry,
        instance: (InstanceId, impl FnOnce() -> Value),
        body: impl FnOnce(&mut Vec<u8>),
    ) -> (usize, usize) {
        self.buffer.clear();
        if is_news(&mut self.known.functions, entry.id) {
            self.introduce(entry);
        }
        let number = match self.known.instances.get(&instance.0) {
            Some(number) => *number,
            None => {
                self.known.last_instance += 1;
                let number = self.known.last_instance;
                self.known.instances.insert(instance.0, number);
                let about = json!({ "about": number, "instance": instance.1() });
                frame::push(&mut self.buffer, &about);
                number
            }
        };
        let buffer = &mut self.buffer;
        let start = frame::open(buffer);
        buffer.extend_from_slice(b"{\"id\":");
        frame::number(buffer, id);
        buffer.extend_from_slice(b",\"fn\":");
        frame::number(buffer, entry.id.into());
        buffer.extend_from_slice(b",\"a\":");
        frame::number(buffer, number.into());
        body(buffer);
        buffer.push(b'}');
        frame::seal(buffer, start);
        (start, buffer.len() - start)
    }

    #[cold]
    fn introduce(&mut self, entry: &Entry) {
        let PythonFunction { file, name, style, takes, .. } = &entry.function;
        self.put_file((entry.file, file));
        let about = json!({
            "file": entry.file, "name": name, "async": *style == Style::Async, "takes": takes,
        });
        frame::push(&mut self.buffer, &json!({ "def": entry.id, "function": about }));
    }

    /// Puts down a file, unless the worker has it.
    pub(super) fn put_file(&mut self, (number, file): (u32, &PythonFile)) {
        if is_news(&mut self.known.files, number) {
            let path = file.path().to_string_lossy();
            let told = json!({ "file": number, "path": path, "source": &**file.source() });
            frame::push(&mut self.buffer, &told);
        }
    }

    /// Puts down that an instance has ended, if the worker knows it.
    pub(super) fn put_end_of(&mut self, instance: InstanceId) {
        if let Some(number) = self.known.instances.remove(&instance) {
            frame::push(&mut self.buffer, &json!({ "forget": number }));
        }
    }

    /// Puts down frames that are made already.
    pub(super) fn put(&mut self, frames: &[u8]) {
        self.buffer.extend_from_slice(frames);
    }

    /// Takes back what was put down behind this place.
    pub(super) fn take_back(&mut self, start: usize) {
        self.buffer.truncate(start);
    }

    /// Sends what was put down. Dropping the future in the middle of a frame tears it, and the
    /// worker is lost.
    pub(super) async fn flush(&mut self) -> Result<(), NotSent> {
        if self.is_torn {
            return Err(NotSent);
        }
        self.is_torn = true;
        self.pipe.write_all(&self.buffer).await.map_err(|_| NotSent)?;
        self.is_torn = false;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        Ok(())
    }
}
