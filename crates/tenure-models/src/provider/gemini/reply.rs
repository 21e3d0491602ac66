//! What Gemini answers, in one piece and piece by piece: the pieces have the form of the whole.

use super::super::answer::{Draft, DraftCall, count, exact, is_filled, keep, written};
use super::super::model::Call;
use serde::Deserialize;
use serde_json::{Map, Value};
use tenure_core::model::{ModelError, StopReason, Usage};

/// An answer, or a piece of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Map<String, Value>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: u32,
    content: Option<Content>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    /// Whether the text is what the model thinks, and not what it says.
    #[serde(default)]
    thought: bool,
    function_call: Option<FunctionCall>,
    thought_signature: Option<String>,
}

impl Part {
    /// Whether it holds anything of the answer, or of what the model thinks.
    fn is_filled(&self) -> bool {
        let texts = [&self.text, &self.thought_signature];
        self.function_call.is_some() || texts.into_iter().flatten().any(|text| !text.is_empty())
    }
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    #[serde(default)]
    name: String,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

/// An answer that is being put together.
#[derive(Default)]
pub(super) struct Assembly {
    text: String,
    calls: Vec<DraftCall>,
    usage: Map<String, Value>,
    stop: Option<StopReason>,
}

impl Assembly {
    /// Whether the server has said why the answer ends.
    pub(super) fn is_ended(&self) -> bool {
        self.stop.is_some()
    }

    /// Takes a piece, and hands its text on. Says whether it held anything of the answer.
    pub(super) fn take(&mut self, call: Call<'_>, data: &[u8]) -> Result<bool, ModelError> {
        let piece: Value = serde_json::from_slice(&exact(data)).map_err(|error| {
            let what = format!("a piece of the answer cannot be read: {error}");
            call.route.blame().malformed(&what)
        })?;
        self.add(call, &piece)
    }

    fn add(&mut self, call: Call<'_>, piece: &Value) -> Result<bool, ModelError> {
        let blame = call.route.blame();
        let chunk = Chunk::deserialize(piece).map_err(|error| {
            blame.malformed(&format!("a piece of the answer cannot be read: {error}"))
        })?;
        if chunk.error.is_some_and(|error| !error.is_null()) {
            return Err(blame.reported(piece));
        }
        // Each piece counts everything up to itself, and may leave out what it has said before.
        self.usage.extend(chunk.usage_metadata.unwrap_or_default());
        if chunk.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some()) {
            self.stop = Some(StopReason::Refused);
        }
        let mut went_on = false;
        for candidate in chunk.candidates.into_iter().filter(|candidate| candidate.index == 0) {
            for part in candidate.content.into_iter().flat_map(|content| content.parts) {
                went_on |= part.is_filled();
                self.add_part(call, part);
            }
            let Some(reason) = candidate.finish_reason else { continue };
            match ending(&reason) {
                Ending::Unsaid => {}
                Ending::Stop(stop) => self.stop = Some(stop),
                Ending::Failed(what) => {
                    let said = candidate.finish_message.unwrap_or_default();
                    return Err(blame.malformed(&format!("{what} ({reason}) {said}")));
                }
            }
        }
        Ok(went_on)
    }

    fn add_part(&mut self, call: Call<'_>, part: Part) {
        if let Some(text) = part.text.filter(|text| !text.is_empty() && !part.thought) {
            call.cx.delta(&text);
            self.text.push_str(&text);
        }
        let Some(made) = part.function_call else { return };
        let id = made.id.unwrap_or_default();
        let mut what = Map::new();
        if let Some(signature) = part.thought_signature.filter(|text| !text.is_empty()) {
            // Another model does not take it.
            what.insert("model".to_owned(), call.route.target.model.clone().into());
            what.insert("signature".to_owned(), signature.into());
        }
        if !id.is_empty() {
            what.insert("id".to_owned(), id.clone().into());
        }
        // A call comes in one piece. Whether one without arguments was to have some is not said.
        let complete = made.args.as_ref().is_some_and(is_filled);
        let arguments = written(made.args);
        let continuation = keep(call, what);
        self.calls.push(DraftCall { id, name: made.name, arguments, complete, continuation });
    }

    /// The answer after its last piece. Without a reason to stop it is none.
    pub(super) fn finish(self, call: Call<'_>) -> Result<Draft, ModelError> {
        let stop = self.stop.ok_or_else(|| call.route.blame().truncated())?;
        let at = |key: &str| count(self.usage.get(key));
        let usage = (!self.usage.is_empty()).then(|| {
            // Thoughts are not among the tokens of the answer, and neither is what a tool of the
            // server's own read among those of the question.
            let reasoning = at("thoughtsTokenCount");
            let input = at("promptTokenCount") + at("toolUsePromptTokenCount");
            let output = at("candidatesTokenCount") + reasoning;
            let cached = at("cachedContentTokenCount");
            Usage { cached, reasoning, ..Usage::new(input, output) }
        });
        Ok(Draft { text: self.text, calls: self.calls, usage, stop, ..Draft::default() })
    }
}

/// An answer in one piece; or in several that came as a list, which is how a server streams that
/// does not know events.
pub(super) fn whole(call: Call<'_>, body: &Value) -> Result<Draft, ModelError> {
    let one = std::slice::from_ref(body);
    let pieces = body.as_array().map_or(one, Vec::as_slice);
    let known = ["candidates", "promptFeedback", "error"];
    if !pieces.iter().any(|piece| known.iter().any(|key| piece.get(key).is_some())) {
        return Err(call.route.blame().malformed("the server's answer holds no candidate"));
    }
    let mut assembly = Assembly::default();
    let quiet = Call { cx: call.cx.quiet(), ..call };
    for piece in pieces {
        assembly.add(quiet, piece)?;
    }
    assembly.finish(call)
}

/// What a reason to stop stands for.
enum Ending {
    Unsaid,
    Stop(StopReason),
    /// The model did not get to the end of what it had to say.
    Failed(&'static str),
}

fn ending(reason: &str) -> Ending {
    match reason {
        "" | "FINISH_REASON_UNSPECIFIED" => Ending::Unsaid,
        "MAX_TOKENS" => Ending::Stop(StopReason::MaxTokens),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
            Ending::Stop(StopReason::Refused)
        }
        image if image.starts_with("IMAGE_") => Ending::Stop(StopReason::Refused),
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE" => {
            Ending::Failed("the model wrote a tool call that cannot be read")
        }
        "MALFORMED_RESPONSE" | "OTHER" => Ending::Failed("the model stopped before its end"),
        _ => Ending::Stop(StopReason::EndTurn),
    }
}
