//! From bytes to a typed reply.

use super::keys::{Expect, Speaker};
use super::once;
use super::parts::{self, RequestPatch, ResponsePatch, Where};
use crate::Role;
use serde_json::error::Category;
use serde_json::{Map, Value};
use tenure_core::ask::Ask;
use tenure_core::hook::{HookError, JumpTarget};
use tenure_core::tool::ToolOutput;

/// What a hook said. Everything in it is legal at the point that it was parsed for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) state: Map<String, Value>,
    pub(crate) variables: Map<String, Value>,
    pub(crate) log: Option<String>,
    pub(crate) decision: Decision,
    pub(crate) input: Option<String>,
    pub(crate) request: Option<RequestPatch>,
    pub(crate) persist: bool,
    pub(crate) arguments: Option<Map<String, Value>>,
    pub(crate) output: Option<String>,
}

/// The one thing that a hook decided.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Decision {
    /// It said nothing.
    #[default]
    Silent,
    /// Go on.
    Allow,
    /// No.
    Deny(String),
    /// Stop here; this is the output.
    Finish(String),
    /// Go on, and count what is pending as approved.
    Approve,
    /// The response is refused.
    Reject(String),
    /// Go on with a changed response.
    Modify(ResponsePatch),
    /// Go elsewhere.
    Jump(JumpTarget),
    /// The tool's result.
    Result(ToolOutput),
    /// The model's response.
    Response(ResponsePatch),
    /// Go on with this message as if the user had said it.
    Continue(String),
    /// Ask a person, and call again.
    Ask(Ask),
}

impl Reply {
    /// Parses what a hook wrote. Nothing but white space is silence.
    pub(crate) fn parse(bytes: &[u8], expect: &Expect) -> Result<Reply, HookError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let shown = parts::shown(&String::from_utf8_lossy(bytes));
            expect.bad(format!("the reply is not UTF-8 (at byte {}): {shown}", error.valid_up_to()))
        })?;
        if text.trim().is_empty() {
            return Reply::silence(expect);
        }
        let (value, rest) = once::first(text).map_err(|error| {
            let shown = parts::shown(text.trim_start());
            match error.classify() {
                Category::Data => expect.bad(format!("{error}: {shown}")),
                _ => expect.bad(format!("the reply is no JSON ({error}): {shown}")),
            }
        })?;
        if !rest.trim().is_empty() {
            return Err(expect.bad(format!(
                "there is something behind the JSON object of the reply: {}",
                parts::shown(rest.trim_start())
            )));
        }
        Reply::of_value(value, expect)
    }

    /// What it means that a hook said nothing.
    pub(crate) fn silence(expect: &Expect) -> Result<Reply, HookError> {
        Reply::of(Map::new(), expect)
    }

    /// Takes what a hook returned.
    pub(crate) fn of_value(value: Value, expect: &Expect) -> Result<Reply, HookError> {
        match value {
            Value::Object(object) => Reply::of(object, expect),
            other => Err(expect
                .bad(format!("the reply is {}; expected a JSON object", parts::found(&other)))),
        }
    }

    fn of(object: Map<String, Value>, expect: &Expect) -> Result<Reply, HookError> {
        let mut reply = Reply::default();
        let mut decided: Option<(String, bool)> = None;
        let mut edits: Vec<String> = Vec::new();
        for (key, value) in object {
            if !expect.takes(&key) {
                return Err(expect.bad(format!("the key `{}` is unknown", parts::shown_key(&key))));
            }
            let at = Where { expect, key: &key };
            let decision = match key.as_str() {
                "state" => {
                    reply.state = at.object(value)?;
                    continue;
                }
                "variables" => {
                    reply.variables = at.object(value)?;
                    continue;
                }
                "log" => {
                    reply.log = Some(at.text(value)?);
                    continue;
                }
                "input" => {
                    reply.input = Some(at.text(value)?);
                    edits.push(key);
                    continue;
                }
                "request" => {
                    reply.request = Some(at.request(value)?);
                    edits.push(key);
                    continue;
                }
                "persist" => {
                    reply.persist = at.flag(value)?;
                    continue;
                }
                "arguments" => {
                    reply.arguments = Some(at.object(value)?);
                    edits.push(key);
                    continue;
                }
                "output" => {
                    reply.output = Some(at.text(value)?);
                    edits.push(key);
                    continue;
                }
                "allow" => at.yes(value, "to refuse, say `deny` with a reason", Decision::Allow)?,
                "approve" => {
                    at.yes(value, "to refuse, say `reject` with a reason", Decision::Approve)?
                }
                "deny" => Decision::Deny(at.text(value)?),
                "finish" => Decision::Finish(at.text(value)?),
                "reject" => Decision::Reject(at.text(value)?),
                "modify" => Decision::Modify(at.response(value, parts::Keys::TextAndCalls)?),
                "jump" => Decision::Jump(at.jump(value)?),
                "result" => Decision::Result(at.output(value)?),
                "response" => Decision::Response(at.response(value, parts::Keys::All)?),
                "continue" => Decision::Continue(at.text(value)?),
                "ask" => Decision::Ask(at.ask(value)?),
                _ => return Err(expect.bad(format!("the key `{key}` is unknown"))),
            };
            if let Some((other, _)) = &decided {
                return Err(expect
                    .bad(format!("the reply says both `{other}` and `{key}`; say one of them")));
            }
            let goes_on =
                matches!(decision, Decision::Allow | Decision::Approve | Decision::Continue(_));
            decided = Some((key, goes_on));
            reply.decision = decision;
        }
        match (decided, edits.first()) {
            (Some((key, false)), Some(edit)) => Err(expect.bad(format!(
                "the reply says `{key}`, so `{edit}` would be lost; leave one of them out"
            ))),
            (None, edit) if expect.needs_decision() => Err(silent(expect, edit)),
            _ => Ok(reply),
        }
    }
}

/// A guard did not say what it decides.
#[cold]
fn silent(expect: &Expect, edit: Option<&String>) -> HookError {
    debug_assert!(expect.role == Role::Guard);
    match (expect.speaker, edit) {
        (Speaker::Command, None) => {
            expect.bad("it said nothing; a guard must say {\"allow\": true}")
        }
        (Speaker::Python, None) => {
            expect.bad("it said nothing; a guard must return allow() or deny(reason)")
        }
        (_, Some(edit)) => expect
            .bad(format!("it said `{edit}`, but not {{\"allow\": true}}; a guard must say that")),
    }
}
