//! Spans of what only events tell: hooks, questions, states.

use super::super::lifecycle::{LifecycleCall, TRIGGERS};
use super::super::pump::Brought;
use super::super::seen::{bounded, lock};
use super::names::{
    APPROVAL_DECISION, APPROVAL_KIND, APPROVAL_PROMPT, HOOK_EVENT, HOOK_ID, HOOK_OUTCOME,
    LIFECYCLE_TOOL, LIFECYCLE_TOOL_DESCRIPTION, LIFECYCLE_TOOL_FUNCTION, LIFECYCLE_TOOL_STATUS,
    STATE, STATE_FROM, STATE_PHASE, TOOL_NAME,
};
use super::pipe::{Pipe, Question};
use super::span::{Failed, Over};
use super::{KIND, Pipeline};
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use tenure_core::event::{Event, EventKind};
use tenure_core::phase::Phase;
use tenure_core::{InstanceId, Outcome, RunId};

/// Handles the events of a bus for as long as the pipe is there.
pub(super) fn handler(pipe: &Pipeline) -> impl FnMut(Brought<'_>) -> bool + Send + 'static {
    let pipe: Weak<Pipe> = Arc::downgrade(pipe);
    let mut tools = ToolCalls::default();
    move |brought| {
        let Some(pipe) = pipe.upgrade() else { return false };
        match brought {
            Brought::Event(event) => {
                pipe.take(event, &mut tools);
                if let Some(chat) = pipe.chats.follow(event) {
                    pipe.chat_left(&chat);
                }
            }
            Brought::Missed => {
                tools.clear();
                pipe.settle_all();
            }
        }
        true
    }
}

/// Attributes of lifecycle tools whose calls are over and whose hooks are not, by instance and point.
type ToolCalls = HashMap<(InstanceId, &'static str), Vec<KeyValue>>;

/// A hook that was called.
pub(super) struct HookCall {
    instance: InstanceId,
    at: SystemTime,
    hook: Arc<str>,
    point: &'static str,
    outcome: Outcome,
    took: Duration,
    /// Of a lifecycle tool, what it said of itself.
    tool: Vec<KeyValue>,
}

impl Pipe {
    fn take(&self, event: &Event, tools: &mut ToolCalls) {
        match &event.kind {
            EventKind::HookEnded { hook, point, outcome, took } if &**hook != KIND => {
                let at = (event.instance, point.as_str());
                let call = HookCall {
                    instance: event.instance,
                    at: event.time,
                    hook: hook.clone(),
                    point: point.as_str(),
                    outcome: *outcome,
                    took: *took,
                    tool: tools.remove(&at).unwrap_or_default(),
                };
                self.hook(event.run, call);
            }
            EventKind::Announced { name, data } => {
                if let Some(call) = LifecycleCall::read(name, data)
                    && self.place_of(event.run, event.instance).is_some()
                {
                    let at = (event.instance, TRIGGERS[call.trigger]);
                    tools.insert(at, attributes_of(&call));
                }
            }
            EventKind::ChatStarted { chat } => self.chat_started(chat, event.time),
            EventKind::ChatEnded { chat, .. } => self.chat_ended(chat, event.time),
            EventKind::PhaseEntered { from, to, .. } => self.phase(event, *from, *to),
            EventKind::Asked { ask, prompt, tool, approval, .. } => {
                // Another agent of the bus may not be watched at all.
                let Some(parent) = self.place_of(event.run, event.instance) else { return };
                let kind = if *approval { "approval" } else { "input" };
                let mut attributes = vec![KeyValue::new(APPROVAL_KIND, kind)];
                attributes.extend(tool.as_ref().map(|tool| KeyValue::new(TOOL_NAME, tool.clone())));
                if let Some(most) = self.config.content {
                    attributes.push(KeyValue::new(APPROVAL_PROMPT, bounded(prompt, most)));
                }
                let (run, start) = (event.run, event.time);
                let question = Question { run, parent: Some(parent), start, attributes };
                lock(&self.questions).insert(ask.clone(), question);
            }
            EventKind::Answered { ask, decision } => {
                if let Some(question) = lock(&self.questions).remove(ask) {
                    self.answered(question, decision, event.time);
                }
            }
            EventKind::AskEnded { ask, outcome } => {
                if let Some(question) = lock(&self.questions).remove(ask) {
                    self.answered(question, outcome.as_str(), event.time);
                }
            }
            EventKind::TurnEnded { .. } => {
                if let Some(run) = event.run {
                    let early = lock(&self.early).remove(&run);
                    for call in early.into_iter().flatten() {
                        self.hook_span(Some(run), call);
                    }
                    self.give_up_questions(run, event.time);
                    self.settled(run);
                }
            }
            _ => {}
        }
    }

    fn hook(&self, run: Option<RunId>, call: HookCall) {
        if self.place_of(run, call.instance).is_none() {
            return;
        }
        if let Some(meters) = &self.exports.meters {
            meters.hook(&call.hook, call.point, outcome_of(call.outcome), call.took);
        }
        if !self.config.hooks {
            return;
        }
        match run {
            // Hooks that stand before this one begin the turn before it is known here.
            Some(run) if self.turn(run, |_| ()).is_none() => {
                lock(&self.early).entry(run).or_default().push(call);
            }
            _ => self.hook_span(run, call),
        }
    }

    fn hook_span(&self, run: Option<RunId>, call: HookCall) {
        let HookCall { instance, at, hook, point, outcome, took, tool } = call;
        let Some(parent) = self.place_of(run, instance) else { return };
        let said = outcome_of(outcome);
        let mut attributes = vec![
            KeyValue::new(HOOK_EVENT, point),
            KeyValue::new(HOOK_ID, hook),
            KeyValue::new(HOOK_OUTCOME, said),
        ];
        attributes.extend(tool);
        self.export(Over {
            place: parent.child(),
            parent: Some(parent),
            kind: SpanKind::Internal,
            name: format!("tenure.hook {point}").into(),
            start: at.checked_sub(took).unwrap_or(at),
            took,
            attributes,
            error: (!outcome.is_ok()).then(|| Failed { kind: said, words: String::new() }),
        });
    }

    /// No end comes any more of the turns of this instance, or of all: hooks that wait for one do not.
    pub(super) fn settle_early(&self, of: Option<InstanceId>) {
        let is_settled = |call: &HookCall| of.is_none_or(|instance| call.instance == instance);
        let mut settled = Vec::new();
        lock(&self.early).retain(|run, calls| {
            settled.extend(calls.extract_if(.., |call| is_settled(call)).map(|call| (*run, call)));
            !calls.is_empty()
        });
        for (run, call) in settled {
            self.hook_span(Some(run), call);
        }
    }

    fn phase(&self, event: &Event, from: Phase, to: Phase) {
        let Some(being) = self.being(event.instance) else { return };
        self.entered(&being, to.state());
        if (from, to) == (Phase::Bootstrapping, Phase::Idle) {
            self.created(&being, event.time, true);
        }
        if let Some(run) = event.run {
            let attributes = vec![
                KeyValue::new(STATE, to.state().as_str()),
                KeyValue::new(STATE_PHASE, to.as_str()),
                KeyValue::new(STATE_FROM, from.as_str()),
            ];
            self.turn(run, |turn| turn.event(STATE, event.time, attributes));
        }
    }

    fn answered(&self, question: Question, decision: &'static str, at: SystemTime) {
        let Question { parent, start, mut attributes, .. } = question;
        let Some(parent) = parent else { return };
        let took = at.duration_since(start).unwrap_or_default();
        if let Some(meters) = &self.exports.meters {
            meters.approval(decision, took);
        }
        attributes.push(KeyValue::new(APPROVAL_DECISION, decision));
        self.export(Over {
            place: parent.child(),
            parent: Some(parent),
            kind: SpanKind::Internal,
            name: "tenure.approval".into(),
            start,
            took,
            attributes,
            error: None,
        });
    }

    /// The turn is over: nobody waits for these answers any more.
    fn give_up_questions(&self, run: RunId, at: SystemTime) {
        let mut questions = lock(&self.questions);
        if questions.is_empty() {
            return;
        }
        let mut open = Vec::new();
        let ids: Vec<_> = questions
            .iter()
            .filter(|(_, question)| question.run == Some(run))
            .map(|(id, _)| id.clone())
            .collect();
        for id in ids {
            open.extend(questions.remove(&id));
        }
        drop(questions);
        for question in open {
            self.answered(question, "none", at);
        }
    }
}

/// The attributes of the span of a hook that is a lifecycle tool.
fn attributes_of(call: &LifecycleCall<'_>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new(LIFECYCLE_TOOL, call.tool.to_string()),
        KeyValue::new(LIFECYCLE_TOOL_STATUS, call.status),
    ];
    let texts =
        [(LIFECYCLE_TOOL_FUNCTION, call.function), (LIFECYCLE_TOOL_DESCRIPTION, call.description)];
    for (key, text) in texts {
        attributes.extend(text.map(|text| KeyValue::new(key, text.to_owned())));
    }
    attributes
}

/// How a hook ended, in the words that hooks of other programs have for it too.
fn outcome_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Denied => "deny",
        Outcome::TimedOut => "timeout",
        Outcome::Cancelled => "cancelled",
        _ => "error",
    }
}
