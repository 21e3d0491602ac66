//! Servers that misbehave, each in one way. Whatever they do, the call ends with an error that has
//! a type, or with an answer that is right.
//!
//! | what goes wrong | wires where it can | test |
//! |---|---|---|
//! | an HTTP error to a streamed request loses its status and its wait | all | `a_rate_limit_has_its_type_and_its_wait_streamed_or_not`, `each_status_has_its_type` |
//! | the connection ends before the answer does, and nothing says so | all | `a_cut_stream_is_an_error_and_yields_no_tool_call` |
//! | calls are counted from one, and the first is made twice | OpenAI, Anthropic: only they count | `calls_that_are_counted_from_one_are_made_once` |
//! | half of a call's arguments is handed on as if it were all | all | `half_of_the_arguments_is_no_call` |
//! | calls come without ids, with the same one, or twice | all | `a_call_without_an_id_gets_one_and_a_repeated_one_is_made_once` |
//! | an error in mid-stream has no type, and the answer goes on behind it | all | `an_error_in_mid_stream_ends_the_answer_whatever_follows`, `a_limit_in_mid_stream_is_a_rate_limit` |
//! | a call that failed is sent back as if it had gone well | all | `a_call_that_failed_is_sent_back_as_one` |
//! | an integer of more than 64 bits loses digits | those whose arguments are objects | `an_integer_of_any_length_keeps_its_digits` |
//! | token counts are larger than 32 bits, negative or fractions | all | `token_counts_of_any_form_are_read` |
//! | a key that a server repeats is shown or logged | all | `a_key_that_a_server_repeats_is_not_shown` |
//!
//! What a library turns on in other crates behind one's back cannot go wrong here: each wire is
//! written on the HTTP client alone, and the order of a JSON object's fields is never relied upon.

use crate::provider::server::{Server, Step, chunk, end, events, head, lines, whole};
use crate::provider::support::{KEY, Mode, WIRES, ask, ask_with, conversation, model_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::message::ToolCall;
use tenure_core::model::ModelErrorKind as Kind;

const JSON: (&str, &str) = ("content-type", "application/json");
const BOTH: [Mode; 2] = [Mode::Streamed, Mode::Whole];

/// The first half of an answer, by wire, without the mark of its end.
fn begun(wire: &str) -> Vec<Step> {
    let mut steps = match wire {
        "openai" => events(&[
            r#"{"choices":[{"index":0,"delta":{"content":"Hel"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":
                {"name":"weather","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
        ]),
        "anthropic" => events(&[
            r#"{"type":"message_start","message":{"usage":{"input_tokens":5}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a",
                "name":"weather","input":{}}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        ]),
        "google" => events(&[
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather","args":{}}}]}}]}"#,
        ]),
        _ => lines(&[
            r#"{"message":{"content":"","tool_calls":[{"function":{"name":"weather","arguments":{}}}]},
                "done":false}"#,
        ]),
    };
    steps.pop();
    steps
}

#[tokio::test]
async fn a_rate_limit_has_its_type_and_its_wait_streamed_or_not() {
    let body = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
    for wire in WIRES {
        for mode in BOTH {
            let steps = vec![whole(429, &[JSON, ("retry-after", "7")], body)];
            let asked = ask(wire, mode, steps).await;
            let error = asked.error();
            assert_eq!(error.kind(), Kind::RateLimited, "{wire} {mode:?}");
            assert_eq!(error.status(), Some(429), "{wire} {mode:?}");
            assert_eq!(error.retry_after(), Some(Duration::from_secs(7)), "{wire} {mode:?}");
            let said = error.to_string();
            assert!(said.ends_with("slow down; the provider asks to wait 7s"), "{said}");
        }
    }
}

