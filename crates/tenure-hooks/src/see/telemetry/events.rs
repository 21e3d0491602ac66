//! Spans of what only events tell: hooks, questions, states.

use super::super::pump::Brought;
use super::super::seen::{bounded, lock};
use super::names::{
    APPROVAL_DECISION, APPROVAL_KIND, APPROVAL_PROMPT, HOOK_EVENT, HOOK_ID, HOOK_OUTCOME, STATE,
    STATE_FROM, STATE_PHASE, TOOL_NAME,
};
use super::pipe::{Pipe, Question};
use super::span::{Failed, Over};
use super::{KIND, Pipeline};
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use tenure_core::event::{Event, EventKind};
use tenure_core::hook::Point;
use tenure_core::phase::Phase;
use tenure_core::{Outcome, RunId};

/// Handles the events of a bus for as long as the pipe is there.
pub(super) fn handler(pipe: &Pipeline) -> impl FnMut(Brought<'_>) -> bool + Send + 'static {
    let pipe: Weak<Pipe> = Arc::downgrade(pipe);
    move |brought| {
        let Some(pipe) = pipe.upgrade() else { return false };
        match brought {
            Brought::Event(event) => pipe.take(event),
            Brought::Missed => pipe.settle_all(),
        }
        true
    }
}

impl Pipe {
    fn take(&self, event: &Event) {
        match &event.kind {
            EventKind::HookEnded { hook, point, outcome, took } if &**hook != KIND => {
                self.hook(event, hook, *point, *outcome, *took);
            }
            EventKind::PhaseEntered { from, to, .. } => self.phase(event, *from, *to),
            EventKind::Asked { ask, prompt, tool, approval } => {
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
                    self.give_up_questions(run, event.time);
                    self.settled(run);
                }
            }
            _ => {}
        }
    }

    fn hook(&self, event: &Event, hook: &Arc<str>, point: Point, outcome: Outcome, took: Duration) {
        let Some(parent) = self.place_of(event.run, event.instance) else { return };
        let (point, said) = (point.as_str(), outcome_of(outcome));
        if let Some(meters) = &self.exports.meters {
            meters.hook(hook, point, said, took);
        }
        if !self.config.hooks {
            return;
        }
        self.export(Over {
            place: parent.child(),
            parent: Some(parent),
            kind: SpanKind::Internal,
            name: format!("tenure.hook {point}").into(),
            start: event.time.checked_sub(took).unwrap_or(event.time),
            took,
            attributes: vec![
                KeyValue::new(HOOK_EVENT, point),
                KeyValue::new(HOOK_ID, hook.clone()),
                KeyValue::new(HOOK_OUTCOME, said),
            ],
            error: (!outcome.is_ok()).then(|| Failed { kind: said, words: String::new() }),
        });
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
