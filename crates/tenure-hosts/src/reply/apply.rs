//! Making a reply happen.
//!
//! What every reply may say comes first: state and variables, each as a whole or not at all, and
//! log lines. Then the decision, as core has it.

use super::keys::Expect;
use super::parse::{Decision, Reply};
use crate::site::Site;
use serde_json::{Map, Value};
use tenure_core::Error;
use tenure_core::context::Cx;
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::LogStream;
use tenure_core::hook::{After, Flow, HookAction, HookError};
use tenure_core::model::{ModelRequest, ModelResponse};

/// Does what a reply may say everywhere, and takes it out of the reply.
pub(crate) fn common(
    cx: &Cx<'_>,
    hook: &str,
    expect: &Expect,
    reply: &mut Reply,
) -> Result<(), HookError> {
    let write = |patch| cx.update_state(patch);
    effects(cx, hook, expect, reply, write)
}

/// The same wherever it is called from: in a tool's hook writes take effect when the batch is
/// committed.
pub(crate) fn common_at(
    site: &Site<'_>,
    hook: &str,
    expect: &Expect,
    reply: &mut Reply,
) -> Result<(), HookError> {
    effects(site.cx(), hook, expect, reply, |patch| site.write_state(patch))
}

fn effects(
    cx: &Cx<'_>,
    hook: &str,
    expect: &Expect,
    reply: &mut Reply,
    write: impl FnOnce(Map<String, Value>) -> Result<(), Error>,
) -> Result<(), HookError> {
    if let Some(text) = reply.log.take() {
        for line in text.lines() {
            cx.log(hook, LogStream::Host, line);
        }
    }
    let variables = std::mem::take(&mut reply.variables);
    if !variables.is_empty() {
        match cx.chat_variables() {
            Some(chat) => chat.update(variables)?,
            None => {
                return Err(expect.bad(
                    "it has `variables`, but this is no part of a chat; use `state` for what \
                     the agent itself keeps",
                ));
            }
        }
    }
    let state = std::mem::take(&mut reply.state);
    if !state.is_empty() {
        write(state)?;
    }
    Ok(())
}

/// What a decision is that its caller cannot use; parsing leaves none.
#[cold]
fn unusable(expect: &Expect, decision: &Decision) -> HookError {
    expect.bad(format!("it decided what cannot be decided here: {decision:?}"))
}

/// A point where nothing is decided, or no more than whether to go on.
pub(crate) fn notice(
    cx: &Cx<'_>,
    hook: &str,
    expect: &Expect,
    mut reply: Reply,
) -> Result<(), HookError> {
    common(cx, hook, expect, &mut reply)?;
    flow(expect, reply.decision).map(|_| ())
}

fn flow(expect: &Expect, decision: Decision) -> Result<Flow, HookError> {
    match decision {
        Decision::Silent | Decision::Allow => Ok(Flow::Continue),
        Decision::Deny(reason) => Err(Error::denied(reason).into()),
        Decision::Finish(output) => Ok(Flow::Finish(output.into())),
        other => Err(unusable(expect, &other)),
    }
}

/// `before_chat`.
pub(crate) fn chat(
    cx: &Cx<'_>,
    hook: &str,
    expect: &Expect,
    mut reply: Reply,
) -> Result<Flow, HookError> {
    common(cx, hook, expect, &mut reply)?;
    flow(expect, reply.decision)
}

/// `before_agent`.
pub(crate) fn input(
    cx: &Cx<'_>,
    hook: &str,
    expect: &Expect,
    mut reply: Reply,
    input: &mut Input,
) -> Result<Flow, HookError> {
    common(cx, hook, expect, &mut reply)?;
    if let Some(text) = reply.input {
        input.content.set_text(text);
    }
    flow(expect, reply.decision)
}

/// `before_model`.
pub(crate) fn request(
    cx: &Cx<'_>,
    hook: &str,
    expect: &Expect,
    mut reply: Reply,
    request: &mut ModelRequest,
) -> Result<Flow, HookError> {
    common(cx, hook, expect, &mut reply)?;
    if let Some(patch) = reply.request {
        patch.apply(request);
    }
    if reply.persist {
        request.persist();
    }
    flow(expect, reply.decision)
}

/// `after_model`.
pub(crate) fn response(
    cx: &Cx<'_>,
    hook: &str,
    expect: &Expect,
    mut reply: Reply,
    response: &ModelResponse,
) -> Result<HookAction, HookError> {
    common(cx, hook, expect, &mut reply)?;
    match reply.decision {
        Decision::Silent | Decision::Allow => Ok(HookAction::Continue),
        Decision::Deny(reason) => Err(Error::denied(reason).into()),
        Decision::Approve => Ok(HookAction::Approve),
        Decision::Reject(reason) => Ok(HookAction::Reject(reason)),
        Decision::Modify(patch) => Ok(HookAction::Modify(Box::new(patch.over(response.clone())))),
        Decision::Jump(target) => Ok(HookAction::JumpTo(target)),
        other => Err(unusable(expect, &other)),
    }
}

/// `after_agent`.
pub(crate) fn end(
    cx: &Cx<'_>,
    hook: &str,
    expect: &Expect,
    mut reply: Reply,
    end: &mut TurnEnd<'_>,
) -> Result<After, HookError> {
    common(cx, hook, expect, &mut reply)?;
    if let Some(output) = reply.output {
        let outcome = end.outcome();
        match end.content_mut() {
            Some(old) => old.set_text(output),
            None => {
                return Err(expect.bad(format!(
                    "it has `output`, but the turn ended as {outcome}; look at `outcome` first"
                )));
            }
        }
    }
    match reply.decision {
        Decision::Silent => Ok(After::Done),
        Decision::Continue(message) => Ok(After::Continue(message.into())),
        other => Err(unusable(expect, &other)),
    }
}