#[tokio::test]
async fn each_status_has_its_type() {
    let cases = [
        (400, "{}", Kind::BadRequest),
        (401, "{}", Kind::Auth),
        (403, "{}", Kind::Auth),
        (404, "{\"error\":\"model not found\"}", Kind::BadRequest),
        (413, "{}", Kind::BadRequest),
        (422, "{}", Kind::BadRequest),
        (429, r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#, Kind::Auth),
        (500, "oops", Kind::Overloaded),
        (502, "<html>bad gateway</html>", Kind::Transport),
        (503, "{}", Kind::Overloaded),
        (504, "{}", Kind::Timeout),
        (529, r#"{"error":{"type":"overloaded_error"}}"#, Kind::Overloaded),
    ];
    for wire in WIRES {
        for (status, body, kind) in cases {
            let asked = ask(wire, Mode::Streamed, vec![whole(status, &[JSON], body)]).await;
            assert_eq!(asked.kind(), kind, "{wire} {status}");
            assert_eq!(asked.error().status(), Some(status), "{wire} {status}");
        }
    }
}

#[tokio::test]
async fn a_cut_stream_is_an_error_and_yields_no_tool_call() {
    for wire in WIRES {
        // Once as HTTP ends an answer, and once as a connection is lost.
        for last in [vec![end()], vec![]] {
            let mut steps = begun(wire);
            steps.extend(last.clone());
            let server = Server::closing(steps).await;
            let asked = ask_with(model_of(&server, wire), Mode::Streamed, |_| {}).await;
            assert_eq!(asked.kind(), Kind::Truncated, "{wire} {last:?}: {}", asked.error());
            assert!(asked.error().is_retryable());
            server.stop().await;
        }
    }
}

#[tokio::test]
async fn calls_that_are_counted_from_one_are_made_once() {
    let openai = [
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"a","function":
            {"name":"weather","arguments":"{\"city\":"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":
            {"arguments":"\"Rome\"}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ];
    let anthropic = [
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a",
            "name":"weather","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":
            {"type":"input_json_delta","partial_json":"{\"city\":\"Rome\"}"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    for (wire, steps) in [("openai", events(&openai)), ("anthropic", events(&anthropic))] {
        let response = ask(wire, Mode::Streamed, steps).await.response();
        let rome = ToolCall::new("a", "weather", "{\"city\":\"Rome\"}");
        assert_eq!(response.calls, [rome], "{wire}");
    }
}

#[tokio::test]
async fn half_of_the_arguments_is_no_call() {
    let openai = |reason: &str| {
        let call = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":
            {"name":"weather","arguments":"{\"city\":"}}]}}]}"#;
        let last =
            format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        events(&[call, &last, "[DONE]"])
    };
    assert_eq!(ask("openai", Mode::Streamed, openai("tool_calls")).await.kind(), Kind::Malformed);
    assert_eq!(ask("openai", Mode::Streamed, openai("length")).await.kind(), Kind::Truncated);
    let anthropic = |ended: &[&str]| {
        let mut frames = vec![
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a",
                "name":"weather","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":
                {"type":"input_json_delta","partial_json":"{\"city\":"}}"#,
        ];
        frames.extend(ended);
        frames.push(r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#);
        frames.push(r#"{"type":"message_stop"}"#);
        events(&frames)
    };
    let stopped = r#"{"type":"content_block_stop","index":0}"#;
    for steps in [anthropic(&[]), anthropic(&[stopped])] {
        assert_eq!(ask("anthropic", Mode::Streamed, steps).await.kind(), Kind::Truncated);
    }
    let gemini = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather",
        "args":"{\"city\":"}}]},"finishReason":"STOP"}]}"#;
    assert_eq!(ask("google", Mode::Streamed, events(&[gemini])).await.kind(), Kind::Malformed);
    let ollama = r#"{"message":{"tool_calls":[{"function":{"name":"weather","arguments":"{\"ci"}}]},
        "done":true}"#;
    assert_eq!(ask("ollama", Mode::Streamed, lines(&[ollama])).await.kind(), Kind::Malformed);
}

