//! Answers that end where they should not: at their token limit, without a reason, in the middle of
//! a line, or because something failed.

use crate::provider::server::{
    Server, Step, chunk, end, events, head, json as answer, lines, whole,
};
use crate::provider::support::{Mode, ask, ask_with, model_of};
use serde_json::json;
use std::time::Duration;
use tenure_core::message::ToolCall;
use tenure_core::model::{Cost, ModelErrorKind as Kind, StopReason};

/// A streamed answer of OpenAI's with one call, and what follows it.
fn openai_call(arguments: &str, rest: &[&str]) -> Vec<Step> {
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "weather", "arguments": arguments}}]}}]})
    .to_string();
    let mut frames = vec![call.as_str()];
    frames.extend(rest);
    events(&frames)
}

/// One of Anthropic's, whose call has these pieces of arguments and is ended.
fn anthropic_call(pieces: &[&str]) -> Vec<Step> {
    let mut frames = vec![
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a",
            "name":"weather","input":{}}}"#
            .to_owned(),
    ];
    frames.extend(pieces.iter().map(|piece| {
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": piece}})
        .to_string()
    }));
    frames.push(r#"{"type":"content_block_stop","index":0}"#.to_owned());
    frames.push(r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#.to_owned());
    frames.push(r#"{"type":"message_stop"}"#.to_owned());
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    events(&frames)
}

#[tokio::test]
async fn a_call_that_ran_into_the_token_limit_before_its_arguments_is_not_made() {
    let length = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;
    let openai = |arguments: &str| {
        answer(&json!({ "choices": [{
            "message": { "tool_calls": [
                { "id": "a", "function": { "name": "weather", "arguments": arguments } } ] },
            "finish_reason": "length",
        }]}))
    };
    let anthropic = |input: serde_json::Value| {
        answer(&json!({
            "content": [{ "type": "tool_use", "id": "a", "name": "weather", "input": input }],
            "stop_reason": "max_tokens",
        }))
    };
    let google = json!({ "candidates": [{
        "content": { "parts": [{ "functionCall": { "name": "weather", "args": {} } }] },
        "finishReason": "MAX_TOKENS",
    }]});
    let ollama = json!({
        "message": { "tool_calls": [{ "function": { "name": "weather", "arguments": {} } }] },
        "done": true, "done_reason": "length",
    });
    let cases = [
        ("openai", Mode::Streamed, openai_call("", &[length, "[DONE]"])),
        // It cannot say that a call is complete.
        ("openai", Mode::Streamed, openai_call("{}", &[length, "[DONE]"])),
        ("openai", Mode::Streamed, openai_call("{\"city\":\"Rome\"}", &[length, "[DONE]"])),
        ("openai", Mode::Whole, openai("")),
        ("openai", Mode::Whole, openai("{\"city\":\"Rome\"}")),
        ("anthropic", Mode::Streamed, anthropic_call(&[])),
        ("anthropic", Mode::Streamed, anthropic_call(&["", " "])),
        ("anthropic", Mode::Streamed, anthropic_call(&["{\"city\":"])),
        ("anthropic", Mode::Whole, anthropic(json!({}))),
        ("anthropic", Mode::Whole, anthropic(json!({ "city": "Ro" }))),
        ("google", Mode::Streamed, events(&[&google.to_string()])),
        ("google", Mode::Whole, answer(&google)),
        ("ollama", Mode::Streamed, lines(&[&ollama.to_string()])),
        ("ollama", Mode::Whole, answer(&ollama)),
    ];
    for (at, (wire, mode, steps)) in cases.into_iter().enumerate() {
        let asked = ask(wire, mode, steps).await;
        assert!(asked.answer.is_err(), "case {at}, {wire} {mode:?}: {asked:?}");
        assert_eq!(asked.kind(), Kind::Truncated, "case {at}, {wire} {mode:?}: {}", asked.error());
        assert!(asked.error().to_string().contains("max_tokens"), "{}", asked.error());
    }
}

#[tokio::test]
async fn a_call_that_is_complete_is_made_though_the_answer_was_cut_behind_it() {
    let steps = anthropic_call(&["{\"city\":", "\"Rome\"}"]);
    let response = ask("anthropic", Mode::Streamed, steps).await.response();
    assert_eq!(response.stop, StopReason::MaxTokens);
    assert_eq!(response.calls, [ToolCall::new("a", "weather", "{\"city\":\"Rome\"}")]);
}

#[tokio::test]
async fn a_call_needs_a_reason_to_stop() {
    let rome = "{\"city\":\"Rome\"}";
    let empty = r#"{"choices":[{"index":0,"delta":{},"finish_reason":""}]}"#;
    for rest in [vec!["[DONE]"], vec![empty, "[DONE]"]] {
        let asked = ask("openai", Mode::Streamed, openai_call(rome, &rest)).await;
        assert!(asked.answer.is_err(), "{rest:?}: {asked:?}");
        assert_eq!(asked.kind(), Kind::Truncated, "{}", asked.error());
    }
    let body = json!({ "choices": [{ "message": { "tool_calls": [
        { "id": "a", "function": { "name": "weather", "arguments": rome } } ] } }] });
    assert_eq!(ask("openai", Mode::Whole, answer(&body)).await.kind(), Kind::Truncated);
}

#[tokio::test]
async fn an_answer_that_ends_because_something_failed_is_an_error() {
    let cases = [
        ("error", Kind::Overloaded),
        ("server_error", Kind::Overloaded),
        ("abort", Kind::Overloaded),
        ("insufficient_system_resource", Kind::Overloaded),
        ("timeout", Kind::Timeout),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", Kind::Malformed),
    ];
    for (reason, kind) in cases {
        let choice = json!({ "index": 0, "delta": { "content": "So" }, "finish_reason": reason });
        let frame = json!({ "choices": [choice] }).to_string();
        let asked = ask("openai", Mode::Streamed, events(&[&frame, "[DONE]"])).await;
        assert!(asked.answer.is_err(), "{reason}: {asked:?}");
        assert_eq!(asked.kind(), kind, "{reason}: {}", asked.error());
        assert!(asked.error().to_string().contains(reason), "{}", asked.error());
        let choice = json!({ "message": { "content": "So" }, "finish_reason": reason });
        let asked = ask("openai", Mode::Whole, answer(&json!({ "choices": [choice] }))).await;
        assert_eq!(asked.kind(), kind, "{reason} in one piece");
    }
    // What failed may be said beside the reason.
    let frame = r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error",
        "error":{"code":429,"message":"too fast"}}]}"#;
    let asked = ask("openai", Mode::Streamed, events(&[frame, "[DONE]"])).await;
    assert_eq!((asked.kind(), asked.error().status()), (Kind::RateLimited, Some(429)));
    // What is filtered is withheld, also with a word about it, and other reasons are ordinary.
    for (reason, stop) in [
        ("content_filter", StopReason::Refused),
        ("content_filter: SAFETY", StopReason::Refused),
        ("eos", StopReason::EndTurn),
    ] {
        let choice = json!({ "message": { "content": "So" }, "finish_reason": reason });
        let asked = ask("openai", Mode::Whole, answer(&json!({ "choices": [choice] }))).await;
        assert_eq!(asked.response().stop, stop, "{reason}");
    }
}

