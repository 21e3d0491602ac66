//! OpenAI's wire: what is sent, and what is understood.

use crate::provider::server::{Server, events, json as answer};
use crate::provider::support::{
    KEY, Mode, ask, ask_with, conversation, model_of, providers_at, schema,
};
use serde_json::json;
use std::sync::Arc;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{StopReason, Usage};

const HELLO: [&str; 4] = [
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":10,
        "prompt_tokens_details":{"cached_tokens":400},"completion_tokens_details":{"reasoning_tokens":4}}}"#,
    "[DONE]",
];

fn usage_of_hello() -> Usage {
    // gpt-4o: 600 at 2.5, 400 at 1.25 and 10 at 10 dollars a million.
    let cost = tenure_core::model::Cost::from_nano_usd(2_100_000);
    Usage { cached: 400, reasoning: 4, cost, ..Usage::new(1_000, 10) }
}

#[tokio::test]
async fn a_conversation_is_sent_as_chat_completions() {
    let server = Server::one(answer(&json!({
        "choices": [{ "message": { "content": "yes" }, "finish_reason": "stop" }],
    })))
    .await;
    let asked = ask_with(model_of(&server, "openai"), Mode::Whole, |request| {
        conversation(request);
        request.params.temperature = Some(0.1);
        request.params.max_tokens = Some(99);
        request.params.output_schema = None;
        request.params.extra = Some(Arc::new(json!({ "seed": 7, "metadata": { "a": "b" } })));
    })
    .await;
    assert_eq!(asked.response().content.text(), "yes");
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert!(seen.header("user-agent").unwrap().starts_with("tenure/"));
    assert_eq!(
        seen.body,
        json!({
            "model": "gpt-4o",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Is it warm?" },
                { "role": "assistant", "content": "I will look.", "tool_calls": [
                    { "id": "call_1", "type": "function",
                      "function": { "name": "weather", "arguments": "{\"city\":\"Paris\"}" } },
                    { "id": "call_2", "type": "function",
                      "function": { "name": "weather", "arguments": "{\"city\":\"Atlantis\"}" } },
                ] },
                { "role": "tool", "tool_call_id": "call_1", "content": "21 degrees" },
                { "role": "tool", "tool_call_id": "call_2",
                  "content": "The call failed: no such city" },
            ],
            "stream": false,
            "tools": [{ "type": "function", "function": {
                "name": "weather",
                "description": "Says how warm it is.",
                "parameters": { "type": "object",
                    "properties": { "city": { "type": "string" } }, "required": ["city"] },
            } }],
            "max_tokens": 99,
            "temperature": 0.1,
            "seed": 7,
            "metadata": { "a": "b" },
        })
    );
    server.stop().await;
}

#[tokio::test]
async fn a_streamed_answer_comes_piece_by_piece_with_its_usage_and_its_cost() {
    let server = Server::one(events(&HELLO)).await;
    let asked = ask_with(model_of(&server, "openai"), Mode::Streamed, |_| {}).await;
    assert_eq!(asked.deltas, ["Hel", "lo"]);
    let response = asked.response();
    assert_eq!((response.content.text(), response.stop), ("Hello", StopReason::EndTurn));
    assert_eq!(response.usage, usage_of_hello());
    let body = server.only().body;
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"], json!({ "include_usage": true }));
    server.stop().await;
}

#[tokio::test]
async fn an_answer_in_one_piece_has_calls_usage_and_a_reason_to_stop() {
    let asked = ask(
        "openai",
        Mode::Whole,
        answer(&json!({
            "choices": [{
                "message": { "content": null, "tool_calls": [
                    { "id": "a", "type": "function",
                      "function": { "name": "weather", "arguments": "{\"city\":\"Rome\"}" } },
                    { "id": "b", "type": "function",
                      "function": { "name": "weather", "arguments": "" } },
                ] },
                "finish_reason": "tool_calls",
            }],
            "usage": { "prompt_tokens": -3, "completion_tokens": 2 },
        })),
    )
    .await;
    let response = asked.response();
    assert_eq!(
        response.calls,
        [ToolCall::new("a", "weather", "{\"city\":\"Rome\"}"), ToolCall::new("b", "weather", "{}")]
    );
    assert_eq!(response.stop, StopReason::ToolUse);
    // A negative count is none.
    assert_eq!((response.usage.input, response.usage.output), (0, 2));
}

#[tokio::test]
async fn streamed_calls_are_put_together_also_where_they_alternate() {
    let part = |index: u32, id: &str, name: &str, arguments: &str| {
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}}]})
        .to_string()
    };
    let piece = |index: u32, arguments: &str| {
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": index, "function": {"arguments": arguments}}]}}]})
        .to_string()
    };
    let frames = [
        part(0, "a", "weather", "{\"city\":"),
        part(1, "b", "weather", ""),
        piece(1, "{\"city\":\"Rome\"}"),
        piece(0, "\"Paris\"}"),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}).to_string(),
        "[DONE]".to_owned(),
    ];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let response = ask("openai", Mode::Streamed, events(&frames)).await.response();
    assert_eq!(
        response.calls,
        [
            ToolCall::new("a", "weather", "{\"city\":\"Paris\"}"),
            ToolCall::new("b", "weather", "{\"city\":\"Rome\"}"),
        ]
    );
}

