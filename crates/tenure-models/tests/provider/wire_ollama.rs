//! Ollama's wire: what is sent, and what is understood.

use crate::provider::server::{Server, json as answer, lines};
use crate::provider::support::{Mode, ask, ask_with, conversation, model_of, providers_at, schema};
use serde_json::json;
use std::sync::Arc;
use tenure_core::model::{StopReason, Usage};

const HELLO: [&str; 3] = [
    r#"{"message":{"role":"assistant","content":"Hel"},"done":false}"#,
    r#"{"message":{"role":"assistant","content":"lo"},"done":false}"#,
    r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",
        "prompt_eval_count":26,"eval_count":10}"#,
];

#[tokio::test]
async fn a_conversation_is_sent_as_chat() {
    let server = Server::one(answer(&json!({
        "message": { "role": "assistant", "content": "{\"warm\":true}" },
        "done": true,
        "done_reason": "stop",
        "prompt_eval_count": 26,
        "eval_count": 10,
    })))
    .await;
    let asked = ask_with(model_of(&server, "ollama"), Mode::Whole, |request| {
        conversation(request);
        request.params.temperature = Some(0.2);
        request.params.max_tokens = Some(50);
        request.params.output_schema = Some(Arc::new(schema()));
        request.params.extra = Some(Arc::new(json!({ "options": { "num_ctx": 4096 } })));
    })
    .await;
    let response = asked.response();
    assert_eq!(response.content.text(), "{\"warm\":true}");
    // A model on this machine costs nothing.
    assert_eq!(response.usage, Usage::new(26, 10));
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/api/chat"));
    assert_eq!(
        seen.body,
        json!({
            "model": "llama3.2:1b",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Is it warm?" },
                { "role": "assistant", "content": "I will look.", "tool_calls": [
                    { "function": { "name": "weather", "arguments": { "city": "Paris" } } },
                    { "function": { "name": "weather", "arguments": { "city": "Atlantis" } } },
                ] },
                { "role": "tool", "tool_name": "weather", "content": "21 degrees" },
                { "role": "tool", "tool_name": "weather",
                  "content": "The call failed: no such city" },
            ],
            "stream": false,
            "options": { "temperature": 0.2, "num_predict": 50, "num_ctx": 4096 },
            "format": schema(),
            "tools": [{ "type": "function", "function": { "name": "weather",
                "description": "Says how warm it is.", "parameters": { "type": "object",
                    "properties": { "city": { "type": "string" } }, "required": ["city"] } } }],
        })
    );
    server.stop().await;
}

#[tokio::test]
async fn a_streamed_answer_comes_line_by_line() {
    let asked = ask("ollama", Mode::Streamed, lines(&HELLO)).await;
    assert_eq!(asked.deltas, ["Hel", "lo"]);
    let response = asked.response();
    assert_eq!((response.content.text(), response.stop), ("Hello", StopReason::EndTurn));
    assert_eq!(response.usage, Usage::new(26, 10));
}

#[tokio::test]
async fn calls_get_ids_of_their_own() {
    let frames = [
        r#"{"message":{"content":"","tool_calls":[
            {"function":{"name":"weather","arguments":{"city":"Rome"}}},
            {"function":{"name":"weather","arguments":{"city":"Rome"}}}]},"done":false}"#,
        r#"{"message":{"content":""},"done":true,"done_reason":"stop"}"#,
    ];
    let response = ask("ollama", Mode::Streamed, lines(&frames)).await.response();
    assert_eq!(response.stop, StopReason::ToolUse);
    // Without ids, two calls that look the same are two calls.
    assert_eq!(response.calls.len(), 2);
    assert_ne!(response.calls[0].id, response.calls[1].id);
    assert_eq!(response.calls[0].arguments, "{\"city\":\"Rome\"}");
    // And without counts, nobody knows what it cost.
    assert_eq!((response.usage.calls, response.usage.unpriced), (1, 1));
}

#[tokio::test]
async fn thinking_is_asked_for_as_ollama_knows_it() {
    let server = Server::one(lines(&HELLO)).await;
    let providers = providers_at(&server.url);
    for spec in ["ollama.qwen3?reasoning=on", "ollama.qwen3?reasoning=off", "ollama.gpt-oss.high"] {
        ask_with(providers.model(spec).unwrap(), Mode::Streamed, |_| {}).await.response();
    }
    let thinks: Vec<_> = server.seen().iter().map(|seen| seen.body["think"].clone()).collect();
    assert_eq!(thinks, [json!(true), json!(false), json!("high")]);
    server.stop().await;
}
