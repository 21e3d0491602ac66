//! OpenAI's chat completions, and every server that is compatible.

mod reply;
mod request;

use super::answer::Draft;
use super::model::Call;
use super::transport::{Events, Form, post};
use reply::{Assembly, whole};
use tenure_core::model::ModelError;

pub(super) async fn call(call: Call<'_>) -> Result<Draft, ModelError> {
    let body = request::body(call);
    let reply = post(call, "/chat/completions", request::headers(call), body).await?;
    let asked = if call.streaming { Form::Stream } else { Form::Whole };
    if reply.form(asked)? == Form::Whole {
        // Some servers do not stream, whatever they are asked.
        let draft = whole(call, &reply.json().await?)?;
        call.cx.delta(&draft.text);
        return Ok(draft);
    }
    let mut events = Events::new(reply.lines());
    let mut assembly = Assembly::default();
    while let Some(data) = events.next().await? {
        if data == b"[DONE]" {
            events.linger().await;
            return assembly.finish(call);
        }
        if assembly.take(call, data)? {
            events.went_on();
        }
    }
    Err(call.route.blame().truncated())
}