#[tokio::test]
async fn a_schema_is_sent_and_what_does_not_fit_json_is_refused() {
    let reply = |text: &str| {
        answer(&json!({
            "choices": [{ "message": { "content": text }, "finish_reason": "stop" }],
        }))
    };
    let replies =
        vec![reply("{\"warm\":true}"), reply("```json\n{\"warm\":true}\n```"), reply("warm!")];
    let server = Server::start(replies).await;
    let with_schema = |request: &mut tenure_core::model::ModelRequest| {
        request.params.output_schema = Some(Arc::new(schema()));
    };
    for _ in 0..2 {
        let asked = ask_with(model_of(&server, "openai"), Mode::Whole, with_schema).await;
        assert_eq!(asked.response().content.text(), "{\"warm\":true}");
    }
    let asked = ask_with(model_of(&server, "openai"), Mode::Whole, with_schema).await;
    assert_eq!(asked.kind(), tenure_core::model::ModelErrorKind::Malformed);
    assert_eq!(
        server.seen()[0].body["response_format"],
        json!({ "type": "json_schema",
            "json_schema": { "name": "answer", "schema": schema(), "strict": true } })
    );
    server.stop().await;
}

#[tokio::test]
async fn what_a_model_string_says_is_sent_and_a_request_may_say_otherwise() {
    let server = Server::one(events(&HELLO)).await;
    let spec = "openai.o3-mini?reasoning=high&temperature=0.5&max_tokens=7&service_tier=fast";
    let model = providers_at(&server.url).model(spec).unwrap();
    ask_with(model.clone(), Mode::Streamed, |_| {}).await.response();
    ask_with(model.clone(), Mode::Streamed, |request| {
        request.params.temperature = Some(1.0);
        request.params.model = Some("gpt-4o-mini".into());
    })
    .await
    .response();
    ask_with(model, Mode::Streamed, |request| request.params.model = Some("my-tuned".into()))
        .await
        .response();
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies[0]["reasoning_effort"], "high");
    assert_eq!(bodies[0]["max_completion_tokens"], 7);
    assert_eq!(bodies[0]["temperature"], 0.5);
    assert_eq!(bodies[0]["service_tier"], "priority");
    assert_eq!(
        (&bodies[1]["model"], &bodies[1]["temperature"]),
        (&json!("gpt-4o-mini"), &json!(1.0))
    );
    assert_eq!(bodies[1].get("reasoning_effort"), None);
    assert_eq!(bodies[2]["model"], "my-tuned");
    server.stop().await;
}

#[tokio::test]
async fn thoughts_before_a_call_go_back_with_it_to_the_same_provider_only() {
    let frames = [
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"Hm, "}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"Rome."}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","extra_content":
            {"google":{"thought_signature":"sig"}},"function":{"name":"weather","arguments":"{}"}}]},
            "finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]
    .map(|frame| frame.replace('\n', " "));
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let server = Server::start(vec![events(&frames), events(&HELLO)]).await;
    let first = ask_with(model_of(&server, "openai"), Mode::Streamed, |_| {}).await.response();
    let history = vec![
        Message::user("hi"),
        Message::Assistant { content: first.content, calls: first.calls },
        crate::provider::support::result_of("a"),
    ];
    let again = history.clone();
    ask_with(model_of(&server, "openai"), Mode::Streamed, move |request| {
        request.messages = again.clone().into();
    })
    .await
    .response();
    let providers = providers_at(&server.url);
    let other = providers.model("ollama.llama3.2").unwrap();
    let _ = ask_with(other, Mode::Whole, move |request| request.messages = history.clone().into())
        .await;
    let seen = server.seen();
    let message = &seen[1].body["messages"][1];
    assert_eq!(message["reasoning_content"], "Hm, Rome.");
    assert_eq!(message["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "sig");
    let other = seen[2].body.to_string();
    assert!(!other.contains("Hm, Rome.") && !other.contains("sig\""), "{other}");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood_all_the_same() {
    let body = json!({
        "choices": [{ "message": { "content": "all at once" }, "finish_reason": "stop" }],
    });
    let asked = ask("openai", Mode::Streamed, answer(&body)).await;
    assert_eq!(asked.deltas, ["all at once"]);
    assert_eq!(asked.response().content.text(), "all at once");
}

#[tokio::test]
async fn a_refusal_is_no_answer() {
    let body = json!({
        "choices": [{ "message": { "content": null, "refusal": "I will not." }, "finish_reason": "stop" }],
    });
    let response = ask("openai", Mode::Whole, answer(&body)).await.response();
    assert_eq!((response.content.text(), response.stop), ("I will not.", StopReason::Refused));
}

#[tokio::test]
async fn a_price_that_is_not_known_is_counted_as_such() {
    let server = Server::one(events(&HELLO)).await;
    let model = providers_at(&server.url).model("openai.gpt-99").unwrap();
    let usage = ask_with(model, Mode::Streamed, |_| {}).await.response().usage;
    assert_eq!((usage.input, usage.cost.nano_usd(), usage.unpriced), (1_000, 0, 1));
    server.stop().await;
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::one(events(&HELLO)).await;
    let model = model_of(&server, "openai");
    for _ in 0..3 {
        ask_with(model.clone(), Mode::Streamed, |_| {}).await.response();
    }
    assert_eq!(server.connections(), 1);
    server.stop().await;
}

#[tokio::test]
async fn what_is_withheld_is_not_called_and_what_goes_into_a_cache_costs_more() {
    let body = json!({
        "choices": [{
            "message": { "content": null, "tool_calls": [
                { "id": "a", "function": { "name": "weather", "arguments": "{\"ci" } },
            ]},
            "finish_reason": "content_filter",
        }],
        "usage": {
            "prompt_tokens": 1000, "completion_tokens": 10,
            "prompt_tokens_details": { "cache_write_tokens": 400 },
        },
    });
    let response = ask("openai", Mode::Whole, answer(&body)).await.response();
    assert_eq!((response.stop, response.calls.len()), (StopReason::Refused, 0));
    // 600 at 2.5, 400 at 3.125 and 10 at 10 dollars a million.
    assert_eq!(response.usage.cost, tenure_core::model::Cost::from_nano_usd(2_850_000));
}
