//! Streams that end too early, at every place where they can.

use crate::aimock::agents::{Lookup, Way, agent, started};
use crate::aimock::journal::journal;
use crate::aimock::server::Aimock;
use serde_json::{Value, json};

/// More pieces than any stream here has.
const PIECES: usize = 14;

/// A stream that is cut after so many pieces. Pieces come one by one, or the cut would come before
/// the first of them has left the server.
fn cut(user: &str, after: usize, response: Value) -> Value {
    json!({
        "match": { "userMessage": format!("{user} after {after}.") },
        "chunkSize": 6, "latency": 2, "truncateAfterChunks": after, "response": response,
    })
}

/// Runs a turn for every place of the cut, and says how many streams were cut.
async fn cuts(way: Way, user: &str, response: Value) -> usize {
    let fixtures: Vec<_> = (1..=PIECES).map(|after| cut(user, after, response.clone())).collect();
    let server = Aimock::start(&fixtures, &[]);
    let mut cuts = 0;
    for after in 1..=PIECES {
        let tool = Lookup::default();
        // One step: a tool that was called would show, and the turn would end there.
        let agent = started(agent(way.model(&server), &tool).max_steps(1)).await;
        let turn = way.run(agent.request(format!("{user} after {after}."))).await;
        agent.shutdown().await;
        let entries = journal(&server);
        let entry = entries.last().expect("there was a request");
        assert_eq!(entries.len(), after, "{way}: a cut stream is not tried again in silence");
        let Some(kind) = entry.cut() else {
            // The stream was shorter than that. It is whole, so the test sees what it can see.
            assert_eq!(tool.seen().len(), entry.handed_out(), "{way}, {after}");
            continue;
        };
        cuts += 1;
        let error = turn.result.expect_err("the stream was cut");
        let cause = error.model_error().unwrap_or_else(|| panic!("{way}, {after}: {error}"));
        assert_eq!(cause.kind(), kind, "{way}, {after}: {cause}");
        assert!(tool.seen().is_empty(), "{way}, {after}: a tool was called by a cut stream");
    }
    cuts
}

#[tokio::test]
async fn a_cut_stream_is_an_error_and_yields_no_tool_call() {
    let call = |key: &str| json!({ "name": "lookup", "arguments": { "key": key } });
    let calls = json!({ "toolCalls": [call("alpha"), call("beta")] });
    for way in [Way::OpenAiStream, Way::AnthropicStream] {
        let cuts = cuts(way, "call", calls.clone()).await;
        assert!(cuts >= 8, "{way}: only {cuts} streams were cut");
    }
}

#[tokio::test]
async fn a_cut_text_is_an_error_and_not_a_shorter_text() {
    let text = json!({ "content": "Forty-two is the answer to everything." });
    for way in [Way::OpenAiStream, Way::AnthropicStream] {
        let cuts = cuts(way, "speak", text.clone()).await;
        assert!(cuts >= 6, "{way}: only {cuts} streams were cut");
    }
}