#[tokio::test]
async fn a_call_without_an_id_gets_one_and_a_repeated_one_is_made_once() {
    let part = |index: u32, id: &str, arguments: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{index}{id},"function":
            {{"name":"weather","arguments":"{arguments}"}}}}]}}}}]}}"#
        )
    };
    let twin = r#","id":"same""#;
    let (rome, oslo) = (r#"{\"city\":\"Rome\"}"#, r#"{\"city\":\"Oslo\"}"#);
    let frames = [
        part(0, twin, rome),
        part(1, twin, rome),
        part(2, twin, oslo),
        part(3, "", rome),
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned(),
        "[DONE]".to_owned(),
    ];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let calls = ask("openai", Mode::Streamed, events(&frames)).await.response().calls;
    let arguments: Vec<&str> = calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, ["{\"city\":\"Rome\"}", "{\"city\":\"Oslo\"}", "{\"city\":\"Rome\"}"]);
    assert_eq!(&*calls[0].id, "same");
    let ids: BTreeSet<&str> = calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids.len(), 3, "each call has an id of its own: {ids:?}");
    assert!(!ids.contains("") && !ids.contains("call_3"), "{ids:?}");
    // The same in one piece, on the other wires. Twins, one of the same id that says something
    // else, and one without an id.
    let cases = [("same", "Rome"), ("same", "Rome"), ("same", "Oslo"), ("", "Rome")];
    let made = |make: &dyn Fn(&str, Value) -> Value| -> Vec<Value> {
        cases.iter().map(|(id, city)| make(id, json!({ "city": city }))).collect()
    };
    let anthropic = made(
        &|id, input| json!({ "type": "tool_use", "id": id, "name": "weather", "input": input }),
    );
    let google =
        made(&|id, args| json!({ "functionCall": { "id": id, "name": "weather", "args": args } }));
    let ollama = made(
        &|id, arguments| json!({ "id": id, "function": { "name": "weather", "arguments": arguments } }),
    );
    let answers = [
        ("anthropic", json!({ "content": anthropic, "stop_reason": "tool_use" })),
        (
            "google",
            json!({ "candidates": [{ "content": { "parts": google }, "finishReason": "STOP" }] }),
        ),
        ("ollama", json!({ "message": { "tool_calls": ollama }, "done": true })),
    ];
    for (wire, answer) in answers {
        let steps = vec![whole(200, &[JSON], &answer.to_string())];
        let calls = ask(wire, Mode::Whole, steps).await.response().calls;
        let ids: BTreeSet<&str> = calls.iter().map(|call| &*call.id).collect();
        assert_eq!((calls.len(), ids.len()), (3, 3), "{wire}: {calls:?}");
        assert!(&*calls[0].id == "same" && !ids.contains(""), "{wire}: {ids:?}");
    }
}

#[tokio::test]
async fn an_integer_of_any_length_keeps_its_digits() {
    let arguments = r#"{"id":123456789012345678901234567890,"list":[-18446744073709551616]}"#;
    let answers = [
        (
            "openai",
            r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":
                {"name":"weather","arguments":ARGUMENTS}}]},"finish_reason":"tool_calls"}]}"#,
        ),
        (
            "anthropic",
            r#"{"content":[{"type":"tool_use","id":"a","name":"weather","input":ARGUMENTS}],
                "stop_reason":"tool_use"}"#,
        ),
        (
            "google",
            r#"{"candidates":[{"content":{"parts":[{"text":"99999999999999999999"},
                {"functionCall":{"name":"weather","args":ARGUMENTS}}]},"finishReason":"STOP"}]}"#,
        ),
        (
            "ollama",
            r#"{"message":{"tool_calls":[{"function":{"name":"weather","arguments":ARGUMENTS}}]},
                "done":true}"#,
        ),
    ];
    for (wire, answer) in answers {
        let answer = answer.replace("ARGUMENTS", arguments).replace('\n', "");
        let asked = ask(wire, Mode::Whole, vec![whole(200, &[JSON], &answer)]).await;
        assert_eq!(asked.response().calls[0].arguments, arguments, "{wire}");
        let streamed = match wire {
            "openai" => events(&[&answer.replace("\"message\"", "\"delta\""), "[DONE]"]),
            "google" => events(&[&answer]),
            "ollama" => lines(&[&answer]),
            _ => events(&[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use",
                    "id":"a","name":"weather","input":{}}}"#,
                &format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":
                    {{"type":"input_json_delta","partial_json":{}}}}}"#,
                    Value::from(arguments)
                ),
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
                r#"{"type":"message_stop"}"#,
            ]),
        };
        let asked = ask(wire, Mode::Streamed, streamed).await;
        assert_eq!(asked.response().calls[0].arguments, arguments, "{wire}, streamed");
    }
}

