//! The kinds of events.

use crate::hook::{FaultKind, Point};
use crate::message::ToolStatus;
use crate::model::Usage;
use crate::outcome::{ExitReason, Outcome};
use crate::phase::{AgentState, Phase, Transition};
use crate::secret::Redactor;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
#[doc(alias = "EventType")]
pub enum EventKind {
    /// The agent entered a phase.
    PhaseEntered {
        /// Where it came from.
        from: Phase,
        /// Where it is.
        to: Phase,
        /// Why it is over, if it is.
        reason: Option<ExitReason>,
    },
    /// Startup has come this far.
    #[doc(alias = "agent.startup")]
    Startup {
        /// The state it is in now.
        state: AgentState,
    },
    /// Shutdown has come this far.
    Shutdown {
        /// The state it is in now.
        state: AgentState,
        /// Why it is over, once it is.
        reason: Option<ExitReason>,
    },
    /// A turn began.
    TurnStarted,
    /// A turn ended.
    TurnEnded {
        /// How.
        outcome: Outcome,
        /// What it cost.
        usage: Usage,
        /// How long it took.
        took: Duration,
        /// Why it did not end well, in one line.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A chat began.
    ChatStarted {
        /// The chat's id.
        chat: Arc<str>,
    },
    /// A chat ended.
    ChatEnded {
        /// The chat's id.
        chat: Arc<str>,
        /// How.
        outcome: Outcome,
    },
    /// A hook was called.
    HookStarted {
        /// Its name.
        hook: Arc<str>,
        /// The point.
        #[serde(serialize_with = "point_name")]
        point: Point,
    },
    /// A hook call ended.
    HookEnded {
        /// Its name.
        hook: Arc<str>,
        /// The point.
        #[serde(serialize_with = "point_name")]
        point: Point,
        /// How.
        outcome: Outcome,
        /// The time that it took, inner calls included. What came before it began does not count:
        /// the start of a process, the import of a module, a queue.
        took: Duration,
    },
    /// A hook that was called found that the call does not concern it, and did nothing. Its end
    /// follows.
    HookSkipped {
        /// Its name.
        hook: Arc<str>,
        /// The point.
        #[serde(serialize_with = "point_name")]
        point: Point,
    },
    /// A hook of a transition failed, and the agent went on. Its end was announced before.
    TransitionHookFailed {
        /// Its name.
        hook: Arc<str>,
        /// The transition.
        transition: Transition,
        /// How it failed.
        fault: FaultKind,
        /// What it said, in one line.
        reason: String,
    },
    /// A model call began.
    ModelStarted {
        /// Which call of the turn it is, counted from one.
        step: usize,
    },
    /// A model call ended.
    ModelEnded {
        /// Which call of the turn it is, counted from one.
        step: usize,
        /// How.
        outcome: Outcome,
        /// What it cost.
        usage: Usage,
        /// Why it did not end well, in one line.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A tool call began: its wraps are about to see it.
    ToolStarted {
        /// The call's id.
        call: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
    },
    /// A tool's body is running.
    ToolExecuting {
        /// The call's id.
        call: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
    },
    /// A tool says how far it has come.
    ToolProgress {
        /// The call's id.
        call: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
        /// How much is done.
        done: f64,
        /// Of how much, if that is known.
        total: Option<f64>,
        /// What it is at.
        message: Option<String>,
    },
    /// A tool call ended.
    ToolEnded {
        /// The call's id.
        call: Arc<str>,
        /// The tool's name.
        tool: Arc<str>,
        /// How.
        status: ToolStatus,
        /// Why it did not end well, in one line.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person is asked.
    #[doc(alias = "InputRequestEvent")]
    Asked {
        /// The ask's id.
        ask: Arc<str>,
        /// What is asked.
        prompt: String,
        /// The hook that asks; none if a tool itself does.
        hook: Option<Arc<str>>,
        /// The tool whose call it is about, if it is about one.
        tool: Option<Arc<str>>,
        /// Whether it asks for leave rather than for input.
        approval: bool,
    },
    /// A person answered, or nobody did in time.
    Answered {
        /// The ask's id.
        ask: Arc<str>,
        /// The decision's name.
        decision: &'static str,
    },
    /// A question ended without an answer: whoever asked was cancelled, or nobody could be asked.
    AskEnded {
        /// The ask's id.
        ask: Arc<str>,
        /// How.
        outcome: Outcome,
    },
    /// Something foreign printed a line.
    Log {
        /// What printed it: a hook's or a tool's name.
        source: Arc<str>,
        /// Where it printed it.
        stream: LogStream,
        /// The line, without its end.
        line: String,
    },
    /// An instance was spawned by another.
    Spawned {
        /// The name of the new one.
        child: Arc<str>,
    },
    /// Something that the instance acquired could not be released.
    ResourceLeaked {
        /// What.
        resource: Arc<str>,
        /// Why.
        reason: String,
    },
    /// What memory has to keep could not be stored at shutdown.
    MemoryFlushFailed {
        /// How it failed.
        fault: FaultKind,
        /// What it said, in one line.
        reason: String,
    },
    /// Something happened that a layer above has a name for: a workflow, a hook of its own.
    ///
    /// In JSON its name is the `kind`.
    #[serde(untagged)]
    Announced {
        /// The event's name, such as `select_speaker`.
        #[serde(rename = "kind")]
        name: &'static str,
        /// What there is to say of it.
        data: Value,
    },
}

/// Where a line was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LogStream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
    /// Nowhere: whoever runs it says it.
    Host,
}

fn point_name<S: Serializer>(point: &Point, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(point.as_str())
}

/// No reason has more characters than this.
const MOST_REASON: usize = 300;

/// The first line of what an error says, as events tell it. What is too long is cut, but no word in
/// the middle: half a secret is not recognised as one.
#[cold]
pub(crate) fn reason_of(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let Some((end, _)) = line.char_indices().nth(MOST_REASON) else {
        return Some(line.to_owned());
    };
    let mut kept = &line[..end];
    if line[end..].starts_with(|next: char| next.is_ascii_graphic()) {
        kept = kept.trim_end_matches(|last: char| last.is_ascii_graphic());
    }
    Some(format!("{}…", kept.trim_end()))
}

impl EventKind {
    /// Takes secrets out of whatever was said by people, models, hooks, tools and errors.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        let texts = match self {
            Self::TransitionHookFailed { reason, .. }
            | Self::ResourceLeaked { reason, .. }
            | Self::MemoryFlushFailed { reason, .. } => Some(reason),
            Self::TurnEnded { reason, .. }
            | Self::ModelEnded { reason, .. }
            | Self::ToolEnded { reason, .. } => reason.as_mut(),
            Self::ToolProgress { message, .. } => message.as_mut(),
            Self::Asked { prompt, .. } => Some(prompt),
            Self::Log { source, line, .. } => {
                redactor.redact_line(source, line);
                None
            }
            Self::Announced { data, .. } => {
                redactor.redact_json(data);
                None
            }
            Self::PhaseEntered { .. }
            | Self::Startup { .. }
            | Self::Shutdown { .. }
            | Self::TurnStarted
            | Self::ChatStarted { .. }
            | Self::ChatEnded { .. }
            | Self::HookStarted { .. }
            | Self::HookEnded { .. }
            | Self::HookSkipped { .. }
            | Self::ModelStarted { .. }
            | Self::ToolStarted { .. }
            | Self::ToolExecuting { .. }
            | Self::Answered { .. }
            | Self::AskEnded { .. }
            | Self::Spawned { .. } => None,
        };
        if let Some(text) = texts {
            redactor.redact_text(text);
        }
    }

