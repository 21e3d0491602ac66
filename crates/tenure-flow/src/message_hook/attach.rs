//! From message hooks to entries of chains.

use super::{MessageHook, MessageHookType};
use crate::lifecycle::USER;
use tenure_cards::build::{Attached, AttachedEntry};
use tenure_core::hook::{Origin, Point, Policy, hook};
use tenure_hosts::{MessageHookKind, PythonHost};

/// What an agent gets that may speak: the message hooks that concern it, in their order.
///
/// A failure aborts the turn: a hook that takes something out of a message must not let it through
/// because it fails. What a person says passes through at the end of their turn, where a failure
/// holds nothing back.
pub fn of_agent(hooks: &[MessageHook], agent: &str, python: &PythonHost) -> Attached {
    let mut made = Attached::new();
    for declared in hooks.iter().filter(|hook| hook.concerns(agent)) {
        made.python = true;
        made.entries.push(entry(declared, agent, python));
    }
    // Wraps see an answer innermost first, and ends come last to first: so that what is sent passes
    // through the hooks in their order, those stand the other way round.
    let sent = |entry: &AttachedEntry| {
        let points = entry.registration.points();
        points.contains(Point::WrapModelCall) || points.contains(Point::AfterAgent)
    };
    let (mut ends, begins): (Vec<_>, Vec<_>) = made.entries.into_iter().partition(sent);
    ends.reverse();
    ends.extend(begins);
    made.entries = ends;
    made
}

fn entry(declared: &MessageHook, agent: &str, python: &PythonHost) -> AttachedEntry {
    let kind = match declared.kind {
        MessageHookType::ProcessMessageBeforeSend => MessageHookKind::BeforeSend,
        MessageHookType::UpdateAgentState => MessageHookKind::UpdateAgentState,
        MessageHookType::ProcessLastReceivedMessage => MessageHookKind::LastReceived,
        MessageHookType::ProcessAllMessagesBeforeReply => MessageHookKind::BeforeReply,
    };
    let name = format!("hooks.{}", declared.name);
    let mut own = python.message_hook(kind, declared.function.clone()).named(name.as_str());
    let is_person = agent == USER;
    if is_person {
        own = own.at_end();
    }
    let mut registration = hook(own);
    if !registration.points().contains(Point::AfterAgent) {
        registration = registration.policy(declared.policy.unwrap_or(Policy::Abort));
    }
    if declared.again_on_resume {
        registration = registration.again_on_resume();
    }
    if let Some(limit) = declared.timeout {
        registration = registration.limited(limit);
    }
    // The person is asked by a hook of the platform's, and these stand around it. Another of the
    // platform's puts the variables into the instruction: what is written before that has them as
    // they are at each model call, and what an earlier call kept has them not at all.
    let is_before = is_person || declared.kind == MessageHookType::UpdateAgentState;
    registration = match is_before {
        true => registration.origin(Origin::Platform).order(-1),
        false => registration.origin(Origin::Workflow),
    };
    let file = declared.function.file.path().file_name().unwrap_or_default().to_string_lossy();
    let runs = format!("{file}:{}", declared.function.name);
    let entry = AttachedEntry::new(name, registration, runs);
    let entry = entry.description(declared.description.clone());
    match &declared.declared {
        Some(place) => entry.declared(&**place),
        None => entry,
    }
}
