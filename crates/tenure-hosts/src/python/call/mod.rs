//! One call of a function: what it is told, what it wants on the way, and how it ended.
//!
//! Most calls end without wanting anything. What the others need is boxed, so that it costs those
//! nothing.

mod enter;
mod flight;
mod talk;

use super::config::limit_text;
use super::frame::{self, Heard, Incoming};
use super::host::Entry;
use super::lane::{Gone, NotSent};
use super::outbox::{Begin, Outbox};
use super::seats::Chair;
use super::starts::Start;
use super::{PythonHost, Style, brief};
use crate::payload::At;
use crate::site::Site;
use enter::{Entered, off_the_clock};
use flight::InFlight;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, poll};
use serde_json::Value;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use talk::Talk;
use tenure_core::hook::{FaultKind, HookError, Point};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{BoxFuture, NextModel, NextTool};

/// A frame up to this size always fits into the pipe of a thread that reads.
const SMALL: usize = 32 << 10;
/// How often a call goes to another worker because one was gone before it began.
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
    /// An `on_start`, in a worker that took another's place.
    StartAgain,
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
    pub(super) entry: &'a Arc<Entry>,
    pub(super) site: Site<'a>,
    /// The name that log lines carry.
    pub(super) hook: &'a str,
    pub(super) rest: Rest<'a>,
    /// The worker of the family that it goes to.
    pub(super) chair: Chair,
}

/// Why a call was not sent.
enum Unsent {
    TooLong(usize),
    NotTaken,
    /// It was cut while it was on its way.
    Cut(HookError),
}

impl From<NotSent> for Unsent {
    fn from(_: NotSent) -> Self {
        Self::NotTaken
    }
}

/// How a call failed.
enum Failed {
    /// Its thread or its process is gone.
    Gone(Gone),
    /// It was cut before its function began, and has to be cancelled.
    Cut(HookError),
    /// It has ended otherwise, or never went out.
    Fault(HookError),
}

impl Failed {
    fn into_fault(self) -> HookError {
        match self {
            Self::Gone(gone) => gone.fault(),
            Self::Cut(fault) | Self::Fault(fault) => fault,
        }
    }
}

impl From<Gone> for Failed {
    fn from(gone: Gone) -> Self {
        Self::Gone(gone)
    }
}

impl From<HookError> for Failed {
    fn from(fault: HookError) -> Self {
        Self::Fault(fault)
    }
}

/// An event of a call whose function has not begun.
enum News {
    /// Its turn has come, and its module is loaded.
    Loads,
    /// Its function runs.
    Begun,
    /// It ended, and its function never began.
    Over(Heard),
}

/// Whether a call that failed because its worker was gone may be made once more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// It had not begun.
    Unbegun,
    /// It had, and another call took it down.
    Once,
    No,
}

