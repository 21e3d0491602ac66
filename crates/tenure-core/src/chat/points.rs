//! The points of a chat, as sequences.

use super::ChatEnd;
use crate::BoxFuture;
use crate::content::Content;
use crate::context::{ChatCx, Cx};
use crate::error::Error;
use crate::hook::{Entry, Flow, HookError, Point};
use crate::kernel::{Carried, ScopeData, Sequence};
use crate::step::{decode, encode};
use crate::sync::atomic::{AtomicUsize, Ordering};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::ControlFlow;

pub(super) struct BeforeChat<'a> {
    pub(super) entered: &'a AtomicUsize,
    pub(super) finish: Option<Content>,
    pub(super) data: &'a ScopeData,
    pub(super) place: usize,
}

/// What a `before_chat` hook decided, and what it left for its own end.
#[derive(Serialize, Deserialize)]
struct BeganRecord {
    flow: Flow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    carried: Option<Value>,
}

impl Sequence for BeforeChat<'_> {
    const POINT: Point = Point::BeforeChat;
    type Out = Flow;

    #[inline]
    fn says_nothing(out: &Flow) -> bool {
        matches!(out, Flow::Continue)
    }

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<Flow, HookError>> {
        entry.hook.before_chat(ChatCx::new(cx))
    }

    fn accept(&mut self, entry: &Entry, out: Flow) -> ControlFlow<()> {
        match out {
            Flow::Finish(output) if !entry.observes => {
                self.finish = Some(output);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn entered(&mut self, place: usize) {
        self.place = place;
        self.entered.store(place + 1, Ordering::Release);
    }

    fn record(&self, out: &Flow) -> Value {
        let carried = self.data.carried_at(self.place);
        encode(&BeganRecord { flow: out.clone(), carried }).unwrap_or_default()
    }

    fn replay(&mut self, record: Value) -> Result<Flow, Error> {
        let BeganRecord { flow, carried } = decode(record)?;
        if let Some(value) = carried {
            self.data.carried.lock().push((self.place, Carried::Recorded(value)));
        }
        Ok(flow)
    }
}

pub(super) struct AfterChat<'e> {
    pub(super) end: &'e ChatEnd,
    pub(super) entered: usize,
}

impl Sequence for AfterChat<'_> {
    const POINT: Point = Point::AfterChat;
    type Out = ();

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        entry.hook.after_chat(ChatCx::new(cx), self.end)
    }

    fn skips(&self, place: usize, entry: &Entry) -> bool {
        !entry.was_entered(place, self.entered, Point::BeforeChat)
    }

    fn replay(&mut self, _record: Value) -> Result<(), Error> {
        Ok(())
    }
}
