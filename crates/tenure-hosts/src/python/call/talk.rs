//! What a function says and wants between its begin and its end.

use super::flight::InFlight;
use super::{Given, Invocation, Rest, Said};
use crate::Role;
use crate::payload::{Response, Stage};
use crate::python::frame::Incoming;
use crate::python::lane::{Blocked, Lane};
use crate::python::worker::Worker;
use crate::python::{PythonError, Style, lock};
use crate::reply::{Decision, Expect, Reply};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Mutex;
use tenure_core::event::LogStream;
use tenure_core::hook::{FaultKind, HookError, Point};
use tenure_core::memory::{Found, MemoryHandle, Search};
use tenure_core::model::ModelRequest;
use tenure_core::{BoxFuture, Error};
use tokio::sync::oneshot;

/// Where the result of a step goes, with the number of the question that asks to have it recorded.
type StepDone = oneshot::Sender<Result<(Value, u64), Error>>;

/// What is known in the middle of a call.
pub(super) struct Talk<'a> {
    call: &'a Invocation<'a>,
    lane: &'a Lane,
    worker: &'a Worker,
    given: Mutex<HashMap<u64, Result<Given, Error>>>,
    steps: Mutex<HashMap<u64, StepDone>>,
    /// What it changed on its way and may not. It is told, and fails with this in the end.
    forbidden: Mutex<Option<Error>>,
}

impl<'a> Talk<'a> {
    pub(super) fn new(call: &'a Invocation<'a>, flight: &'a InFlight<'_>) -> Self {
        Self {
            call,
            lane: flight.lane(),
            worker: flight.worker(),
            given: Mutex::default(),
            steps: Mutex::default(),
            forbidden: Mutex::default(),
        }
    }