#[tokio::test]
async fn what_is_left_of_a_line_is_no_event() {
    // The last line of each would end the answer, and lacks its end.
    let openai = r#"{"choices":[{"index":0,"delta":{"content":"So"},"finish_reason":"stop"}]}"#;
    let anthropic = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let google = r#"{"candidates":[{"content":{"parts":[{"text":"So"}]}}]}"#;
    let last = r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#;
    let cases = [
        ("openai", openai, "data: [DON"),
        ("openai", openai, "data: {\"choices\":[{\"ind"),
        ("anthropic", anthropic, "data: {\"type\":\"message_stop\"}"),
        ("anthropic", anthropic, "data: {\"type\":\"message_st"),
        ("google", google, &format!("data: {last}")),
        ("google", google, &format!("data: {}", &last[..30])),
        ("ollama", r#"{"message":{"content":"So"},"done":false}"#, "{\"done\":tr"),
    ];
    for (wire, first, rest) in cases {
        let (kind, before) = match wire {
            "ollama" => ("application/x-ndjson", format!("{first}\n")),
            _ => ("text/event-stream", format!("data: {first}\n\n")),
        };
        for last in [Some(end()), None] {
            let mut steps = vec![head(kind), chunk(&before), chunk(rest)];
            steps.extend(last);
            let server = Server::closing(steps).await;
            let asked = ask_with(model_of(&server, wire), Mode::Streamed, |_| {}).await;
            assert!(asked.answer.is_err(), "{wire} {rest}: {asked:?}");
            assert_eq!(asked.kind(), Kind::Truncated, "{wire} {rest}: {}", asked.error());
            server.stop().await;
        }
    }
}

#[tokio::test]
async fn a_wait_is_kept_whatever_the_error_is() {
    let cases = [
        (408, Kind::Timeout),
        (500, Kind::Overloaded),
        (502, Kind::Transport),
        (503, Kind::Overloaded),
        (504, Kind::Timeout),
        (400, Kind::BadRequest),
    ];
    for (status, kind) in cases {
        let asked =
            ask("openai", Mode::Whole, vec![whole(status, &[("retry-after", "7")], "{}")]).await;
        assert_eq!(asked.kind(), kind, "{status}");
        assert_eq!(asked.error().retry_after(), Some(Duration::from_secs(7)), "{status}");
    }
    let frame = r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"later",
        "details":[{"retryDelay":"3s"}]}}"#;
    let asked = ask("google", Mode::Streamed, events(&[frame])).await;
    assert_eq!(asked.kind(), Kind::Overloaded);
    assert_eq!(asked.error().retry_after(), Some(Duration::from_secs(3)));
    // A limit that is used up is not why a gateway failed.
    let limits = [("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6m0s")];
    let asked = ask("openai", Mode::Whole, vec![whole(502, &limits, "{}")]).await;
    assert_eq!((asked.kind(), asked.error().retry_after()), (Kind::Transport, None));
}

#[tokio::test]
async fn of_several_limits_that_were_hit_the_longest_wait_counts() {
    let limits = |requests, tokens| {
        [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", requests),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", tokens),
        ]
    };
    for limits in [limits("2s", "90s"), limits("1m30s", "20ms")] {
        let asked = ask("openai", Mode::Whole, vec![whole(429, &limits, "{}")]).await;
        assert_eq!(asked.error().retry_after(), Some(Duration::from_secs(90)), "{limits:?}");
    }
}

#[tokio::test]
async fn tokens_from_a_cache_are_not_charged_beyond_those_that_were_read() {
    let body = json!({
        "choices": [{ "message": { "content": "x" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 10,
            "prompt_tokens_details": { "cached_tokens": 4_000 } },
    });
    let usage = ask("openai", Mode::Whole, answer(&body)).await.response().usage;
    // 100 at 1.25 and 10 at 10 dollars a million.
    assert_eq!(usage.cost, Cost::from_nano_usd(225_000));
}
