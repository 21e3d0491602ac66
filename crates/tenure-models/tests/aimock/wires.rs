//! What comes over each wire when nothing goes wrong, and what an error becomes.

use crate::aimock::agents::{Lookup, Turn, Way, agent, started};
use crate::aimock::journal::journal;
use crate::aimock::server::Aimock;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tenure_core::model::ModelErrorKind;

/// One turn of a fresh agent.
async fn turn(way: Way, server: &Aimock, tool: &Lookup, input: &str) -> Turn {
    let agent = started(agent(way.model(server), tool)).await;
    let turn = way.run(agent.request(input)).await;
    agent.shutdown().await;
    turn
}

#[tokio::test]
async fn a_text_arrives_whole_and_somebody_who_reads_along_gets_it_in_pieces() {
    let text = "The quick brown fox jumps over the lazy dog, ünïcödé and 漢字 included.";
    let fixture = json!({
        "match": { "userMessage": "hello" }, "chunkSize": 5, "response": { "content": text },
    });
    let server = Aimock::start(&[fixture], &[]);
    for way in Way::ALL {
        let turn = turn(way, &server, &Lookup::default(), "hello").await;
        let report = turn.result.unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(report.output(), text, "{way}");
        assert_eq!((report.steps, report.usage.calls), (1, 1), "{way}");
        if way.streams() {
            assert!(turn.deltas.len() > 5, "{way}: {:?}", turn.deltas);
            assert_eq!(turn.deltas.concat(), text, "{way}");
        }
    }
    let asked: Vec<_> = journal(&server).into_iter().map(|entry| entry.streamed).collect();
    assert_eq!(asked.len(), Way::ALL.len(), "one request for each turn");
    for (way, streamed) in Way::ALL.into_iter().zip(asked) {
        assert!(streamed || !way.streams(), "{way}: a reader gets a real stream");
    }
}

#[tokio::test]
async fn a_tool_call_is_made_once_and_its_result_is_sent_back() {
    let fixtures = [
        json!({
            "match": { "userMessage": "alpha", "hasToolResult": true },
            "response": { "content": "It is 42." },
        }),
        json!({
            "match": { "userMessage": "alpha" }, "chunkSize": 3,
            "response": { "toolCalls": [{ "name": "lookup", "arguments": { "key": "alpha" } }] },
        }),
    ];
    let server = Aimock::start(&fixtures, &[]);
    for way in Way::ALL {
        let tool = Lookup::default();
        let turn = turn(way, &server, &tool, "what is alpha?").await;
        let report = turn.result.unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(report.output(), "It is 42.", "{way}");
        let seen = tool.seen();
        assert_eq!(seen.len(), 1, "{way}");
        assert_eq!(seen[0].1, json!({ "key": "alpha" }), "{way}");

        let entries = journal(&server);
        let messages = entries.last().expect("there was a request").body["messages"].clone();
        let result = messages.as_array().and_then(|messages| messages.last()).expect("a message");
        assert_eq!(result["role"], "tool", "{way}: {messages}");
        assert_eq!(result["tool_call_id"], seen[0].0, "{way}: the id goes back as it came");
        let content = result["content"].to_string();
        assert!(content.contains("the value of") && content.contains("is 42"), "{way}: {content}");
    }
}

#[tokio::test]
async fn tool_calls_of_one_answer_are_made_side_by_side_each_of_them_once() {
    let call = |key: &str| json!({ "name": "lookup", "arguments": { "key": key } });
    let fixtures = [
        json!({
            "match": { "userMessage": "letters", "hasToolResult": true },
            "response": { "content": "All are 42." },
        }),
        json!({
            "match": { "userMessage": "letters" }, "chunkSize": 4,
            "response": { "toolCalls": [call("alpha"), call("beta"), call("gamma")] },
        }),
    ];
    let server = Aimock::start(&fixtures, &[]);
    for way in Way::ALL {
        let tool = Lookup::default();
        let turn = turn(way, &server, &tool, "the letters").await;
        let report = turn.result.unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(report.output(), "All are 42.", "{way}");
        assert_eq!(tool.keys(), ["alpha", "beta", "gamma"], "{way}");
        let ids: HashSet<_> = tool.seen().into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), 3, "{way}: every call has an id of its own");
    }
}

