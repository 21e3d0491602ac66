//! The points of a turn, as sequences.

use super::input::Input;
use super::report::TurnEnd;
use super::turn::{Continued, Turn};
use crate::BoxFuture;
use crate::content::Content;
use crate::context::{Cx, TurnCx};
use crate::error::Error;
use crate::hook::{After, Entry, Flow, HookAction, HookError, JumpTarget, Point};
use crate::kernel::{Carried, Sequence};
use crate::message::Message;
use crate::model::{ModelParams, ModelRequest, ModelResponse};
use crate::step::{decode, fingerprint};
use crate::sync::atomic::Ordering;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::ControlFlow;

fn flow(finish: &mut Option<Content>, decision: Flow) -> ControlFlow<()> {
    match decision {
        Flow::Continue => ControlFlow::Continue(()),
        Flow::Finish(output) => {
            *finish = Some(output);
            ControlFlow::Break(())
        }
    }
}

pub(super) struct BeforeAgent<'w> {
    pub(super) turn: &'w Turn,
    pub(super) input: &'w mut Input,
    pub(super) finish: Option<Content>,
    pub(super) place: usize,
    /// What an observer gets to see, and to change in vain.
    pub(super) scratch: Option<Input>,
}

#[derive(Serialize, Deserialize)]
struct BeganRecord {
    flow: Flow,
    input: Input,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    carried: Option<Value>,
}

impl BeforeAgent<'_> {
    /// Shows an observer a copy.
    #[cold]
    fn show<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<Flow, HookError>> {
        let input = self.scratch.insert(self.input.clone());
        entry.hook.before_agent(TurnCx::new(cx), input)
    }
}

impl Sequence for BeforeAgent<'_> {
    const POINT: Point = Point::BeforeAgent;
    type Out = Flow;

    #[inline]
    fn says_nothing(out: &Flow) -> bool {
        matches!(out, Flow::Continue)
    }

    #[inline]
    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<Flow, HookError>> {
        if entry.observes {
            return self.show(entry, cx);
        }
        entry.hook.before_agent(TurnCx::new(cx), self.input)
    }

    #[inline]
    fn accept(&mut self, entry: &Entry, out: Flow) -> ControlFlow<()> {
        if entry.observes { ControlFlow::Continue(()) } else { flow(&mut self.finish, out) }
    }

    #[inline]
    fn entered(&mut self, place: usize) {
        self.place = place;
        self.turn.entered.store(place + 1, Ordering::Release);
    }

    fn fingerprint(&self) -> u64 {
        fingerprint(self.input)
    }

    fn record(&self, out: &Flow) -> Value {
        let carried = self.turn.data.carried_at(self.place);
        let record = BeganRecord { flow: out.clone(), input: self.input.clone(), carried };
        serde_json::to_value(record).unwrap_or_default()
    }

    fn replay(&mut self, record: Value) -> Result<Flow, Error> {
        let BeganRecord { flow, input, carried } = decode(record)?;
        *self.input = input;
        if let Some(value) = carried {
            self.turn.data.carried.lock().push((self.place, Carried::Recorded(value)));
        }
        Ok(flow)
    }
}

pub(super) struct BeforeModel<'w> {
    pub(super) request: &'w mut ModelRequest,
    pub(super) finish: Option<Content>,
    pub(super) scratch: Option<Box<ModelRequest>>,
}

#[derive(Serialize, Deserialize)]
struct RequestRecord {
    flow: Flow,
    instruction: Option<String>,
    params: ModelParams,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Message>>,
    persist: bool,
}

impl BeforeModel<'_> {
    /// Shows an observer a copy.
    #[cold]
    fn show<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<Flow, HookError>> {
        let request = self.scratch.insert(Box::new(self.request.clone()));
        entry.hook.before_model(TurnCx::new(cx), request)
    }
}

impl Sequence for BeforeModel<'_> {
    const POINT: Point = Point::BeforeModel;
    type Out = Flow;

    #[inline]
    fn says_nothing(out: &Flow) -> bool {
        matches!(out, Flow::Continue)
    }

    #[inline]
    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<Flow, HookError>> {
        if entry.observes {
            return self.show(entry, cx);
        }
        entry.hook.before_model(TurnCx::new(cx), self.request)
    }

    #[inline]
    fn accept(&mut self, entry: &Entry, out: Flow) -> ControlFlow<()> {
        if entry.observes { ControlFlow::Continue(()) } else { flow(&mut self.finish, out) }
    }

    fn record(&self, out: &Flow) -> Value {
        let request = &*self.request;
        let edited = request.messages.is_edited();
        serde_json::to_value(RequestRecord {
            flow: out.clone(),
            instruction: request.instruction.as_deref().map(str::to_owned),
            params: request.params.clone(),
            messages: edited.then(|| request.messages.iter().cloned().collect()),
            persist: request.persisted(),
        })
        .unwrap_or_default()
    }

    fn replay(&mut self, record: Value) -> Result<Flow, Error> {
        let record: RequestRecord = decode(record)?;
        self.request.instruction = record.instruction.map(Into::into);
        self.request.params = record.params;
        if let Some(messages) = record.messages {
            *self.request.messages.edit() = messages;
        }
        if record.persist {
            self.request.persist();
        }
        Ok(record.flow)
    }
}

