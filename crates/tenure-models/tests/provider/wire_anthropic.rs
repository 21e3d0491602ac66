//! Anthropic's wire: what is sent, and what is understood.

use crate::provider::server::{Server, events, json as answer};
use crate::provider::support::{
    KEY, Mode, ask, ask_with, conversation, model_of, providers_at, result_of, schema,
};
use serde_json::json;
use std::sync::Arc;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Cost, StopReason, Usage};

const HELLO: [&str; 8] = [
    r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[],
        "usage":{"input_tokens":600,"cache_read_input_tokens":400,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":10}}"#,
    r#"{"type":"message_stop"}"#,
];

#[tokio::test]
async fn a_conversation_is_sent_as_messages() {
    let server = Server::one(answer(&json!({
        "content": [{ "type": "text", "text": "{\"warm\":true}" }],
        "stop_reason": "end_turn",
        "usage": { "input_tokens": 1, "output_tokens": 2 },
    })))
    .await;
    let asked = ask_with(model_of(&server, "anthropic"), Mode::Whole, |request| {
        conversation(request);
        request.params.temperature = Some(0.2);
        request.params.output_schema = Some(Arc::new(schema()));
        request.params.extra = Some(Arc::new(json!({ "metadata": { "user_id": "u" } })));
    })
    .await;
    assert_eq!(asked.response().content.text(), "{\"warm\":true}");
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(seen.header("x-api-key"), Some(KEY));
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(
        seen.body,
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 64_000,
            "system": "Be brief.",
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "Is it warm?" }] },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "I will look." },
                    { "type": "tool_use", "id": "call_1", "name": "weather",
                      "input": { "city": "Paris" } },
                    { "type": "tool_use", "id": "call_2", "name": "weather",
                      "input": { "city": "Atlantis" } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "call_1",
                      "content": "21 degrees", "is_error": false },
                    { "type": "tool_result", "tool_use_id": "call_2",
                      "content": "The call failed: no such city", "is_error": true },
                ] },
            ],
            "stream": false,
            "tools": [{ "name": "weather", "description": "Says how warm it is.",
                "input_schema": { "type": "object",
                    "properties": { "city": { "type": "string" } }, "required": ["city"] } }],
            "temperature": 0.2,
            "output_config": { "format": { "type": "json_schema", "schema": schema() } },
            "metadata": { "user_id": "u" },
        })
    );
    server.stop().await;
}

#[tokio::test]
async fn a_streamed_answer_comes_piece_by_piece_with_its_usage_and_its_cost() {
    let asked = ask("anthropic", Mode::Streamed, events(&HELLO)).await;
    assert_eq!(asked.deltas, ["Hel", "lo"]);
    let response = asked.response();
    assert_eq!((response.content.text(), response.stop), ("Hello", StopReason::EndTurn));
    // 600 at 3, 400 at 0.3 and 10 at 15 dollars a million.
    let cost = Cost::from_nano_usd(2_070_000);
    assert_eq!(response.usage, Usage { cached: 400, cost, ..Usage::new(1_000, 10) });
}

#[tokio::test]
async fn thoughts_before_a_call_go_back_with_it() {
    let frames = [
        r#"{"type":"message_start","message":{"usage":{"input_tokens":5}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Rome, "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"then."}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xx"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"weather","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"Rome\"}"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let server = Server::start(vec![events(&frames), events(&HELLO)]).await;
    let spec = "anthropic.claude-sonnet-4-5?reasoning=2000&temperature=0.3&max_tokens=500";
    let model = providers_at(&server.url).model(spec).unwrap();
    let first = ask_with(model.clone(), Mode::Streamed, |_| {}).await.response();
    assert_eq!(first.stop, StopReason::ToolUse);
    assert_eq!(first.content.text(), "");
    let (id, arguments) = (&*first.calls[0].id, first.calls[0].arguments.as_str());
    assert_eq!((id, arguments), ("t1", "{\"city\":\"Rome\"}"));
    let call = Message::Assistant { content: first.content, calls: first.calls };
    ask_with(model, Mode::Streamed, move |request| {
        request.messages = vec![Message::user("hi"), call.clone(), result_of("t1")].into();
    })
    .await
    .response();
    let seen = server.seen();
    assert_eq!(seen[0].body["thinking"], json!({ "type": "enabled", "budget_tokens": 2000 }));
    // The limit leaves room behind the thoughts, and a model that thinks has no temperature.
    assert_eq!(seen[0].body["max_tokens"], 2_500);
    assert_eq!(seen[0].body.get("temperature"), None);
    assert_eq!(
        seen[1].body["messages"][1]["content"],
        json!([
            { "type": "thinking", "thinking": "Rome, then.", "signature": "sig" },
            { "type": "redacted_thinking", "data": "xx" },
            { "type": "tool_use", "id": "t1", "name": "weather", "input": { "city": "Rome" } },
        ])
    );
    server.stop().await;
}

#[tokio::test]
async fn a_newer_model_is_told_an_effort() {
    let server = Server::one(events(&HELLO)).await;
    let model = providers_at(&server.url).model("sonnet?reasoning=high").unwrap();
    ask_with(model, Mode::Streamed, |_| {}).await.response();
    let body = server.only().body;
    assert_eq!(body["model"], "claude-sonnet-5");
    assert_eq!(body["thinking"], json!({ "type": "adaptive" }));
    assert_eq!(body["output_config"], json!({ "effort": "high" }));
    server.stop().await;
}

#[tokio::test]
async fn calls_in_one_piece_are_understood() {
    let asked = ask(
        "anthropic",
        Mode::Whole,
        answer(&json!({
            "content": [
                { "type": "text", "text": "Looking." },
                { "type": "tool_use", "id": "t1", "name": "weather", "input": { "city": "Rome" } },
            ],
            "stop_reason": "tool_use",
            "usage": { "input_tokens": 3, "output_tokens": 4 },
        })),
    )
    .await;
    let response = asked.response();
    assert_eq!(response.content.text(), "Looking.");
    assert_eq!(response.calls, [ToolCall::new("t1", "weather", "{\"city\":\"Rome\"}")]);
}

#[tokio::test]
async fn what_goes_into_a_cache_costs_more_than_what_is_read() {
    let asked = |creation: serde_json::Value| async move {
        let body = json!({
            "content": [{ "type": "text", "text": "x" }],
            "stop_reason": "end_turn",
            "usage": {
                "input_tokens": 600, "cache_creation_input_tokens": 400, "output_tokens": 10,
                "cache_creation": creation,
            },
        });
        ask("anthropic", Mode::Whole, answer(&body)).await.response().usage
    };
    // 600 at 3, 400 at 3.75 and 10 at 15 dollars a million.
    let cost = Cost::from_nano_usd(3_450_000);
    assert_eq!(asked(json!(null)).await, Usage { cost, ..Usage::new(1_000, 10) });
    // 100 of the 400 are kept for an hour, at 6 dollars.
    let hour = json!({ "ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 100 });
    assert_eq!(asked(hour).await.cost, Cost::from_nano_usd(3_675_000));
}
