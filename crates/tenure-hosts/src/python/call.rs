//! One call of a function: what it is told, what it wants on the way, and how it ended.

use super::brief;
use super::frame::{self, Incoming};
use super::host::Entry;
use super::site::Site;
use super::worker::{NotSent, Slot, Worker, lock};
use super::{PythonHost, Style};
use crate::Role;
use crate::payload::{Response, Stage};
use crate::reply::{Decision, Expect, Reply};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::Write as _;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_core::event::LogStream;
use tenure_core::hook::{FaultKind, HookError, Point};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{BoxFuture, Error, NextModel, NextTool};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A function that took no longer than this may run in the worker's main thread.
const FAST: Duration = Duration::from_millis(5);
/// A frame up to this size always fits into the pipe of a worker that reads.
const SMALL: usize = 32 << 10;

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
    Given(Given),
}

/// What a function is called with.
pub(super) enum Told<'a> {
    /// A hook's payload, as JSON.
    Payload(&'a [u8]),
    /// A tool's arguments, and the payload of its context.
    Arguments(&'a Value, &'a [u8]),
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
            let worker = self.host.worker(self.site.cx()).await?;
            let call = InFlight::new(self, &worker);
            let started = Instant::now();
            let frame = self.frame(call.id, &worker, &told);
            if frame.len() > frame::MOST_FRAME {
                call.done();
                let size = frame.len();
                return Err(HookError::new(format!(
                    "the call is {size} bytes, and {} is the most",
                    frame::MOST_FRAME
                )));
            }
            let mut early = VecDeque::new();
            let sent = self.send(&call, &frame, &mut early).await;
            if let Err(NotSent) = sent {
                call.done();
                worker.abandon("the worker took no more calls", self.host.tracker());
                tries += 1;
                // It was never called, so another worker may be.
                if tries <= 2 {
                    continue;
                }
                let gone = || HookError::of_kind(FaultKind::NotStarted, "no worker took the call");
                return Err(worker.end().map_or_else(gone, |end| end.fault()));
            }
            let said = self.converse(&call, early).await;
            self.entry.is_fast.store(started.elapsed() < FAST, Ordering::Relaxed);
            call.done();
            return said;
        }
    }

    fn frame(&self, id: u64, worker: &Worker, told: &Told<'_>) -> Vec<u8> {
        let function = &self.entry.function;
        let inline = function.style == Style::Sync
            && !function.waits
            && self.entry.is_fast.load(Ordering::Relaxed)
            && matches!(self.rest, Rest::Nothing)
            && worker.is_alone();
        let inline = if inline { ",\"inline\":true" } else { "" };
        let number = self.entry.id;
        let instance = worker.number(self.site.cx().instance_id());
        let payload = match told {
            Told::Payload(payload) | Told::Arguments(_, payload) => payload,
        };
        let mut frame = frame::open(payload.len() + 64);
        // Writing into memory does not fail.
        let _ = write!(frame, "{{\"id\":{id},\"fn\":{number},\"a\":{instance}{inline}");
        if let Told::Arguments(arguments, _) = told {
            frame.extend_from_slice(b",\"tool\":");
            let _ = serde_json::to_writer(&mut frame, arguments);
        }
        frame.extend_from_slice(b",\"p\":");
        frame.extend_from_slice(payload);
        frame.push(b'}');
        frame::seal(&mut frame);
        frame
    }

    /// Sends the call. While a large one is on its way the worker may have something to say, and
    /// does not read before it has said it.
    async fn send(
        &self,
        call: &InFlight<'_>,
        frame: &[u8],
        early: &mut VecDeque<Incoming>,
    ) -> Result<(), NotSent> {
        let Entry { function, id, file, .. } = self.entry;
        let cx = self.site.cx();
        let instance = (call.worker.number(cx.instance_id()), || brief::about(cx));
        let sending = call.worker.call((*file, &function.file), (*id, function), instance, frame);
        if frame.len() <= SMALL {
            return sending.await;
        }
        let mut sending = pin!(sending);
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => return sent,
                frame = call.worker.receive(call.id, &call.slot) => match frame {
                    Ok(frame) => early.push_back(frame),
                    Err(_) => return Err(NotSent),
                },
            }
        }
    }

    async fn converse(
        &self,
        call: &InFlight<'_>,
        mut early: VecDeque<Incoming>,
    ) -> Result<Said, HookError> {
        let talk = Talk {
            call: self,
            worker: call.worker,
            given: Mutex::default(),
            steps: Mutex::default(),
        };
        // Most calls want nothing on their way, and this is not for nothing.
        let mut answers: Option<FuturesUnordered<BoxFuture<'_, ()>>> = None;
        loop {
            let frame = match early.pop_front() {
                Some(frame) => frame,
                None => match answers.as_mut().filter(|answers| !answers.is_empty()) {
                    None => call.worker.receive(call.id, &call.slot).await?,
                    Some(answers) => tokio::select! {
                        biased;
                        frame = call.worker.receive(call.id, &call.slot) => frame?,
                        _ = answers.next() => continue,
                    },
                },
            };
            if frame.is_end() {
                return talk.end(frame);
            }
            if let Some(answer) = talk.hear(frame)? {
                answers.get_or_insert_default().push(answer);
            }
        }
    }
}

