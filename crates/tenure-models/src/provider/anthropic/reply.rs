//! What Anthropic answers, in one piece and piece by piece.

use super::super::answer::{CACHE_WRITE, Draft, DraftCall, count, keep, written};
use super::super::model::Call;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tenure_core::model::{ModelError, StopReason, Usage};

/// An event of a streamed answer.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Value,
    },
    ContentBlockStart {
        index: u32,
        content_block: Value,
    },
    ContentBlockDelta {
        index: u32,
        delta: Delta,
    },
    ContentBlockStop {
        index: u32,
    },
    MessageDelta {
        delta: Value,
        usage: Option<Value>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Other,
}

impl Delta {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text { text } => text.is_empty(),
            Self::InputJson { partial_json } => partial_json.is_empty(),
            Self::Thinking { thinking } => thinking.is_empty(),
            Self::Signature { signature } => signature.is_empty(),
            Self::Other => false,
        }
    }
}

/// A block of the answer.
enum Block {
    Text(String),
    Call {
        id: String,
        name: String,
        input: Value,
        pieces: String,
    },
    Thought {
        thinking: String,
        signature: String,
    },
    /// A thought that cannot be read, and has to be sent back as it is.
    Sealed(Value),
    Other,
}

/// What an event did for an answer.
pub(super) enum Step {
    /// It held nothing of it: a sign of life.
    Nothing,
    WentOn,
    Ended,
}

/// An answer that is being put together.
#[derive(Default)]
pub(super) struct Assembly {
    /// With the number that the server gave each, and whether it was ended.
    blocks: Vec<(u32, bool, Block)>,
    usage: Map<String, Value>,
    stop: Option<StopReason>,
}

impl Assembly {
    /// Takes an event, and hands its text on.
    pub(super) fn take(&mut self, call: Call<'_>, data: &[u8]) -> Result<Step, ModelError> {
        let blame = call.route.blame();
        let event: Event = serde_json::from_slice(data).map_err(|error| {
            blame.malformed(&format!("a piece of the answer cannot be read: {error}"))
        })?;
        match event {
            Event::MessageStart { message } => self.count(message.get("usage")),
            Event::ContentBlockStart { index, content_block } => {
                let block = open(&content_block);
                if let Block::Text(text) = &block
                    && !text.is_empty()
                {
                    call.cx.delta(text);
                }
                self.blocks.push((index, false, block));
            }
            Event::ContentBlockDelta { index, delta } => {
                let Some((_, _, block)) = self.blocks.iter_mut().rfind(|(at, ..)| *at == index)
                else {
                    return Err(blame.malformed("a piece of the answer belongs to no block"));
                };
                if delta.is_empty() {
                    return Ok(Step::Nothing);
                }
                match (block, delta) {
                    (Block::Text(text), Delta::Text { text: piece }) => {
                        call.cx.delta(&piece);
                        text.push_str(&piece);
                    }
                    (Block::Call { pieces, .. }, Delta::InputJson { partial_json }) => {
                        pieces.push_str(&partial_json);
                    }
                    (Block::Thought { thinking, .. }, Delta::Thinking { thinking: piece }) => {
                        thinking.push_str(&piece);
                    }
                    (Block::Thought { signature, .. }, Delta::Signature { signature: piece }) => {
                        signature.push_str(&piece);
                    }
                    _ => {}
                }
            }
            Event::ContentBlockStop { index } => {
                if let Some((_, ended, _)) = self.blocks.iter_mut().rfind(|(at, ..)| *at == index) {
                    *ended = true;
                }
            }
            Event::MessageDelta { delta, usage } => {
                if let Some(reason) = delta.get("stop_reason").and_then(Value::as_str) {
                    self.stop = Some(stop(reason));
                }
                self.count(usage.as_ref());
            }
            Event::MessageStop => return Ok(Step::Ended),
            Event::Error { error } => return Err(blame.reported(&error)),
            Event::Other => return Ok(Step::Nothing),
        }
        Ok(Step::WentOn)
    }

