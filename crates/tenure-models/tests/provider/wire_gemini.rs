//! Gemini's wire: what is sent, and what is understood.

use crate::server::{Server, events};
use crate::support::{KEY, Mode, ask, ask_with, conversation, model_of, result_of, schema};
use serde_json::json;
use std::sync::Arc;
use tenure_core::message::Message;
use tenure_core::model::{Cost, StopReason, Usage};

const HELLO: [&str; 2] = [
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"}]}}]}"#,
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"lo"}]},"finishReason":"STOP"}],
        "usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":400,
        "candidatesTokenCount":6,"thoughtsTokenCount":4,"totalTokenCount":1010}}"#,
];

#[tokio::test]
async fn a_conversation_is_sent_as_contents() {
    let frame = r#"{"candidates":[{"content":{"parts":[{"text":"{\"warm\":true}"}]},"finishReason":"STOP"}]}"#;
    let server = Server::one(events(&[frame])).await;
    let asked = ask_with(model_of(&server, "google"), Mode::Streamed, |request| {
        conversation(request);
        request.params.temperature = Some(0.2);
        request.params.max_tokens = Some(50);
        request.params.output_schema = Some(Arc::new(schema()));
        request.params.extra = Some(Arc::new(json!({ "safetySettings": [] })));
    })
    .await;
    assert_eq!(asked.response().text, "{\"warm\":true}");
    let seen = server.only();
    let path = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse";
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", path));
    assert_eq!(seen.header("x-goog-api-key"), Some(KEY));
    let body = &seen.body;
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
    assert_eq!(body["safetySettings"], json!([]));
    assert_eq!(body["generationConfig"]["temperature"], 0.2);
    assert_eq!(body["generationConfig"]["maxOutputTokens"], 50);
    assert_eq!(body["generationConfig"]["responseMimeType"], "application/json");
    assert_eq!(body["generationConfig"]["responseJsonSchema"], schema());
    assert_eq!(body["tools"][0]["functionDeclarations"][0]["name"], "weather");
    let contents = &body["contents"];
    assert_eq!(contents[0], json!({ "role": "user", "parts": [{ "text": "Is it warm?" }] }));
    assert_eq!(contents[1]["role"], "model");
    assert_eq!(contents[1]["parts"][1]["functionCall"]["args"], json!({ "city": "Paris" }));
    // Both results are in one message, and the one that failed says so.
    let results = contents[2]["parts"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["functionResponse"]["name"], "weather");
    assert_eq!(results[0]["functionResponse"]["response"]["content"], "21 degrees");
    let failed = &results[1]["functionResponse"]["response"]["content"];
    assert_eq!(failed, "The call failed: no such city");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_comes_with_its_usage_and_its_cost_whether_somebody_reads_along_or_not() {
    for mode in [Mode::Streamed, Mode::Whole] {
        let asked = ask("google", mode, events(&HELLO)).await;
        if mode == Mode::Streamed {
            assert_eq!(asked.deltas, ["Hel", "lo"]);
        }
        let response = asked.response();
        assert_eq!((response.text.as_str(), response.stop), ("Hello", StopReason::EndTurn));
        // 600 at 2, 400 at 0.2 and 10 at 12 dollars a million.
        let cost = Cost::from_nano_usd(1_400_000);
        assert_eq!(
            response.usage,
            Usage { cached: 400, reasoning: 4, cost, ..Usage::new(1_000, 10) }
        );
    }
}

#[tokio::test]
async fn calls_of_one_tool_in_two_pieces_are_two_calls_and_their_signature_goes_back() {
    // Gemini gives no ids, and what is made up for them is the same in each piece.
    let call = |city: &str, extra: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":
            {{"name":"weather","args":{{"city":"{city}"}}}}{extra}}}]}}}}]}}"#
        )
    };
    let frames = [
        call("Rome", r#","thoughtSignature":"sig""#),
        call("Oslo", ""),
        r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#.to_owned(),
    ];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let server = Server::start(vec![events(&frames), events(&HELLO)]).await;
    let first = ask_with(model_of(&server, "google"), Mode::Streamed, |_| {}).await.response();
    let arguments: Vec<&str> = first.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, ["{\"city\":\"Rome\"}", "{\"city\":\"Oslo\"}"]);
    assert_ne!(first.calls[0].id, first.calls[1].id);
    let history = vec![
        Message::user("hi"),
        Message::Assistant { text: String::new(), calls: first.calls.clone() },
        result_of(&first.calls[0].id),
        result_of(&first.calls[1].id),
    ];
    ask_with(model_of(&server, "google"), Mode::Whole, move |request| {
        request.messages = history.clone().into();
    })
    .await
    .response();
    let parts = &server.seen()[1].body["contents"][1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "sig");
    assert_eq!(parts[0]["functionCall"]["args"], json!({ "city": "Rome" }));
    assert_eq!(parts[1].get("thoughtSignature"), None);
    server.stop().await;
}

#[tokio::test]
async fn what_safety_withholds_is_refused() {
    let frame = r#"{"candidates":[{"finishReason":"SAFETY"}]}"#;
    let response = ask("google", Mode::Streamed, events(&[frame])).await.response();
    assert_eq!((response.text.as_str(), response.stop), ("", StopReason::Refused));
}