impl Invocation<'_> {
    /// Makes the call. One that had not begun when its worker went away is made in the next; so is an end
    /// that another call took down with it.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the function is cancelled; if that does not end it, its thread is given up,
    /// and if the process does not answer either, that is killed.
    pub(super) async fn run(&self, told: Told<'_>) -> Result<Said, HookError> {
        if matches!(told, Told::Hook(_)) && self.site.cx().hook_type() == Point::OnStart {
            return Box::pin(self.run_start(told)).await;
        }
        self.run_on(told).await
    }

    /// Makes the call of an `on_start`, and notes it for a worker that takes this one's place.
    async fn run_start(&self, told: Told<'_>) -> Result<Said, HookError> {
        let instance = self.site.cx().instance_id();
        self.host.starts().attempt(instance, self.entry);
        let said = self.run_on(told).await?;
        let (entry, hook) = (self.entry.clone(), self.hook.into());
        self.host.starts().ran(instance, Start { entry, hook, chair: self.chair });
        Ok(said)
    }

    async fn run_on(&self, told: Told<'_>) -> Result<Said, HookError> {
        let mut tries = 0;
        let mut was_repeated = false;
        loop {
            tries += 1;
            let entered = match self.enter_now()? {
                Some(entered) => entered,
                None => Box::pin(self.enter()).await?,
            };
            match self.call(entered, told).await {
                (_, Ok(said)) => return Ok(said),
                (Again::Unbegun, Err(_)) if tries < TRIES => {}
                // A call that goes down with every worker is likely the one that takes them down.
                (Again::Once, Err(_)) if !was_repeated => was_repeated = true,
                (_, Err(failed)) => return Err(failed.into_fault()),
            }
        }
    }

    /// Makes the call on this lane.
    async fn call(&self, entered: Entered, told: Told<'_>) -> (Again, Result<Said, Failed>) {
        let call = InFlight::new(self, entered);
        let sent = {
            let mut sending = pin!(self.send(&call, told));
            match poll!(&mut sending) {
                Poll::Ready(sent) => sent,
                Poll::Pending => Box::pin(self.sent_later(sending)).await,
            }
        };
        let said = match sent {
            Ok((early, Begin::AtOnce)) => {
                call.set_begun();
                self.answered(&call, early).await
            }
            Ok((early, begin)) => Box::pin(self.answered_later(&call, begin, early)).await,
            Err(Unsent::TooLong(size)) => Err(Failed::Fault(too_long(size))),
            Err(Unsent::NotTaken) => Err(Failed::Gone(self.not_taken(&call))),
            Err(Unsent::Cut(fault)) => Err(Failed::Cut(fault)),
        };
        let again = match &said {
            Err(Failed::Gone(gone)) => self.may_be_repeated(&call, told, gone),
            _ => Again::No,
        };
        if !matches!(said, Err(Failed::Cut(_))) {
            call.done();
        }
        (again, said)
    }

    /// Waits until a call has been sent: what lies before it in the pipe has to be read first, which is not the
    /// function's own time.
    async fn sent_later<T>(
        &self,
        sending: impl Future<Output = Result<T, Unsent>>,
    ) -> Result<T, Unsent> {
        let cx = *self.site.cx();
        let limit = self.host.limits().queue;
        match off_the_clock(&cx, limit, async { Ok(sending.await) }).await {
            Some(sent) => sent.map_err(Unsent::Cut)?,
            None => Err(Unsent::Cut(self.no_thread())),
        }
    }

    /// Says why a call was not taken. A process that died is not known to be dead at once; it is given up, so
    /// that the next try goes to another.
    #[cold]
    fn not_taken(&self, call: &InFlight<'_>) -> Gone {
        let gone = call.lane().gone();
        if call.lane().is_open() {
            call.worker().abandon("the worker took no more calls", self.host.tracker());
        }
        gone
    }

    fn may_be_repeated(&self, call: &InFlight<'_>, told: Told<'_>, gone: &Gone) -> Again {
        if !call.has_begun() && !gone.begun.contains(&call.id) {
            return Again::Unbegun;
        }
        let is_culprit = match gone.culprit {
            Some(culprit) => culprit == call.id,
            None => call.lane().life().was_alone(),
        };
        let is_repeatable = matches!(told, Told::StartAgain) || self.site.cx().hook_type().is_end();
        if is_repeatable && !is_culprit { Again::Once } else { Again::No }
    }

    /// Hears a function out that runs.
    async fn answered(&self, call: &InFlight<'_>, early: VecDeque<Heard>) -> Result<Said, Failed> {
        let first = match early.is_empty() {
            true => Some(call.lane().receive(call.id).await?),
            false => None,
        };
        match first {
            Some(Heard::End(_, ending)) => Ok(Said::Decision(ending.decision())),
            first => Box::pin(self.converse(call, first, early)).await,
        }
    }

    /// Hears a function out whose module is loaded first, or which waits for others of its instance. Its own
    /// time begins with it.
    async fn answered_later(
        &self,
        call: &InFlight<'_>,
        begin: Begin,
        early: VecDeque<Heard>,
    ) -> Result<Said, Failed> {
        let cx = *self.site.cx();
        let limits = self.host.limits();
        let mut begin = begin;
        let mut early = early;
        let begun = loop {
            let (setting, limit, why) = match begin {
                Begin::Loads => ("load", limits.load, "its module takes too long to load"),
                _ => ("queue", limits.queue, "another function of the agent keeps its thread"),
            };
            let until_news = async { Ok(self.until_news(call, &mut early).await) };
            match off_the_clock(&cx, limit, until_news).await {
                Some(news) => match news.map_err(Failed::Cut)?? {
                    News::Loads => begin = Begin::Loads,
                    News::Begun => break None,
                    News::Over(end) => break Some(end),
                },
                None => {
                    let limit = limit_text(setting, limit);
                    let why = format!("`{}` did not begin within {limit}: {why}", self.hook);
                    return Err(Failed::Cut(HookError::of_kind(FaultKind::TimedOut, why)));
                }
            }
        };
        call.set_begun();
        if cx.hook_type() == Point::OnStart {
            self.host.starts().began(cx.instance_id(), self.entry);
        }
        match begun {
            Some(Heard::End(_, ending)) => Ok(Said::Decision(ending.decision())),
            first => Box::pin(self.converse(call, first, VecDeque::new())).await,
        }
    }

    /// Waits until something happens to a call whose function has not begun.
    async fn until_news(
        &self,
        call: &InFlight<'_>,
        early: &mut VecDeque<Heard>,
    ) -> Result<News, Gone> {
        let talk = Talk::new(self, call);
        loop {
            let heard = match early.pop_front() {
                Some(heard) => heard,
                None => call.lane().receive(call.id).await?,
            };
            match heard {
                Heard::Said(frame) if frame.began => return Ok(News::Begun),
                Heard::Said(frame) if frame.loads => return Ok(News::Loads),
                Heard::Said(frame) if !frame.is_end() => {
                    if let Some(answer) = talk.hear(*frame) {
                        answer.await;
                    }
                }
                end => return Ok(News::Over(end)),
            }
        }
    }

    /// Sends the call, and gives what the worker had to say at the same time.
    async fn send(
        &self,
        call: &InFlight<'_>,
        told: Told<'_>,
    ) -> Result<(VecDeque<Heard>, Begin), Unsent> {
        let mut outbox = call.lane().outbox().await?;
        let mut begin = Begin::AtOnce;
        if !outbox.knows(self.entry) {
            let is_alone = call.lane().desk().is_alone();
            begin = if is_alone { Begin::Loads } else { Begin::QueuedToLoad };
            call.worker().send_file(self.entry.file, &self.entry.function.file)?;
        } else if !call.lane().desk().is_alone() || self.queues_for_variables() {
            begin = Begin::Queued;
        }
        let (start, size) =
            outbox.compose(call.id, self.entry, begin, |buffer| self.tell(call, told, buffer));
        if size <= SMALL {
            outbox.flush().await?;
            return Ok((VecDeque::new(), begin));
        }
        if size > frame::MOST_FRAME {
            outbox.take_back(start);
            outbox.flush().await?;
            return Err(Unsent::TooLong(size));
        }
        let early = Box::pin(self.send_large(call, &mut outbox)).await?;
        Ok((early, begin))
    }

    /// Returns `true` if the function is one of those that run one after the other over all of a chat.
    fn queues_for_variables(&self) -> bool {
        let function = &self.entry.function;
        function.style == Style::Sync
            && self.site.cx().chat_id().is_some()
            && function.takes.iter().any(|name| &**name == "context_variables")
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
                frame = call.lane().receive(call.id) => match frame {
                    Ok(frame) => early.push_back(frame),
                    Err(_) => return Err(Unsent::NotTaken),
                },
            }
        }
    }

    fn tell(&self, call: &InFlight<'_>, told: Told<'_>, buffer: &mut Vec<u8>) {
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
            Told::StartAgain => (None, None),
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
        let cx = self.site.cx();
        let decided = call.worker().decided(cx.chat_id());
        match at {
            Some(at @ At::Shutdown { .. }) => {
                let started = self.host.starts().all_began(cx.instance_id());
                brief::encode(cx, at, &decided, Some(started), buffer);
            }
            Some(at) => brief::encode(cx, at, &decided, None, buffer),
            None if matches!(told, Told::StartAgain) => brief::encode_start_again(cx, buffer),
            None => buffer.extend_from_slice(b"{}"),
        }
    }

    /// Hears the function out, and sees to what it wants.
    async fn converse(
        &self,
        call: &InFlight<'_>,
        mut first: Option<Heard>,
        mut early: VecDeque<Heard>,
    ) -> Result<Said, Failed> {
        let talk = Talk::new(self, call);
        let mut answers: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        loop {
            let frame = match first.take().or_else(|| early.pop_front()) {
                Some(frame) => frame,
                None if answers.is_empty() => call.lane().receive(call.id).await?,
                None => tokio::select! {
                    biased;
                    frame = call.lane().receive(call.id) => frame?,
                    _ = answers.next() => continue,
                },
            };
            let frame = match frame {
                Heard::End(_, ending) => Incoming { r: ending.decision(), ..Incoming::default() },
                Heard::Said(frame) => *frame,
            };
            if frame.is_end() {
                return Ok(talk.end(frame)?);
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