/// What the `after_model` hooks decided together.
#[derive(Default)]
pub(super) struct Decided {
    pub(super) reject: Option<String>,
    pub(super) jump: Option<JumpTarget>,
    pub(super) approved: bool,
    /// What the conversation before the response is to be.
    pub(super) rewritten: Option<Vec<Message>>,
}

pub(super) struct AfterModel<'w> {
    pub(super) response: &'w mut ModelResponse,
    pub(super) decided: Decided,
}

impl Sequence for AfterModel<'_> {
    const POINT: Point = Point::AfterModel;
    type Out = HookAction;

    #[inline]
    fn says_nothing(out: &HookAction) -> bool {
        matches!(out, HookAction::Continue)
    }

    #[inline]
    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<HookAction, HookError>> {
        entry.hook.after_model(TurnCx::new(cx), self.response)
    }

    /// Every entry is called, whatever another decided; they are called from the inside out, so of
    /// several jumps the last one is the outermost.
    #[inline]
    fn accept(&mut self, entry: &Entry, out: HookAction) -> ControlFlow<()> {
        if !entry.observes {
            match out {
                HookAction::Continue => {}
                HookAction::Approve => self.decided.approved = true,
                HookAction::Reject(reason) => {
                    self.decided.reject.get_or_insert(reason);
                }
                // Whoever approved has seen something else.
                HookAction::Modify(response) => {
                    *self.response = *response;
                    self.decided.approved = false;
                }
                HookAction::Rewrite { messages, response } => {
                    *self.response = *response;
                    self.decided.approved = false;
                    self.decided.rewritten = Some(messages);
                }
                HookAction::JumpTo(target) => self.decided.jump = Some(target),
            }
        }
        ControlFlow::Continue(())
    }

    fn fingerprint(&self) -> u64 {
        fingerprint(&*self.response)
    }

    fn record(&self, out: &HookAction) -> Value {
        serde_json::to_value(out).unwrap_or_default()
    }

    fn replay(&mut self, record: Value) -> Result<HookAction, Error> {
        decode(record)
    }
}

pub(super) struct AfterAgent<'w> {
    pub(super) end: TurnEnd<'w>,
    pub(super) continued: &'w mut Continued,
    /// How many entries the turn has passed.
    pub(super) entered: usize,
    /// Entries from this place on have ended already.
    pub(super) below: usize,
    pub(super) place: usize,
    pub(super) scratch: Option<Content>,
}

#[derive(Serialize, Deserialize)]
struct EndRecord {
    after: After,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<Content>,
}

impl Sequence for AfterAgent<'_> {
    const POINT: Point = Point::AfterAgent;
    type Out = After;

    #[inline]
    fn says_nothing(out: &After) -> bool {
        matches!(out, After::Done)
    }

    #[inline]
    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<After, HookError>> {
        if !entry.observes {
            return entry.hook.after_agent(TurnCx::new(cx), &mut self.end);
        }
        self.scratch.clone_from(self.end.output);
        let mut end = TurnEnd { output: &mut self.scratch, ..self.end };
        Box::pin(async move { entry.hook.after_agent(TurnCx::new(cx), &mut end).await })
    }

    fn accept(&mut self, entry: &Entry, out: After) -> ControlFlow<()> {
        match out {
            After::Continue(message)
                if self.end.outcome.is_ok()
                    && *self.continued == Continued::No
                    && !entry.observes =>
            {
                // This entry and those outside it end later.
                *self.continued = Continued::Asked(message, self.place + 1);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn skips(&self, place: usize, entry: &Entry) -> bool {
        place >= self.below || !entry.was_entered(place, self.entered, Point::BeforeAgent)
    }

    fn fingerprint(&self) -> u64 {
        fingerprint(&self.end.outcome)
    }

    fn record(&self, out: &After) -> Value {
        let record = EndRecord { after: out.clone(), output: self.end.output.clone() };
        serde_json::to_value(record).unwrap_or_default()
    }

    fn replay(&mut self, record: Value) -> Result<After, Error> {
        let EndRecord { after, output } = decode(record)?;
        *self.end.output = output;
        Ok(after)
    }

    fn entered(&mut self, place: usize) {
        self.place = place;
    }
}