/// Where the result of a step goes, with the number of the question that asks to have it recorded.
type StepDone = oneshot::Sender<Result<(Value, u64), Error>>;

/// What is known in the middle of a call.
struct Talk<'a> {
    call: &'a Invocation<'a>,
    worker: &'a Worker,
    given: Mutex<HashMap<u64, Result<Given, Error>>>,
    steps: Mutex<HashMap<u64, StepDone>>,
}

impl Talk<'_> {
    /// Hears what a function wants on its way, and gives the future that sees to it.
    fn hear(&self, frame: Incoming) -> Result<Option<BoxFuture<'_, ()>>, HookError> {
        let site = self.call.site;
        if let Some(line) = frame.log {
            let stream = match frame.stream.as_deref() {
                Some("stdout") => LogStream::Stdout,
                Some("stderr") => LogStream::Stderr,
                _ => LogStream::Host,
            };
            site.cx().log(self.call.hook, stream, &line);
            return Ok(None);
        }
        if frame.shutdown {
            site.cx().request_shutdown();
            return Ok(None);
        }
        self.write(frame.state, frame.variables)?;
        let q = frame.q.unwrap_or_default();
        if let Some(of) = frame.of {
            let step = lock(&self.steps).remove(&of);
            let value = match (frame.step_value, frame.step_error) {
                (Some(value), _) => Ok((value, q)),
                (None, error) => Err(Error::invalid(error.unwrap_or_default())),
            };
            let failed = value.is_err();
            if let Some(step) = step {
                let _ = step.send(value);
            }
            return Ok(failed.then(|| self.reply(json!({ "q": q }))));
        }
        Ok(Some(if let Some(changed) = frame.next {
            Box::pin(self.next(q, changed))
        } else if let Some(ask) = frame.ask {
            Box::pin(self.ask(q, ask))
        } else if let Some(name) = frame.step {
            Box::pin(self.step(q, name))
        } else if let Some(name) = frame.agent {
            let found = site.cx().get_agent(&name).map(|agent| {
                json!({ "name": agent.name(), "instance_id": agent.id(), "state": agent.state() })
            });
            self.reply(json!({ "q": q, "v": found }))
        } else if frame.history {
            let messages: Vec<_> = site.cx().agent().history().iter().cloned().collect();
            self.reply(json!({ "q": q, "v": messages }))
        } else {
            self.reply(json!({ "q": q }))
        }))
    }

    fn reply(&self, answer: Value) -> BoxFuture<'_, ()> {
        Box::pin(self.worker.answer(answer))
    }

    async fn ask(&self, q: u64, ask: Value) {
        let expect =
            Expect::of_command(self.call.site.cx().hook_type(), Role::Other, Stage::Before);
        let asked = match Reply::of_value(json!({ "ask": ask }), &expect) {
            Ok(Reply { decision: Decision::Ask(ask), .. }) => Ok(ask),
            Ok(_) => Err("a question needs a prompt".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let answer = match asked {
            Err(wrong) => misuse(q, &wrong),
            Ok(ask) => match self.call.site.ask(ask).await {
                Ok(answer) => json!({ "q": q, "v": answer }),
                Err(error) => refusal(q, &error),
            },
        };
        self.worker.answer(answer).await;
    }

    async fn next(&self, q: u64, changed: Value) {
        let result = match self.call.rest {
            Rest::Nothing => Err(Error::invalid("there is no `next` here")),
            Rest::Tool(next, request) => {
                let mut request = request.clone();
                if !changed.is_null() {
                    request.arguments = changed;
                }
                next.call(&mut request).await.map(Given::Tool)
            }
            Rest::Model(next, request) => {
                let mut request = request.clone();
                match patched(changed, &mut request) {
                    Ok(()) => next.call(&mut request).await.map(Given::Model),
                    Err(wrong) => return self.worker.answer(misuse(q, &wrong)).await,
                }
            }
        };
        let answer = match &result {
            Ok(Given::Tool(output)) => json!({ "q": q, "v": output }),
            Ok(Given::Model(response)) => json!({ "q": q, "v": Response::of(response) }),
            Err(error) => refusal(q, error),
        };
        lock(&self.given).insert(q, result);
        self.worker.answer(answer).await;
    }

    /// A step: the worker is told to run it, or is told what was recorded.
    async fn step(&self, q: u64, name: String) {
        let (give, take) = oneshot::channel();
        lock(&self.steps).insert(q, give);
        let mut acknowledge = None;
        let effect = async {
            self.worker.answer(json!({ "q": q, "run": true })).await;
            let ran = take.await.unwrap_or_else(|_| Err(Error::invalid("the step was given up")));
            let (value, question) = ran.inspect_err(|_| acknowledge = Some(None))?;
            acknowledge = Some(Some(question));
            Ok(value)
        };
        let result = self.call.site.step(&name, effect).await;
        lock(&self.steps).remove(&q);
        let answer = match (acknowledge, result) {
            // It failed in the worker, which knows.
            (Some(None), _) => return,
            (Some(Some(question)), Ok(_)) => json!({ "q": question }),
            (Some(Some(question)), Err(error)) => refusal(question, &error),
            (None, Ok(value)) => json!({ "q": q, "v": value }),
            (None, Err(error)) => refusal(q, &error),
        };
        self.worker.answer(answer).await;
    }

    fn write(
        &self,
        state: Option<Map<String, Value>>,
        variables: Option<Map<String, Value>>,
    ) -> Result<(), HookError> {
        if let Some(variables) = variables {
            self.call.site.write_variables(variables)?;
        }
        if let Some(state) = state {
            self.call.site.write_state(state)?;
        }
        Ok(())
    }

    fn end(&self, frame: Incoming) -> Result<Said, HookError> {
        if let Some(message) = frame.e {
            for line in frame.trace.iter().flat_map(|trace| trace.lines()) {
                self.call.site.cx().log(self.call.hook, LogStream::Stderr, line);
            }
            if let Some(q) = frame.passed
                && let Some(Err(error)) = lock(&self.given).remove(&q)
            {
                return Err(error.into());
            }
            return Err(HookError::new(message));
        }
        if let Some(what) = frame.bad {
            return Err(HookError::of_kind(FaultKind::BadReply, what));
        }
        self.write(frame.state, frame.variables)?;
        if let Some(q) = frame.kept {
            return match lock(&self.given).remove(&q) {
                Some(Ok(given)) => Ok(Said::Given(given)),
                _ => Err(HookError::of_kind(
                    FaultKind::BadReply,
                    "it returned what the `next` of another call gave",
                )),
            };
        }
        Ok(match frame.text {
            Some(text) => Said::Text(text),
            None => Said::Decision(frame.r),
        })
    }
}

/// What a wrap changed in a request, as `before_model` may.
fn patched(changed: Value, request: &mut ModelRequest) -> Result<(), String> {
    if changed.as_object().is_none_or(Map::is_empty) {
        return Ok(());
    }
    let expect = Expect::of_python(Point::BeforeModel, Role::Other);
    let reply = Reply::of_value(json!({ "request": changed }), &expect)
        .map_err(|error| error.to_string())?;
    if let Some(patch) = reply.request {
        patch.apply(request);
    }
    Ok(())
}

fn refusal(q: u64, error: &Error) -> Value {
    let kind = if error.is_cancelled() { json!("cancelled") } else { json!(error.kind()) };
    let mut answer = json!({ "q": q, "err": { "kind": kind, "message": error.to_string() } });
    if kind == "invalid" {
        answer["err"]["usage"] = Value::Bool(true);
    }
    answer
}

fn misuse(q: u64, what: &str) -> Value {
    json!({ "q": q, "err": { "kind": "invalid", "message": what, "usage": true } })
}

/// A call between its begin and its end. Dropped before its end, it takes the function with it.
struct InFlight<'a> {
    invocation: &'a Invocation<'a>,
    worker: &'a Arc<Worker>,
    id: u64,
    slot: Arc<Slot>,
    is_done: bool,
}

impl<'a> InFlight<'a> {
    fn new(invocation: &'a Invocation<'a>, worker: &'a Arc<Worker>) -> Self {
        let (id, slot) = worker.open();
        Self { invocation, worker, id, slot, is_done: false }
    }

    fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let (worker, hook) = (self.worker, self.invocation.hook);
        let cx = self.invocation.site.cx();
        if let Some(lines) = worker.take_stray() {
            for line in lines {
                cx.log(hook, LogStream::Stderr, &line);
            }
        }
        if self.is_done || worker.is_gone() {
            return worker.close(self.id);
        }
        match Handle::try_current() {
            Ok(runtime) if cx.is_cancelled() => {
                let (worker, slot, id) = (worker.clone(), self.slot.clone(), self.id);
                let hook = hook.to_owned();
                let cancel = async move {
                    worker.cancel(id, &slot, &hook).await;
                    worker.close(id);
                };
                drop(self.invocation.host.tracker().spawn_on(cancel, &runtime));
            }
            _ => {
                worker.close(self.id);
                worker.kill(&format!("the worker was killed because `{hook}` took too long"));
            }
        }
    }
}
