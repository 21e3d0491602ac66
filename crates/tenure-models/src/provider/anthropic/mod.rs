//! Anthropic's messages.

mod reply;
mod request;

use super::answer::Draft;
use super::model::Call;
use super::transport::{Events, Form, post};
use reply::{Assembly, Step, whole};
use tenure_core::model::ModelError;

pub(super) async fn call(call: Call<'_>) -> Result<Draft, ModelError> {
    // Both ways to write the address are in use.
    let versioned = call.route.target.base_url.ends_with("/v1");
    let path = if versioned { "/messages" } else { "/v1/messages" };
    let reply = post(call, path, request::headers(call), request::body(call)).await?;
    let asked = if call.streaming { Form::Stream } else { Form::Whole };
    if reply.form(asked)? == Form::Whole {
        let draft = whole(call, &reply.json().await?)?;
        call.cx.delta(&draft.text);
        return Ok(draft);
    }
    let mut events = Events::new(reply.lines());
    let mut assembly = Assembly::default();
    while let Some(data) = events.next().await? {
        match assembly.take(call, data)? {
            Step::Ended => {
                events.linger().await;
                return assembly.finish(call);
            }
            Step::WentOn => events.went_on(),
            Step::Nothing => {}
        }
    }
    Err(call.route.blame().truncated())
}