#[tokio::test]
async fn numbers_that_json_does_not_have_are_named() {
    for (arguments, why) in [("{\"x\":NaN}", "expected value"), ("{\"x\":1e999}", "out of range")] {
        let steps = events(&[
            &format!(
                r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"a","function":
                {{"name":"weather","arguments":{}}}}}]}},"finish_reason":"tool_calls"}}]}}"#,
                Value::from(arguments)
            ),
            "[DONE]",
        ]);
        let asked = ask("openai", Mode::Streamed, steps).await;
        let said = asked.error().to_string();
        assert_eq!(asked.kind(), Kind::Malformed, "{said}");
        assert!(said.contains("`weather` are not a JSON object") && said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn a_call_that_failed_is_sent_back_as_one() {
    for wire in WIRES {
        let server = Server::one(vec![whole(400, &[JSON], "{}")]).await;
        ask_with(model_of(&server, wire), Mode::Whole, conversation).await.kind();
        let sent = server.only().body;
        let message = match wire {
            "google" => &sent["contents"][2]["parts"][1],
            "anthropic" => &sent["messages"][2]["content"][1],
            // Behind the instruction, the question, the calls and the other result.
            _ => &sent["messages"][4],
        };
        let text = message.to_string();
        assert!(text.contains("The call failed: no such city"), "{wire}: {text}");
        server.stop().await;
    }
}

#[tokio::test]
async fn token_counts_of_any_form_are_read() {
    let huge = 5_000_000_000_u64;
    let answers = [
        (
            "openai",
            json!({
                "choices": [{ "message": { "content": "x" }, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": huge, "completion_tokens": 7.0, "total_tokens": -1,
                    "prompt_tokens_details": { "cached_tokens": -3 } },
            }),
        ),
        (
            "anthropic",
            json!({
                "content": [{ "type": "text", "text": "x" }], "stop_reason": "end_turn",
                "usage": { "input_tokens": huge, "output_tokens": 7.0,
                    "cache_read_input_tokens": -3, "cache_creation_input_tokens": null },
            }),
        ),
        (
            "google",
            json!({
                "candidates": [{ "content": { "parts": [{ "text": "x" }] }, "finishReason": "STOP" }],
                "usageMetadata": { "promptTokenCount": huge, "candidatesTokenCount": 7.0,
                    "cachedContentTokenCount": -3, "thoughtsTokenCount": null },
            }),
        ),
        (
            "ollama",
            json!({
                "message": { "content": "x" }, "done": true,
                "prompt_eval_count": huge, "eval_count": 7.0,
            }),
        ),
    ];
    for (wire, answer) in answers {
        let steps = vec![whole(200, &[JSON], &answer.to_string())];
        let usage = ask(wire, Mode::Whole, steps).await.response().usage;
        assert_eq!((usage.input, usage.output, usage.cached), (huge, 7, 0), "{wire}");
    }
}

#[tokio::test]
async fn an_error_in_mid_stream_ends_the_answer_whatever_follows() {
    let openai = [
        r#"{"choices":[{"index":0,"delta":{"content":"Hel"}}]}"#,
        r#"{"error":{"type":"server_error","message":"boom"}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ];
    let anthropic = [
        r#"{"type":"error","error":{"type":"overloaded_error","message":"boom"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let google = [
        r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}"#,
        r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"boom"}}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"lo"}]},"finishReason":"STOP"}]}"#,
    ];
    let ollama = [
        r#"{"message":{"content":"Hel"},"done":false}"#,
        r#"{"error":"boom"}"#,
        r#"{"message":{"content":"lo"},"done":true}"#,
    ];
    let cases = [
        ("openai", events(&openai)),
        ("anthropic", events(&anthropic)),
        ("google", events(&google)),
        ("ollama", lines(&ollama)),
    ];
    for (wire, steps) in cases {
        let asked = ask(wire, Mode::Streamed, steps).await;
        assert_eq!(asked.kind(), Kind::Overloaded, "{wire}: {}", asked.error());
        assert!(asked.error().to_string().contains("boom"), "{wire}: {}", asked.error());
        assert!(!asked.deltas.iter().any(|delta| delta == "lo"), "{wire}: {:?}", asked.deltas);
    }
}

