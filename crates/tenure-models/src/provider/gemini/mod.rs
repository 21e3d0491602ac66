//! Google's Gemini: `generateContent`, and the same streamed.

mod reply;
mod request;

use super::answer::Draft;
use super::model::Call;
use super::transport::{Events, Form, post};
use reply::{Assembly, whole};
use std::time::Duration;
use tenure_core::model::{ModelError, ModelErrorKind as Kind};

/// As long as an answer that has said why it ends may take to end.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(super) async fn call(call: Call<'_>) -> Result<Draft, ModelError> {
    let path = request::path(call);
    let reply = post(call, &path, request::headers(call), request::body(call)).await?;
    let asked = if call.streaming { Form::Stream } else { Form::Whole };
    if reply.form(asked)? == Form::Whole {
        let draft = whole(call, &reply.json().await?)?;
        call.cx.delta(&draft.text);
        return Ok(draft);
    }
    let mut events = Events::new(reply.lines());
    let mut assembly = Assembly::default();
    loop {
        // A reason to stop need not be the last piece: some models give it with every piece, and
        // only the end of the body says that nothing follows.
        let next = if assembly.is_ended() {
            match tokio::time::timeout(LAST_WORDS, events.next()).await {
                Err(_) => None,
                Ok(Err(error)) if error.kind() == Kind::Timeout => None,
                Ok(next) => next?,
            }
        } else {
            events.next().await?
        };
        match next {
            Some(data) => {
                if assembly.take(call, data)? {
                    events.went_on();
                }
            }
            None => return assembly.finish(call),
        }
    }
}