#[tokio::test]
async fn usage_is_what_the_server_says() {
    let fixture = json!({
        "match": { "userMessage": "hello" },
        "response": {
            "content": "Hello.",
            "usage": {
                "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18,
                "input_tokens": 11, "output_tokens": 7,
            },
        },
    });
    let server = Aimock::start(&[fixture], &[]);
    for way in Way::ALL {
        let turn = turn(way, &server, &Lookup::default(), "hello").await;
        let usage = turn.result.unwrap_or_else(|error| panic!("{way}: {error}")).usage;
        assert_eq!((usage.input, usage.output, usage.calls), (11, 7, 1), "{way}: {usage:?}");
    }
}

#[tokio::test]
async fn an_answer_of_a_given_form_is_asked_for_and_read() {
    let fixture = json!({
        "match": { "userMessage": "capital" },
        "response": { "content": { "city": "Paris", "people": 2_100_000 } },
    });
    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "people": { "type": "integer" } },
        "required": ["city", "people"],
        "additionalProperties": false,
    });
    let server = Aimock::start(&[fixture], &[]);
    for way in Way::ALL {
        let agent = started(agent(way.model(&server), &Lookup::default())).await;
        let request = agent.request("the capital").output_schema(schema.clone());
        let report = way.run(request).await.result.unwrap_or_else(|error| panic!("{way}: {error}"));
        agent.shutdown().await;
        let answer: Value = serde_json::from_str(report.output()).expect("the answer is JSON");
        assert_eq!(answer, json!({ "city": "Paris", "people": 2_100_000 }), "{way}");
        if matches!(way, Way::OpenAi | Way::OpenAiStream) {
            let entries = journal(&server);
            let asked = &entries.last().expect("there was a request").body["response_format"];
            assert_eq!(asked["type"], "json_schema", "{way}: {asked}");
            assert_eq!(asked["json_schema"]["schema"]["required"], schema["required"], "{way}");
        }
    }
}

#[tokio::test]
async fn an_error_of_the_server_has_a_kind_a_status_and_when_to_come_back() {
    use ModelErrorKind::{Auth, BadRequest, Overloaded, RateLimited};
    let cases = [
        ("a bad request", 400, "invalid_request_error", BadRequest),
        ("no key", 401, "authentication_error", Auth),
        ("no right", 403, "permission_error", Auth),
        ("no such model", 404, "not_found_error", BadRequest),
        ("too many", 429, "rate_limit_error", RateLimited),
        ("unavailable", 503, "api_error", Overloaded),
        ("overloaded", 529, "overloaded_error", Overloaded),
    ];
    let fixtures = cases.map(|(user, status, kind, _)| {
        json!({
            "match": { "userMessage": user },
            "response": {
                "error": { "message": "the server says no", "type": kind },
                "status": status, "retryAfter": 7,
            },
        })
    });
    let server = Aimock::start(&fixtures, &[]);
    for way in Way::ALL {
        for (user, status, _, kind) in cases {
            let tool = Lookup::default();
            let error = turn(way, &server, &tool, user).await.result.expect_err("it failed");
            let cause = error.model_error().unwrap_or_else(|| panic!("{way}, {user}: {error}"));
            assert_eq!((cause.kind(), cause.status()), (kind, Some(status)), "{way}, {user}");
            let after = (status == 429).then_some(Duration::from_secs(7));
            assert_eq!(cause.retry_after(), after, "{way}, {user}");
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(crate::aimock::agents::KEY), "{way}, {user}: {shown}");
        }
    }
    assert_eq!(journal(&server).len(), cases.len() * Way::ALL.len(), "nothing is tried again");
}
