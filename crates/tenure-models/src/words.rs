//! Words, which stand in for tokens here.

use tenure_core::context::ModelCx;
use tenure_core::model::{ModelRequest, ModelResponse, Usage};

fn count(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// What the call would have cost if every word were a token.
pub(crate) fn usage(request: &ModelRequest, response: &ModelResponse) -> Usage {
    let messages = request.messages.iter().map(|message| {
        let calls = message.calls().iter().map(|call| count(&call.arguments));
        count(message.text()) + calls.sum::<u64>()
    });
    let input = count(request.instruction.as_deref().unwrap_or_default()) + messages.sum::<u64>();
    let calls = response.calls.iter().map(|call| count(&call.arguments));
    Usage::new(input, count(response.content.text()) + calls.sum::<u64>())
}

/// Hands `text` to whoever reads along, word by word.
pub(crate) fn say(cx: ModelCx<'_>, text: &str) {
    if cx.is_streaming() {
        for word in text.split_inclusive(char::is_whitespace) {
            cx.delta(word);
        }
    }
}
