//! Google's Gemini, by the crate `genai`, and a guard around it.
//!
//! The crate writes the request, which is the most intricate of all wires, and reads the answer. It
//! leaves gaps, and the guard closes them: a streamed answer that was cut looks like one that ended;
//! errors have no type; the ids of calls are made up, the same ones for each piece of an answer; and
//! what a server says is logged, keys included. It is asked for a stream even if nobody reads along,
//! because only a stream can be bounded.

mod error;
mod request;

use super::answer::{Draft, DraftCall, keep};
use super::model::Call;
use futures_util::StreamExt;
use genai::chat::{
    ChatFrameSink, ChatStreamEvent, FrameCtx, RawFrameRef, StopReason as Reason, StreamEnd,
    ToolCall, Usage as Counts,
};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenure_core::model::{ModelError, ModelErrorKind as Kind, StopReason, Usage};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

/// No answer is larger than this.
const LARGEST: usize = 32 * 1024 * 1024;

pub(super) async fn call(call: Call<'_>) -> Result<Draft, ModelError> {
    let whole = call.route.timeouts.whole;
    match tokio::time::timeout(whole, guarded(call)).await {
        Ok(answered) => answered,
        Err(_) => Err(call.route.blame().timeout("the answer did not end", whole)),
    }
}

async fn guarded(call: Call<'_>) -> Result<Draft, ModelError> {
    let blame = call.route.blame();
    let read = Arc::new(Counter::default());
    let chat = request::chat(call);
    let options = request::options(call, read.clone())?;
    let client = genai::Client::builder()
        .with_reqwest(call.route.http.clone())
        .build()
        .map_err(|error| blame.error(Kind::Other, &error.to_string()))?;
    let mut stream = client
        .exec_chat_stream(request::target(call), chat, Some(&options))
        .with_subscriber(NoSubscriber::default())
        .await
        .map_err(|error| error::typed(blame, error))?
        .stream;
    let mut text = String::new();
    // The crate logs what a server says before anybody could take a key out of it.
    while let Some(event) = stream.next().with_subscriber(NoSubscriber::default()).await {
        if read.0.load(Ordering::Relaxed) > LARGEST {
            let what = format!("the answer is larger than {} MiB", LARGEST / 1024 / 1024);
            return Err(blame.malformed(&what));
        }
        // The stream may go on behind an error; an answer does not.
        match event.map_err(|error| error::typed(blame, error))? {
            ChatStreamEvent::Chunk(chunk) => {
                call.cx.delta(&chunk.content);
                text.push_str(&chunk.content);
            }
            ChatStreamEvent::End(end) => return ended(call, text, end),
            // Calls are taken at the end, when they are whole.
            _ => {}
        }
    }
    Err(blame.truncated())
}

/// What came, at an end that may be none.
fn ended(call: Call<'_>, text: String, end: StreamEnd) -> Result<Draft, ModelError> {
    let blame = call.route.blame();
    // The crate makes up an end where the connection was closed. Only the server gives a reason.
    let reason = end.captured_stop_reason.as_ref().ok_or_else(|| blame.truncated())?;
    let stop = match reason {
        Reason::MaxTokens(_) => StopReason::MaxTokens,
        Reason::ContentFilter(_) => StopReason::Refused,
        Reason::Other(other) if other == "MALFORMED_FUNCTION_CALL" => {
            return Err(blame.malformed("the model wrote a tool call that cannot be read"));
        }
        _ => StopReason::EndTurn,
    };
    let usage = end.captured_usage.as_ref().and_then(usage);
    let calls = end.captured_into_tool_calls().unwrap_or_default();
    let calls = calls.into_iter().map(|made| draft(call, made)).collect();
    Ok(Draft { text, calls, usage, stop })
}

fn draft(call: Call<'_>, made: ToolCall) -> DraftCall {
    let arguments = match made.fn_arguments {
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut what = Map::new();
    if let Some(signatures) = made.thought_signatures.filter(|signatures| !signatures.is_empty()) {
        what.insert("signatures".to_owned(), signatures.into());
    }
    // An id of this form is not the server's.
    let id = if made.call_id.starts_with("call#") { String::new() } else { made.call_id };
    DraftCall { id, name: made.fn_name, arguments, continuation: keep(call, what) }
}

fn usage(counts: &Counts) -> Option<Usage> {
    let count = |number: Option<i32>| u64::try_from(number.unwrap_or(0)).unwrap_or(0);
    if counts.prompt_tokens.is_none() && counts.completion_tokens.is_none() {
        return None;
    }
    let cached = counts.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let thought = counts.completion_tokens_details.as_ref();
    let reasoning = count(thought.and_then(|details| details.reasoning_tokens));
    // Where only thoughts were written, they are all that was.
    let output = count(counts.completion_tokens).max(reasoning);
    let cached = count(cached);
    Some(Usage { cached, reasoning, ..Usage::new(count(counts.prompt_tokens), output) })
}

/// Counts what was read of an answer.
#[derive(Default)]
struct Counter(AtomicUsize);

impl ChatFrameSink for Counter {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        self.0.fetch_add(frame.data.len(), Ordering::Relaxed);
    }
}
