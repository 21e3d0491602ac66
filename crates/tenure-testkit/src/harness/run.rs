//! What a run was like.

use crate::Recorder;
use serde_json::Value;
use std::fmt;
use tenure_core::chat::ChatEnd;
use tenure_core::drive::TurnReport;
use tenure_core::event::EventKind;
use tenure_core::hook::{HookFailure, Point};
use tenure_core::message::Message;
use tenure_core::model::ModelRequest;
use tenure_core::{Error, ExitReason, Outcome};

/// What a [`HookHarness`](super::HookHarness) saw in one life of its agent.
#[non_exhaustive]
pub struct HarnessRun {
    /// Whether the agent could be built and started.
    pub started: Result<(), Error>,
    /// How the turn ended, if there was one.
    pub turn: Option<Result<TurnReport, Error>>,
    /// How the chat ended, if there was one.
    pub chat: Option<ChatEnd>,
    /// Every request that reached the model, hooks' changes included.
    pub requests: Vec<ModelRequest>,
    /// Every call that reached a tool, by name, with the arguments it arrived with.
    pub tool_calls: Vec<(String, Value)>,
    /// Why the agent is terminated; `None` if it could not be built.
    pub exit: Option<ExitReason>,
    /// Hooks that failed at startup, in the chat, at transitions and at shutdown. For all of them,
    /// those of the turn included, see [`HarnessRun::failures`].
    pub(super) failures: Vec<HookFailure>,
    recorder: Recorder,
}

impl HarnessRun {
    pub(super) fn new(recorder: Recorder) -> Self {
        Self {
            started: Ok(()),
            turn: None,
            chat: None,
            requests: Vec::new(),
            tool_calls: Vec::new(),
            exit: None,
            failures: Vec::new(),
            recorder,
        }
    }

    /// What the turn was asked, as the model saw it: the newest user message of its first request.
    /// `None` if the model was not asked.
    pub fn input(&self) -> Option<&str> {
        let user = |message: &&Message| matches!(message, Message::User { .. });
        self.requests.first()?.messages.iter().filter(user).last().map(Message::text)
    }

    /// What the turn answered; empty if it did not end well.
    pub fn output(&self) -> &str {
        self.report().map_or("", TurnReport::output)
    }

    /// The report of the turn, however it ended.
    pub fn report(&self) -> Option<&TurnReport> {
        match self.turn.as_ref()? {
            Ok(report) => Some(report),
            Err(error) => error.report(),
        }
    }

    /// Why the agent could not be started, why the turn did not end well or why the chat did not;
    /// in this order.
    pub fn error(&self) -> Option<&Error> {
        let turn = || self.turn.as_ref().and_then(|turn| turn.as_ref().err());
        let chat = || self.chat.as_ref().and_then(|chat| chat.error.as_ref());
        self.started.as_ref().err().or_else(turn).or_else(chat)
    }

    /// How it ended: the outcome of [`HarnessRun::error`], or ok.
    pub fn outcome(&self) -> Outcome {
        self.error().map_or(Outcome::Ok, Error::outcome)
    }

    /// Every hook call that failed, at whatever point.
    pub fn failures(&self) -> Vec<HookFailure> {
        let turn = self.report().map(|report| report.failures.as_slice()).unwrap_or_default();
        turn.iter().chain(&self.failures).cloned().collect()
    }

    /// How often hooks were called at this point.
    pub fn hook_calls(&self, point: Point) -> usize {
        let here = |kind: &EventKind| matches!(kind, EventKind::HookStarted { point: at, .. } if *at == point);
        self.recorder.events().iter().filter(|event| here(&event.kind)).count()
    }

    /// Everything that happened.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}

impl fmt::Debug for HarnessRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HarnessRun")
            .field("started", &self.started)
            .field("turn", &self.turn)
            .field("chat", &self.chat)
            .field("exit", &self.exit)
            .field("failures", &self.failures())
            .finish_non_exhaustive()
    }
}