    /// Counts come in parts, the later ones more exact.
    fn count(&mut self, usage: Option<&Value>) {
        if let Some(Value::Object(usage)) = usage {
            let told = usage.iter().filter(|(_, value)| !value.is_null());
            self.usage.extend(told.map(|(key, value)| (key.clone(), value.clone())));
        }
    }

    /// The answer after its last event. Without a reason to stop it is none.
    pub(super) fn finish(self, call: Call<'_>) -> Result<Draft, ModelError> {
        let blame = call.route.blame();
        let stop = self.stop.ok_or_else(|| blame.truncated())?;
        let mut draft = Draft { stop, ..Draft::default() };
        let mut thoughts = Vec::new();
        for (_, ended, block) in self.blocks {
            match block {
                Block::Text(text) => draft.text.push_str(&text),
                Block::Thought { thinking, signature } => thoughts.push(json!({
                    "type": "thinking", "thinking": thinking, "signature": signature,
                })),
                Block::Sealed(block) => thoughts.push(block),
                Block::Call { .. } if !ended => return Err(blame.truncated()),
                Block::Call { id, name, input, pieces } => {
                    // The block of a call that was cut is ended, too.
                    let complete = !pieces.is_empty();
                    let arguments = if pieces.is_empty() { written(Some(input)) } else { pieces };
                    let mut what = Map::new();
                    if !thoughts.is_empty() {
                        what.insert("thoughts".to_owned(), std::mem::take(&mut thoughts).into());
                    }
                    let continuation = keep(call, what);
                    draft.calls.push(DraftCall { id, name, arguments, complete, continuation });
                }
                Block::Other => {}
            }
        }
        let at = |key: &str| count(self.usage.get(key));
        if !self.usage.is_empty() {
            // What was read from the cache, or written to it, is not in `input_tokens`.
            let cached = at("cache_read_input_tokens");
            let written = at("cache_creation_input_tokens");
            let input = at("input_tokens") + cached + written;
            // What is kept for five minutes costs a quarter more than what is read, and what is
            // kept for an hour costs twice as much.
            let kept = self.usage.get("cache_creation");
            let long = count(kept.and_then(|kept| kept.get("ephemeral_1h_input_tokens")));
            let long = long.min(written);
            draft.surcharge = (written - long) as f64 * CACHE_WRITE + long as f64;
            draft.usage = Some(Usage { cached, ..Usage::new(input, at("output_tokens")) });
        }
        Ok(draft)
    }
}

/// An answer in one piece.
pub(super) fn whole(call: Call<'_>, body: &Value) -> Result<Draft, ModelError> {
    let Some(content) = body.get("content").and_then(Value::as_array) else {
        return Err(call.route.blame().malformed("the server's answer holds no content"));
    };
    let mut assembly = Assembly::default();
    for (at, block) in (0..).zip(content) {
        assembly.blocks.push((at, true, open(block)));
    }
    assembly.count(body.get("usage"));
    assembly.stop = body.get("stop_reason").and_then(Value::as_str).map(stop);
    assembly.finish(call)
}

fn open(block: &Value) -> Block {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match block.get("type").and_then(Value::as_str) {
        Some("text") => Block::Text(text("text")),
        Some("tool_use") => Block::Call {
            id: text("id"),
            name: text("name"),
            input: block.get("input").cloned().unwrap_or_else(|| json!({})),
            pieces: String::new(),
        },
        Some("thinking") => {
            Block::Thought { thinking: text("thinking"), signature: text("signature") }
        }
        Some("redacted_thinking") => Block::Sealed(block.clone()),
        _ => Block::Other,
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "tool_use" => StopReason::ToolUse,
        "refusal" => StopReason::Refused,
        _ => StopReason::EndTurn,
    }
}
