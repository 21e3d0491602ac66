//! What servers answer, in words.

use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents, Role,
};
use tenure_core::message::Message;
use tenure_core::tool::ToolOutput;

/// How much of an answer a model gets to read.
const MOST: usize = 1 << 20;

/// The output of a tool: its texts; if there are none, what it answered as JSON.
pub(super) fn output(result: CallToolResult) -> ToolOutput {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let has_text = content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
    let mut parts: Vec<String> = content.into_iter().map(block).collect();
    if let Some(structured) = structured_content.filter(|_| !has_text) {
        parts.insert(0, structured.to_string());
    }
    let text = bounded(joined(parts));
    match is_error {
        Some(true) if text.is_empty() => ToolOutput::error("the tool failed and did not say why"),
        Some(true) => ToolOutput::error(text),
        _ => ToolOutput::text(text),
    }
}

/// The text of a resource.
pub(super) fn resource(read: ReadResourceResult) -> String {
    bounded(joined(read.contents.into_iter().map(contents).collect()))
}

/// The messages of a prompt.
pub(super) fn messages(got: GetPromptResult) -> Vec<Message> {
    let message = |it: rmcp::model::PromptMessage| match it.role {
        Role::Assistant => Message::assistant(bounded(block(it.content))),
        Role::User => Message::user(bounded(block(it.content))),
    };
    got.messages.into_iter().map(message).collect()
}

fn joined(mut parts: Vec<String>) -> String {
    match parts.len() {
        1 => parts.pop().unwrap_or_default(),
        _ => parts.join("\n"),
    }
}

/// One part of an answer. What is not text is described.
fn block(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => {
            format!("[an image, {}, {} bytes]", image.mime_type, decoded(&image.data))
        }
        ContentBlock::Audio(audio) => {
            format!("[audio, {}, {} bytes]", audio.mime_type, decoded(&audio.data))
        }
        ContentBlock::Resource(embedded) => contents(embedded.resource),
        ContentBlock::ResourceLink(link) => match link.description {
            Some(description) => format!("[resource {}: {} - {description}]", link.uri, link.name),
            None => format!("[resource {}: {}]", link.uri, link.name),
        },
        _ => "[something that cannot be shown]".to_owned(),
    }
}

fn contents(contents: ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => text,
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.as_deref().unwrap_or("of an unknown kind");
            format!("[resource {uri}, {kind}, {} bytes]", decoded(&blob))
        }
        _ => "[a resource that cannot be shown]".to_owned(),
    }
}

/// How many bytes these are in Base64.
fn decoded(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// A text that is not too long for a model. It says what is missing.
fn bounded(mut text: String) -> String {
    let whole = text.len();
    if whole > MOST {
        shorten(&mut text, MOST);
        text.push_str(&format!("\n[cut: {} of {whole} bytes are shown]", text.len()));
    }
    text
}

/// Cuts a text to this many bytes at most.
pub(super) fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: serde_json::Value) -> ToolOutput {
        output(serde_json::from_value(value).expect("a result"))
    }

    #[test]
    fn texts_are_joined_and_the_rest_is_described() {
        let mixed = of(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "resource_link", "uri": "demo://x", "name": "x" },
            { "type": "resource", "resource": { "uri": "demo://y", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "demo://z", "blob": "AAAA" } },
        ] }));
        let expected = "one\n[an image, image/png, 3 bytes]\n[resource demo://x: x]\ninside\n\
                        [resource demo://z, of an unknown kind, 3 bytes]";
        assert_eq!(mixed, ToolOutput::text(expected));
    }

    #[test]
    fn what_is_structured_is_shown_if_there_is_no_text() {
        let value = json!({ "content": [], "structuredContent": { "sum": 3 } });
        assert_eq!(of(value), ToolOutput::text(r#"{"sum":3}"#));
        let both = json!({
            "content": [{ "type": "text", "text": "three" }],
            "structuredContent": { "sum": 3 },
        });
        assert_eq!(of(both), ToolOutput::text("three"));
    }

    #[test]
    fn an_error_is_an_error_and_says_something() {
        let said = json!({ "content": [{ "type": "text", "text": "no" }], "isError": true });
        assert_eq!(of(said), ToolOutput::error("no"));
        let silent = of(json!({ "content": [], "isError": true }));
        assert_eq!(silent, ToolOutput::error("the tool failed and did not say why"));
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        let cut = bounded("ä".repeat(MOST));
        assert!(cut.len() < MOST + 100);
        assert!(cut.ends_with(&format!("[cut: {MOST} of {} bytes are shown]", 2 * MOST)));
    }
}
