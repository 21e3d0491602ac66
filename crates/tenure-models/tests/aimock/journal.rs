//! What the server says it did, request by request.

use super::server::Aimock;
use serde_json::Value;
use tenure_core::model::ModelErrorKind;

/// One request, as the server saw it.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What the user said last.
    pub(crate) user: String,
    /// Whether a stream was asked for.
    pub(crate) streamed: bool,
    /// The status of the answer; 0 if the connection was cut before there was one.
    pub(crate) status: u64,
    /// The fault that the chaos flags made: `drop`, `malformed`, `rateLimit`, `disconnect`.
    pub(crate) chaos: Option<String>,
    /// Whether the stream was cut.
    pub(crate) interrupted: bool,
    /// Behind which piece it was to be cut.
    cut_after: Option<u64>,
    /// How many tool calls the answer had, or would have had.
    pub(crate) calls: usize,
    /// The request itself, in the form of OpenAI's wire.
    pub(crate) body: Value,
}

impl Entry {
    /// Whether the whole answer was sent.
    pub(crate) fn is_whole(&self) -> bool {
        self.status == 200 && self.chaos.is_none() && !self.interrupted
    }

    /// What a client has to make of a stream that was cut. The last piece before the cut never
    /// leaves the server; if that is the first, no answer has begun.
    pub(crate) fn cut(&self) -> Option<ModelErrorKind> {
        let begun = self.cut_after.is_some_and(|after| after > 1);
        let kind = if begun { ModelErrorKind::Truncated } else { ModelErrorKind::Transport };
        self.interrupted.then_some(kind)
    }

    /// The tool calls that were handed out whole.
    pub(crate) fn handed_out(&self) -> usize {
        if self.is_whole() { self.calls } else { 0 }
    }
}

/// All requests so far, in order.
pub(crate) fn journal(server: &Aimock) -> Vec<Entry> {
    let journal = server.journal();
    let entries = journal.as_array().expect("the journal is a list");
    entries.iter().map(entry).collect()
}

fn entry(entry: &Value) -> Entry {
    let (body, response) = (&entry["body"], &entry["response"]);
    let messages = body["messages"].as_array().expect("a request has messages");
    let user = messages.iter().rfind(|message| message["role"] == "user");
    Entry {
        user: user.map(|message| text(&message["content"])).unwrap_or_default(),
        streamed: body["stream"] == true,
        status: response["status"].as_u64().expect("an answer has a status"),
        chaos: response["chaosAction"].as_str().map(str::to_owned),
        interrupted: response["interrupted"] == true,
        cut_after: response["fixture"]["truncateAfterChunks"].as_u64(),
        calls: response["fixture"]["response"]["toolCalls"].as_array().map_or(0, Vec::len),
        body: body.clone(),
    }
}

/// A content, which is a text or a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
