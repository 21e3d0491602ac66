//! One call of a function: what it is told, what it wants on the way, and how it ended.
//!
//! Most calls end without wanting anything. What the others need is boxed, so that it costs those
//! nothing.

mod flight;
mod talk;

use super::frame::{self, Heard, Incoming};
use super::host::Entry;
use super::outbox::Outbox;
use super::worker::NotSent;
use super::{PythonHost, Style, brief};
use crate::payload::At;
use crate::site::Site;
use flight::InFlight;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use talk::Talk;
use tenure_core::hook::{FaultKind, HookError};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{BoxFuture, NextModel, NextTool};

/// A function that took no longer than this may run in the worker's main thread.
const FAST: Duration = Duration::from_millis(5);
/// A frame up to this size always fits into the pipe of a worker that reads.
const SMALL: usize = 32 << 10;
/// How often a call is given to another worker because one did not take it.
const TRIES: u32 = 3;

/// What `next` leads to.
#[derive(Clone, Copy)]
pub(super) enum Rest<'a> {
    Nothing,
    Model(NextModel<'a>, &'a ModelRequest),
    Tool(NextTool<'a>, &'a ToolRequest),
}

/// What a `next` gave.
#[derive(Clone)]
pub(super) enum Given {
    Model(ModelResponse),
    Tool(ToolOutput),
}

/// How a call ended, if it ended well.
pub(super) enum Said {
    /// It decided this; `None` is what a function returns that returns nothing.
    Decision(Option<Value>),
    /// A tool's result.
    Text(String),
    /// What `next` gave it, as it was.
    Given(Box<Given>),
}