    /// The event's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::PhaseEntered { to, .. } => to.event_name(),
            Self::Startup { .. } => "agent.startup",
            Self::Shutdown { .. } => "agent.shutdown",
            Self::TurnStarted => "agent.turn.started",
            Self::TurnEnded { .. } => "agent.turn.ended",
            Self::ChatStarted { .. } => "chat.started",
            Self::ChatEnded { .. } => "chat.ended",
            Self::HookStarted { .. } => "hook.started",
            Self::HookEnded { .. } => "hook.ended",
            Self::HookSkipped { .. } => "hook.skipped",
            Self::TransitionHookFailed { .. } => "transition.hook_failed",
            Self::ModelStarted { .. } => "model.started",
            Self::ModelEnded { .. } => "model.ended",
            Self::ToolStarted { .. } => "tool.started",
            Self::ToolExecuting { .. } => "tool.executing",
            Self::ToolProgress { .. } => "tool.progress",
            Self::ToolEnded { .. } => "tool.ended",
            Self::Asked { .. } => "ask.requested",
            Self::Answered { .. } => "ask.answered",
            Self::AskEnded { .. } => "ask.ended",
            Self::Log { .. } => "hook.log",
            Self::Spawned { .. } => "agent.spawned",
            Self::Announced { name, .. } => name,
            Self::ResourceLeaked { .. } => "resource.leaked",
            Self::MemoryFlushFailed { .. } => "memory.flush_failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_announced_has_its_own_name_as_its_kind() {
        let said = EventKind::Announced { name: "context.changed", data: json!({ "to": 1 }) };
        let json = serde_json::to_value(said).expect("JSON");
        assert_eq!(json, json!({ "kind": "context.changed", "data": { "to": 1 } }));
    }

    #[test]
    fn a_reason_is_one_line_of_bounded_length_and_whole_words() {
        assert_eq!(reason_of(""), None);
        assert_eq!(reason_of("\n  it broke \nsecond").as_deref(), Some("it broke"));
        let exact = "é".repeat(MOST_REASON);
        assert_eq!(reason_of(&exact).as_deref(), Some(&*exact));
        let cut = reason_of(&"é".repeat(MOST_REASON + 1)).expect("a reason");
        assert_eq!(cut.chars().count(), MOST_REASON + 1);
        let text = format!("{} sk-{} more", "x".repeat(280), "s".repeat(60));
        assert_eq!(reason_of(&text), Some(format!("{}…", "x".repeat(280))));
    }
}