    /// Hears what a function wants on its way, and gives the future that sees to it.
    pub(super) fn hear(&self, mut frame: Incoming) -> Option<BoxFuture<'_, ()>> {
        let site = self.call.site;
        if let Some(line) = frame.log {
            let stream = match frame.stream.as_deref() {
                Some("stdout") => LogStream::Stdout,
                Some("stderr") => LogStream::Stderr,
                _ => LogStream::Host,
            };
            site.cx().log(self.call.hook, stream, &line);
            return None;
        }
        if let Some(value) = frame.secret {
            site.cx().secret(&value);
            return None;
        }
        if frame.shutdown {
            site.cx().request_shutdown();
            return None;
        }
        let q = frame.q.unwrap_or_default();
        if let Err(error) = self.write(&mut frame) {
            let answer = refusal(q, &error);
            lock(&self.forbidden).get_or_insert(error);
            return Some(self.reply(answer));
        }
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
            return failed.then(|| self.reply(json!({ "q": q })));
        }
        Some(if let Some(changed) = frame.next {
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
        } else if let (Some(message), Some(to)) = (frame.send, frame.to) {
            Box::pin(self.speak(q, message, to))
        } else if let Some(key) = frame.recall {
            let found = self.memory().map(|memory| memory.get(&key));
            self.reply(answered(q, found.map(|found| json!(found))))
        } else if let Some((key, value)) = frame.remember {
            let kept = self.memory().and_then(|memory| memory.update(key, value));
            self.reply(answered(q, kept.map(|()| Value::Null)))
        } else if let Some((words, limit)) = frame.search {
            Box::pin(self.search(q, words, limit))
        } else if frame.history {
            let messages: Vec<_> = site.cx().agent().history().iter().cloned().collect();
            self.reply(json!({ "q": q, "v": messages }))
        } else {
            self.reply(json!({ "q": q }))
        })
    }

    /// Says, until the result is dropped, that the function keeps its thread while it waits.
    fn block(&self) -> Option<Blocked<'a>> {
        (self.call.entry.function.style == Style::Sync).then(|| self.lane.block())
    }

    fn reply(&self, answer: Value) -> BoxFuture<'_, ()> {
        Box::pin(self.lane.answer(answer))
    }

    fn memory(&self) -> Result<MemoryHandle<'_>, Error> {
        self.call.site.cx().memory().ok_or_else(|| Error::invalid("the agent has no memory"))
    }

    async fn search(&self, q: u64, words: String, limit: usize) {
        let found = match self.memory() {
            Ok(memory) => memory.search(&Search::text(words), limit).await,
            Err(error) => Err(error),
        };
        let found = found.map(|found| {
            let told = |it: &Found| {
                json!({ "key": it.key, "value": it.value, "excerpt": it.excerpt, "score": it.score })
            };
            Value::Array(found.iter().map(told).collect())
        });
        self.lane.answer(answered(q, found)).await;
    }

    /// Has another agent answer; one that is busy answers on a fork.
    async fn speak(&self, q: u64, message: String, to: String) {
        let _blocked = self.block();
        let said = match self.call.site.cx().get_agent(&to) {
            Some(agent) => agent.handle(message).await,
            None => Err(Error::invalid(format!("there is no agent `{to}`"))),
        };
        let said = said.map(|report| Value::from(report.output()));
        self.lane.answer(answered(q, said)).await;
    }

    async fn ask(&self, q: u64, ask: Value) {
        let _blocked = self.block();
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
                Err(error) => self.refused(q, error),
            },
        };
        self.lane.answer(answer).await;
    }

    /// What the function is told that asked in vain. One that was cancelled, or whose run is parked,
    /// may only pass that on, and then it is no failure of its own.
    fn refused(&self, q: u64, error: Error) -> Value {
        let answer = refusal(q, &error);
        if error.is_cancelled() || error.parks() {
            lock(&self.given).insert(q, Err(error));
        }
        answer
    }

    async fn next(&self, q: u64, changed: Value) {
        let _blocked = self.block();
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
                    Err(wrong) => return self.lane.answer(misuse(q, &wrong)).await,
                }
            }
        };
        let answer = match &result {
            Ok(Given::Tool(output)) => json!({ "q": q, "v": output }),
            Ok(Given::Model(response)) => json!({ "q": q, "v": Response::of(response) }),
            Err(error) => refusal(q, error),
        };
        lock(&self.given).insert(q, result);
        self.lane.answer(answer).await;
    }

    /// A step: the worker is told to run it, or is told what was recorded.
    async fn step(&self, q: u64, name: String) {
        let _blocked = self.block();
        let (give, take) = oneshot::channel();
        lock(&self.steps).insert(q, give);
        let mut acknowledge = None;
        let effect = async {
            self.lane.answer(json!({ "q": q, "run": true })).await;
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
            (Some(Some(question)), Err(error)) => self.refused(question, error),
            (None, Ok(value)) => json!({ "q": q, "v": value }),
            (None, Err(error)) => self.refused(q, error),
        };
        self.lane.answer(answer).await;
    }

    /// Does what a frame changes.
    fn write(&self, frame: &mut Incoming) -> Result<(), Error> {
        let site = self.call.site;
        let (variables, gone) = (frame.variables.take(), frame.gone.take());
        if let (Some(chat), Some(patch)) = (site.cx().chat_id(), frame.patch) {
            let (mut variables, mut gone) =
                (variables.unwrap_or_default(), gone.unwrap_or_default());
            let keys: Vec<_> = variables.keys().chain(&gone).cloned().collect();
            self.worker.decide(chat, patch, keys, |is_newest| {
                variables.retain(|key, _| is_newest(key));
                gone.retain(|key| is_newest(key));
                site.write_variables(variables, gone)
            })?;
        }
        if let Some(state) = frame.state.take() {
            site.write_state(state)?;
        }
        Ok(())
    }

    /// How the call ended, with what it changed done.
    pub(super) fn end(&self, mut frame: Incoming) -> Result<Said, HookError> {
        if let Some(error) = lock(&self.forbidden).take() {
            return Err(error.into());
        }
        if let Some(message) = frame.e {
            for line in frame.trace.iter().flat_map(|trace| trace.lines()) {
                self.call.site.cx().log(self.call.hook, LogStream::Stderr, line);
            }
            if let Some(q) = frame.passed
                && let Some(Err(error)) = lock(&self.given).remove(&q)
            {
                return Err(error.into());
            }
            let message = match self.call.host.environment().hint(&message) {
                Some(hint) => format!("{message}; {hint}"),
                None => message,
            };
            return Err(PythonError { message, traceback: frame.trace }.into());
        }
        if let Some(what) = frame.bad {
            return Err(HookError::of_kind(FaultKind::BadReply, what));
        }
        self.write(&mut frame)?;
        if let Some(q) = frame.kept {
            return match lock(&self.given).remove(&q) {
                Some(Ok(given)) => Ok(Said::Given(Box::new(given))),
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

/// The answer to a question that has a value, or none.
fn answered(q: u64, value: Result<Value, Error>) -> Value {
    match value {
        Ok(value) => json!({ "q": q, "v": value }),
        Err(error) => refusal(q, &error),
    }
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