#[tokio::test]
async fn a_limit_in_mid_stream_is_a_rate_limit() {
    let frame = r#"{"error":{"code":429,"message":"too fast"}}"#;
    let asked = ask("openai", Mode::Streamed, events(&[frame])).await;
    assert_eq!((asked.kind(), asked.error().status()), (Kind::RateLimited, Some(429)));
    let frame = r#"{"type":"error","error":{"type":"rate_limit_error","message":"too fast"}}"#;
    assert_eq!(ask("anthropic", Mode::Streamed, events(&[frame])).await.kind(), Kind::RateLimited);
    let frame = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"too fast",
        "details":[{"retryDelay":"3s"}]}}"#;
    for (wire, steps) in [("google", events(&[frame])), ("ollama", lines(&[frame]))] {
        let asked = ask(wire, Mode::Streamed, steps).await;
        assert_eq!((asked.kind(), asked.error().status()), (Kind::RateLimited, Some(429)));
        assert_eq!(asked.error().retry_after(), Some(Duration::from_secs(3)), "{wire}");
    }
}

#[tokio::test]
async fn a_frame_that_is_no_json_is_malformed_and_a_comment_is_nothing() {
    for wire in ["openai", "anthropic", "google"] {
        let steps = events(&["{\"choices\": [", "[DONE]"]);
        assert_eq!(ask(wire, Mode::Streamed, steps).await.kind(), Kind::Malformed, "{wire}");
    }
    let steps = lines(&["not json", "{\"done\":true}"]);
    assert_eq!(ask("ollama", Mode::Streamed, steps).await.kind(), Kind::Malformed);
    let steps = vec![
        head("text/event-stream"),
        chunk(": PROCESSING\n\nevent: x\r\ndata: {\"choices\":[{\"index\":0,"),
        chunk("\"delta\":{\"content\":\"h\u{e9}\"}}]}\r\n\r\n: again\n\ndata: [DO"),
        chunk("NE]"),
        end(),
    ];
    let asked = ask("openai", Mode::Streamed, steps).await;
    assert_eq!(asked.response().content.text(), "h\u{e9}");
}

#[tokio::test]
async fn an_empty_answer_and_a_web_page_are_malformed() {
    for wire in WIRES {
        let asked = ask(wire, Mode::Whole, vec![whole(200, &[JSON], "")]).await;
        assert_eq!(asked.kind(), Kind::Malformed, "{wire}");
        let asked = ask(wire, Mode::Whole, vec![whole(200, &[JSON], "{}")]).await;
        assert_eq!(asked.kind(), Kind::Malformed, "{wire} {}", asked.error());
        let page = [("content-type", "text/html; charset=utf-8")];
        for mode in BOTH {
            let asked = ask(wire, mode, vec![whole(200, &page, "<html>log in</html>")]).await;
            assert_eq!(asked.kind(), Kind::Malformed, "{wire}");
            assert!(asked.error().to_string().contains("text/html"), "{}", asked.error());
        }
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_not_shown() {
    let body = format!(r#"{{"error":{{"message":"the key {KEY} is wrong","code":"{KEY}"}}}}"#);
    for wire in WIRES {
        let asked = ask(wire, Mode::Streamed, vec![whole(401, &[JSON], &body)]).await;
        // Looks for the key itself.
        let said = asked.error().to_string();
        assert!(said.contains("the key [key] is wrong"), "{wire}: {said}");
    }
}

#[tokio::test]
async fn what_a_server_says_is_repeated_in_one_line_of_bounded_length() {
    let body = format!("first\r\nsecond\u{1b}[31m {}", "long ".repeat(1_000));
    let asked = ask("openai", Mode::Whole, vec![whole(400, &[], &body)]).await;
    let said = asked.error().to_string();
    assert!(said.contains("first second[31m long"), "{said}");
    assert!(said.len() < 450 && !said.contains(['\n', '\u{1b}']), "{said}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Server::one(vec![whole(200, &[JSON], "{}")]).await;
    let to = format!("{}/v1/chat/completions", other.url);
    for status in [302, 307, 308] {
        let steps = vec![whole(status, &[("location", &to)], "")];
        for wire in WIRES {
            let asked = ask(wire, Mode::Streamed, steps.clone()).await;
            assert_eq!((asked.kind(), asked.error().status()), (Kind::BadRequest, Some(status)));
        }
    }
    assert_eq!(other.seen().len(), 0);
    other.stop().await;
}