/// What a function is called with.
#[derive(Clone, Copy)]
pub(super) enum Told<'a> {
    /// A hook, at its point.
    Hook(&'a At<'a>),
    /// A tool, with its arguments.
    Tool(Arguments<'a>),
    /// A tool, with its arguments and with a context.
    ToolInContext(Arguments<'a>),
    /// A lifecycle tool, at its point.
    Lifecycle(&'a At<'a>),
    /// A message hook, with what it is about.
    Message(&'a Value),
}

/// The arguments of a tool, on their way to a worker.
#[derive(Clone, Copy)]
pub(super) enum Arguments<'a> {
    Value(&'a Value),
    /// JSON that no value holds as it is.
    Json(&'a str),
}

/// A call to be made.
pub(super) struct Invocation<'a> {
    pub(super) host: &'a PythonHost,
    pub(super) entry: &'a Entry,
    pub(super) site: Site<'a>,
    /// The name that log lines carry.
    pub(super) hook: &'a str,
    pub(super) rest: Rest<'a>,
}

/// Why a call was not sent.
enum Unsent {
    TooLong(usize),
    NotTaken,
}

impl From<NotSent> for Unsent {
    fn from(_: NotSent) -> Self {
        Self::NotTaken
    }
}

impl Invocation<'_> {
    /// Makes the call.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped because the turn was cancelled, the function is cancelled and the
    /// worker is killed only if that does not end it; else the worker is killed at once.
    pub(super) async fn run(&self, told: Told<'_>) -> Result<Said, HookError> {
        let mut tries = 0;
        loop {
            let worker = match self.host.sitting(self.site.cx())? {
                Some(worker) => worker,
                None => Box::pin(self.host.seated(self.site.cx())).await?,
            };
            let call = InFlight::new(self, &worker);
            // Only a plain function is the faster for having been fast.
            let is_timed = self.entry.function.style == Style::Sync;
            let started = is_timed.then(Instant::now);
            let early = match self.send(&call, told).await {
                Ok(early) => early,
                Err(Unsent::TooLong(size)) => {
                    call.done();
                    return Err(too_long(size));
                }
                Err(Unsent::NotTaken) => {
                    call.done();
                    worker.abandon("the worker took no more calls", self.host.tracker());
                    tries += 1;
                    // It was never called, so another worker may be.
                    if tries < TRIES {
                        continue;
                    }
                    return Err(worker.end().map_or_else(not_taken, |end| end.fault()));
                }
            };
            let first = match early.is_empty() {
                true => Some(call.worker.receive(call.id).await?),
                false => None,
            };
            let said = match first {
                Some(Heard::End(_)) => Ok(Said::Decision(None)),
                first => Box::pin(self.converse(&call, first, early)).await,
            };
            if let Some(started) = started {
                self.entry.is_fast.store(started.elapsed() < FAST, Ordering::Relaxed);
            }
            call.done();
            return said;
        }
    }

    /// Sends the call, and gives what the worker had to say meanwhile.
    async fn send(&self, call: &InFlight<'_>, told: Told<'_>) -> Result<VecDeque<Heard>, Unsent> {
        let mut outbox = call.worker.outbox().await?;
        let cx = self.site.cx();
        let instance = (cx.instance_id(), || brief::about(cx));
        let is_inline = self.may_be_inline() && call.worker.desk().is_alone();
        let (start, size) = outbox.compose(call.id, self.entry, instance, |buffer| {
            if is_inline {
                buffer.extend_from_slice(b",\"inline\":true");
            }
            self.tell(told, buffer);
        });
        if size <= SMALL {
            outbox.flush().await?;
            return Ok(VecDeque::new());
        }
        if size > frame::MOST_FRAME {
            outbox.take_back(start);
            outbox.flush().await?;
            return Err(Unsent::TooLong(size));
        }
        Box::pin(self.send_large(call, &mut outbox)).await
    }

    /// While a large frame is on its way the worker may have something to say, and does not read
    /// before it has said it.
    async fn send_large(
        &self,
        call: &InFlight<'_>,
        outbox: &mut Outbox,
    ) -> Result<VecDeque<Heard>, Unsent> {
        let mut early = VecDeque::new();
        let mut sending = pin!(outbox.flush());
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => return Ok(sent.map(|()| early)?),
                frame = call.worker.receive(call.id) => match frame {
                    Ok(frame) => early.push_back(frame),
                    Err(_) => return Err(Unsent::NotTaken),
                },
            }
        }
    }

    fn may_be_inline(&self) -> bool {
        let function = &self.entry.function;
        function.style == Style::Sync
            && !function.waits
            && self.entry.is_fast.load(Ordering::Relaxed)
            && matches!(self.rest, Rest::Nothing)
    }

    fn tell(&self, told: Told<'_>, buffer: &mut Vec<u8>) {
        let called = match (told, self.site) {
            (Told::ToolInContext(_), Site::Tool(cx)) => At::call(&cx),
            _ => At::Plain {},
        };
        let (given, at): (Option<(&[u8], Arguments<'_>)>, _) = match told {
            Told::Hook(at) => (None, Some(at)),
            Told::Tool(arguments) => (Some((b",\"tool\":", arguments)), None),
            Told::ToolInContext(arguments) => (Some((b",\"tool\":", arguments)), Some(&called)),
            Told::Lifecycle(at) => (Some((b",\"lifecycle\":", Arguments::Json("true"))), Some(at)),
            Told::Message(given) => {
                (Some((b",\"message\":", Arguments::Value(given))), Some(&At::Plain {}))
            }
        };
        if let Some((key, given)) = given {
            buffer.extend_from_slice(key);
            match given {
                Arguments::Json(json) => buffer.extend_from_slice(json.as_bytes()),
                // A value of JSON can always be written into memory.
                Arguments::Value(value) => {
                    let _ = serde_json::to_writer(&mut *buffer, value);
                }
            }
        }
        buffer.extend_from_slice(b",\"p\":");
        match at {
            Some(at) => brief::encode(self.site.cx(), at, buffer),
            None => buffer.extend_from_slice(b"{}"),
        }
    }

    /// Hears the function out, and sees to what it wants.
    async fn converse(
        &self,
        call: &InFlight<'_>,
        mut first: Option<Heard>,
        mut early: VecDeque<Heard>,
    ) -> Result<Said, HookError> {
        let talk = Talk::new(self, call.worker);
        let mut answers: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        loop {
            let frame = match first.take().or_else(|| early.pop_front()) {
                Some(frame) => frame,
                None if answers.is_empty() => call.worker.receive(call.id).await?,
                None => tokio::select! {
                    biased;
                    frame = call.worker.receive(call.id) => frame?,
                    _ = answers.next() => continue,
                },
            };
            let frame = match frame {
                Heard::End(_) => Incoming::default(),
                Heard::Said(frame) => *frame,
            };
            if frame.is_end() {
                return talk.end(frame);
            }
            if let Some(answer) = talk.hear(frame) {
                answers.push(answer);
            }
        }
    }
}

#[cold]
fn too_long(size: usize) -> HookError {
    HookError::new(format!("the call is {size} bytes, and {} is the most", frame::MOST_FRAME))
}

#[cold]
fn not_taken() -> HookError {
    HookError::of_kind(FaultKind::NotStarted, "no worker took the call")
}
