//! A tool call as a step: what is recorded of it, and what is done about one that may have been made
//! when the process died.

use super::batch::Body;
use crate::ask::{Answer, Ask};
use crate::context::{Batch, Cx};
use crate::error::Error;
use crate::kernel::{Kind, ToolKind};
use crate::message::ToolCall;
use crate::step::{Step, StepKey, StepScope, decode, encode, fingerprint, recordable, recorded};
use crate::tool::{Effect, ToolError, ToolOutput, ToolRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One call as a step.
pub(super) async fn recorded_call(
    batch: Batch<'_>,
    cx: Cx<'_>,
    request: &ToolRequest,
    scope: &StepScope,
    body: impl Future<Output = Result<ToolOutput, Error>> + Send,
) -> Result<ToolOutput, Error> {
    let ToolRequest { name, id, arguments, .. } = request;
    let call = Called { name, id, arguments, stands: Stands::BeforeBody };
    as_step(batch, cx, call, scope, body).await
}

/// What of a call is recorded by a tool that has steps of its own: the part that must not be done
/// twice.
pub(crate) async fn recorded_part(
    batch: Batch<'_>,
    cx: Cx<'_>,
    arguments: &Value,
    part: impl Future<Output = Result<ToolOutput, ToolError>> + Send,
) -> Result<ToolOutput, ToolError> {
    let Some(scope) = cx.site.steps() else { return part.await };
    let ToolCall { id, name, .. } = &batch.calls[batch.index];
    let part = async { ToolKind::settle(Ok(Ok(part.await))) };
    let call = Called { name, id, arguments, stands: Stands::InBody };
    as_step(batch, cx, call, scope, part).await.map_err(ToolError::ends_turn)
}

/// A call as its step knows it.
#[derive(Clone, Copy)]
struct Called<'a> {
    name: &'a str,
    id: &'a str,
    arguments: &'a Value,
    stands: Stands,
}

/// Whether the tool's body is under way already.
#[derive(Clone, Copy)]
enum Stands {
    BeforeBody,
    InBody,
}

async fn as_step(
    batch: Batch<'_>,
    cx: Cx<'_>,
    call: Called<'_>,
    scope: &StepScope,
    body: impl Future<Output = Result<ToolOutput, Error>> + Send,
) -> Result<ToolOutput, Error> {
    let name = format!("{}:{}", call.name, call.id);
    let key = scope.key("tool", &name, fingerprint(call.arguments));
    let effect = batch.tools(cx.site).spec(call.name).map_or(Effect::default(), |it| it.effect);
    let intent = StepKey { kind: "intent".into(), ..key.clone() };
    let known = effect != Effect::AtMostOnce || is_first_attempt(scope, intent.clone()).await?;
    let effect = async {
        let before = batch.state.writes_of(batch.index).len();
        let result = match known {
            true => body.await,
            false => unknown_outcome(batch, cx, call, scope, intent, body).await,
        };
        let record = match &result {
            Ok(output) => {
                let mut writes = batch.state.writes_of(batch.index);
                let writes = writes.drain(before..).flatten().collect();
                recordable(&output.content)
                    .and_then(|()| encode(&Recorded { output: output.clone(), writes }))
            }
            Err(error) => Err(error.clone()),
        };
        (record, result)
    };
    match recorded(cx.site, scope, key, effect).await? {
        Step::Fresh(result) => result,
        Step::Recorded(record) => {
            let Recorded { output, writes } = decode(record)?;
            if !writes.is_empty() {
                batch.state.patches.lock().push((batch.index, writes));
            }
            Ok(output)
        }
    }
}

/// Says on record that the call is about to be made, and whether that had not been said before. If
/// it had, and no result came of it, nobody knows whether the tool did what it was asked.
async fn is_first_attempt(scope: &StepScope, intent: StepKey) -> Result<bool, Error> {
    let mut first = false;
    let said = async {
        first = true;
        Ok(Value::Null)
    };
    scope.log().step(intent, Box::pin(said)).await?;
    Ok(first)
}

/// The process died while the tool was being called, and the tool must not be called twice: a
/// person says what came of it. Leave to call it once more is leave for one call: if the process
/// dies in that one too, the person is asked again.
async fn unknown_outcome(
    batch: Batch<'_>,
    cx: Cx<'_>,
    call: Called<'_>,
    scope: &StepScope,
    intent: StepKey,
    body: impl Future<Output = Result<ToolOutput, Error>> + Send,
) -> Result<ToolOutput, Error> {
    let name = call.name;
    let unknown = format!(
        "the process stopped while `{name}` was being called, and nobody knows whether it did what \
         it was asked"
    );
    if !cx.can_ask() {
        return Ok(ToolOutput::error(format!("{unknown}; it was not called again")));
    }
    let mut prompt = format!(
        "{unknown}. Answer `again` to have it called once more, or say what came of it: that is \
         what the model gets to read."
    );
    let mut again = StepKey { ordinal: 0, ..intent.clone() };
    again.name = format!("{}#{}/again", intent.name, intent.ordinal).into();
    loop {
        let form = json!({ "tool": name, "call": call.id, "arguments": call.arguments });
        let ask = Ask::input(prompt.clone()).form(form);
        match ask_about(batch, cx, call.stands, ask).await? {
            // Whoever says yes, or nothing, may mean either.
            Answer::Approve => {
                prompt =
                    "it cannot be approved: answer `again` to have it called once more, or say \
                          what came of it"
                        .to_owned();
            }
            Answer::Respond(text) if text.trim().is_empty() => {
                prompt =
                    "the answer was empty: answer `again` to have it called once more, or say \
                          what came of it"
                        .to_owned();
            }
            Answer::Respond(text) if text.trim() != "again" => return Ok(ToolOutput::text(text)),
            Answer::Respond(_) => {
                if is_first_attempt(scope, again.clone()).await? {
                    return body.await;
                }
                again.ordinal += 1;
            }
            Answer::Edit(value) => return Ok(ToolOutput::from(value)),
            Answer::Reject(why) => return Ok(ToolOutput::error(format!("{unknown}; {why}"))),
        }
    }
}

/// Asks a person as a tool's body does: while it waits, so does the call.
async fn ask_about(
    batch: Batch<'_>,
    cx: Cx<'_>,
    stands: Stands,
    ask: Ask,
) -> Result<Answer, Error> {
    let asking = match stands {
        Stands::BeforeBody => Some(Body::begin(batch.state, cx.site).await),
        Stands::InBody => None,
    };
    let answer = crate::ask::ask(cx, Some(batch), ask).await;
    if let Some(asking) = asking {
        asking.end(cx.site).await;
    }
    answer
}

/// A tool call that completed, and what it wanted written.
#[derive(Serialize, Deserialize)]
struct Recorded {
    #[serde(flatten)]
    output: ToolOutput,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writes: Vec<(String, Value)>,
}
