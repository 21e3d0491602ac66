//! Gemini's wire: what is sent, and what is understood.

use crate::provider::server::{Server, Step, chunk, events, head, json as json_answer, whole};
use crate::provider::support::{
    KEY, Mode, ask, ask_with, conversation, model_of, providers_at, result_of, schema,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::message::Message;
use tenure_core::model::{Cost, ModelErrorKind as Kind, StopReason, Usage};

const BOTH: [Mode; 2] = [Mode::Streamed, Mode::Whole];

const HELLO: [&str; 2] = [
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},
        {"text":"Hel"}]}}],"usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":400}}"#,
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"lo"}]},"finishReason":"STOP"}],
        "usageMetadata":{"promptTokenCount":1000,
        "candidatesTokenCount":6,"thoughtsTokenCount":4,"totalTokenCount":1010}}"#,
];

/// The same answer in one piece.
fn hello() -> Value {
    json!({
        "candidates": [{
            "content": { "role": "model", "parts": [
                { "text": "hm", "thought": true }, { "text": "Hel" }, { "text": "lo" },
            ]},
            "finishReason": "STOP",
        }],
        "usageMetadata": {
            "promptTokenCount": 1000, "cachedContentTokenCount": 400,
            "candidatesTokenCount": 6, "thoughtsTokenCount": 4,
        },
    })
}

#[tokio::test]
async fn a_conversation_is_sent_as_contents() {
    let answer = json!({ "candidates": [
        { "content": { "parts": [{ "text": "{\"warm\":true}" }] }, "finishReason": "STOP" },
    ]});
    let server = Server::start(vec![events(&[&answer.to_string()]), json_answer(&answer)]).await;
    for mode in BOTH {
        let asked = ask_with(model_of(&server, "google"), mode, |request| {
            conversation(request);
            request.params.temperature = Some(0.2);
            request.params.max_tokens = Some(50);
            request.params.output_schema = Some(Arc::new(schema()));
            request.params.extra =
                Some(Arc::new(json!({ "safetySettings": [], "generationConfig": { "seed": 7 } })));
        })
        .await;
        assert_eq!(asked.response().content.text(), "{\"warm\":true}");
    }
    let seen = server.seen();
    let paths: Vec<&str> = seen.iter().map(|seen| seen.path.as_str()).collect();
    let model = "/v1beta/models/gemini-3-pro-preview";
    assert_eq!(
        paths,
        [format!("{model}:streamGenerateContent?alt=sse"), format!("{model}:generateContent")]
    );
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!((seen[0].method.as_str(), seen[0].header("x-goog-api-key")), ("POST", Some(KEY)));
    let body = &seen[0].body;
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
    assert_eq!(body["safetySettings"], json!([]));
    // What is sent beyond the request is joined with the rest of it.
    assert_eq!(
        body["generationConfig"],
        json!({
            "temperature": 0.2, "maxOutputTokens": 50, "seed": 7,
            "responseMimeType": "application/json", "responseJsonSchema": schema(),
        })
    );
    let contents = &body["contents"];
    assert_eq!(contents[0], json!({ "role": "user", "parts": [{ "text": "Is it warm?" }] }));
    // A call that another model made has no signature, and this one wants to hear so. Ids that
    // Gemini did not give are not sent.
    let call = |city: &str| json!({ "name": "weather", "args": { "city": city } });
    let calls = json!({ "role": "model", "parts": [
        { "text": "I will look." },
        {
            "functionCall": call("Paris"),
            "thoughtSignature": "skip_thought_signature_validator",
        },
        { "functionCall": call("Atlantis") },
    ]});
    assert_eq!(contents[1], calls);
    // Both results are in one message, and the one that failed says so.
    let results = json!({ "role": "user", "parts": [
        { "functionResponse": { "name": "weather", "response": { "output": "21 degrees" } } },
        { "functionResponse": {
            "name": "weather", "response": { "error": "The call failed: no such city" },
        }},
    ]});
    assert_eq!(contents[2], results);
    server.stop().await;
}

#[tokio::test]
async fn a_schema_is_sent_in_the_form_that_gemini_takes() {
    let server = Server::one(json_answer(&hello())).await;
    ask_with(model_of(&server, "google"), Mode::Whole, |request| {
        let mut spec = crate::provider::support::weather();
        spec.parameters["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        spec.parameters["additionalProperties"] = false.into();
        let mut bare = tenure_core::tool::ToolSpec::new("now", "Says what time it is.");
        bare.parameters = json!({});
        request.tools = vec![Arc::new(spec), Arc::new(bare)].into();
    })
    .await
    .response();
    let tools = &server.only().body["tools"];
    let weather = json!({
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
        "additionalProperties": false,
    });
    let declared = json!([{ "functionDeclarations": [
        {
            "name": "weather", "description": "Says how warm it is.",
            "parametersJsonSchema": weather,
        },
        { "name": "now", "description": "Says what time it is." },
    ]}]);
    assert_eq!(*tools, declared);
    server.stop().await;
}

#[tokio::test]
async fn an_older_model_is_asked_for_json_in_words_if_it_has_tools() {
    let answer = json!({ "candidates": [{
        "content": { "parts": [{ "text": "```json\n{\"warm\":true}\n```" }] },
        "finishReason": "STOP",
    }]});
    let server = Server::one(json_answer(&answer)).await;
    let model = providers_at(&server.url).model("google.gemini-2.5-flash?reasoning=low").unwrap();
    let asked = ask_with(model, Mode::Whole, |request| {
        conversation(request);
        request.params.output_schema = Some(Arc::new(schema()));
    })
    .await;
    assert_eq!(asked.response().content.text(), "{\"warm\":true}");
    let body = server.only().body;
    let config = json!({ "thinkingConfig": { "thinkingBudget": 1024 } });
    assert_eq!(body["generationConfig"], config);
    let told = body["systemInstruction"]["parts"][0]["text"].as_str().unwrap();
    assert!(told.starts_with("Be brief.\n\n") && told.contains("\"warm\""), "{told}");
    assert_eq!(body["contents"][1]["parts"][1].get("thoughtSignature"), None);
    server.stop().await;
}

#[tokio::test]
async fn an_answer_comes_with_its_usage_and_its_cost_whether_somebody_reads_along_or_not() {
    // Whatever was asked for, the server may answer in the other form, or with a list of pieces.
    let list: Vec<Value> = HELLO.iter().map(|piece| serde_json::from_str(piece).unwrap()).collect();
    let forms = [events(&HELLO), json_answer(&hello()), json_answer(&list.into())];
    for mode in BOTH {
        for (form, steps) in forms.clone().into_iter().enumerate() {
            let asked = ask("google", mode, steps).await;
            if mode == Mode::Streamed {
                let deltas: &[&str] = if form == 0 { &["Hel", "lo"] } else { &["Hello"] };
                assert_eq!(asked.deltas, deltas);
            }
            let response = asked.response();
            assert_eq!((response.content.text(), response.stop), ("Hello", StopReason::EndTurn));
            // 600 at 2, 400 at 0.2 and 10 at 12 dollars a million.
            let cost = Cost::from_nano_usd(1_400_000);
            let usage = Usage { cached: 400, reasoning: 4, cost, ..Usage::new(1_000, 10) };
            assert_eq!(response.usage, usage);
        }
    }
}

#[tokio::test]
async fn calls_without_ids_get_them_and_their_signature_goes_back_to_the_same_model() {
    let call = |city: &str, extra: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":
            {{"name":"weather","args":{{"city":"{city}"}}}}{extra}}}]}}}}]}}"#
        )
    };
    let frames = [
        call("Rome", r#","thoughtSignature":"sig""#),
        call("Oslo", ""),
        call("Oslo", ""),
        r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#.to_owned(),
    ];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let calls = events(&frames);
    let server = Server::start(vec![calls.clone(), calls, json_answer(&hello())]).await;
    let mut ids = BTreeSet::new();
    let mut first = Vec::new();
    for _ in 0..2 {
        let answer = ask_with(model_of(&server, "google"), Mode::Streamed, |_| {}).await.response();
        assert_eq!(answer.stop, StopReason::ToolUse);
        let said: Vec<&str> = answer.calls.iter().map(|call| call.arguments.as_str()).collect();
        // Two calls that say the same are two calls.
        assert_eq!(said, ["{\"city\":\"Rome\"}", "{\"city\":\"Oslo\"}", "{\"city\":\"Oslo\"}"]);
        ids.extend(answer.calls.iter().map(|call| call.id.to_string()));
        first = answer.calls;
    }
    assert_eq!(ids.len(), 6, "no id comes twice in a conversation: {ids:?}");
    let results = first.iter().map(|call| result_of(&call.id)).collect::<Vec<_>>();
    let mut history =
        vec![Message::user("hi"), Message::Assistant { content: "".into(), calls: first }];
    history.extend(results);
    for spec in ["google.gemini-3-pro-preview", "google.gemini-4-argon", "google.gemini-2.5-pro"] {
        let (model, history) = (providers_at(&server.url).model(spec).unwrap(), history.clone());
        ask_with(model, Mode::Whole, move |request| request.messages = history.clone().into())
            .await
            .response();
    }
    let signatures = [Some("sig"), Some("skip_thought_signature_validator"), None];
    for (seen, signature) in server.seen()[2..].iter().zip(signatures) {
        let parts = &seen.body["contents"][1]["parts"];
        assert_eq!(parts[0].get("thoughtSignature").and_then(Value::as_str), signature);
        let rome = json!({ "name": "weather", "args": { "city": "Rome" } });
        assert_eq!(parts[0]["functionCall"], rome);
        assert_eq!(parts[1].get("thoughtSignature"), None);
        let answered = &seen.body["contents"][2]["parts"];
        assert_eq!(answered.as_array().unwrap().len(), 3);
        assert_eq!(answered[0]["functionResponse"].get("id"), None);
    }
    server.stop().await;
}

#[tokio::test]
async fn an_id_that_gemini_gave_goes_back_with_the_call_and_its_result() {
    let answer = json!({ "candidates": [{
        "content": { "parts": [{ "functionCall": { "id": "f1", "name": "weather" } }] },
        "finishReason": "STOP",
    }]});
    let server = Server::start(vec![json_answer(&answer), json_answer(&hello())]).await;
    let first = ask_with(model_of(&server, "google"), Mode::Whole, |_| {}).await.response();
    assert_eq!((&*first.calls[0].id, first.calls[0].arguments.as_str()), ("f1", "{}"));
    let history = vec![
        Message::user("hi"),
        Message::Assistant { content: "".into(), calls: first.calls.clone() },
        result_of("f1"),
    ];
    ask_with(model_of(&server, "google"), Mode::Whole, move |request| {
        request.messages = history.clone().into();
    })
    .await
    .response();
    let contents = &server.seen()[1].body["contents"];
    assert_eq!(contents[1]["parts"][0]["functionCall"]["id"], "f1");
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["id"], "f1");
    server.stop().await;
}

#[tokio::test]
async fn each_reason_to_stop_is_understood() {
    let call = json!({ "functionCall": { "name": "weather", "args": { "city": "Rome" } } });
    let answer = |reason: &str| {
        json!({ "candidates": [
            { "content": { "parts": [{ "text": "So" }, call] }, "finishReason": reason },
        ]})
    };
    let both = |mode, answer: &Value| match mode {
        Mode::Streamed => events(&[&answer.to_string()]),
        Mode::Whole => json_answer(answer),
    };
    for mode in BOTH {
        let stops = [
            ("STOP", StopReason::ToolUse, 1),
            ("MAX_TOKENS", StopReason::MaxTokens, 1),
            ("SAFETY", StopReason::Refused, 0),
            ("PROHIBITED_CONTENT", StopReason::Refused, 0),
            ("RECITATION", StopReason::Refused, 0),
        ];
        for (reason, stop, calls) in stops {
            let response = ask("google", mode, both(mode, &answer(reason))).await.response();
            // What was withheld is not called.
            assert_eq!((response.stop, response.calls.len()), (stop, calls), "{reason}");
        }
        for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"] {
            let asked = ask("google", mode, both(mode, &answer(reason))).await;
            assert_eq!(asked.kind(), Kind::Malformed, "{reason}");
            assert!(asked.error().to_string().contains(reason), "{}", asked.error());
        }
        let unsaid = answer("FINISH_REASON_UNSPECIFIED");
        assert_eq!(ask("google", mode, both(mode, &unsaid)).await.kind(), Kind::Truncated);
        let blocked = json!({
            "promptFeedback": { "blockReason": "SAFETY" },
            "usageMetadata": { "promptTokenCount": 9 },
        });
        let response = ask("google", mode, both(mode, &blocked)).await.response();
        assert_eq!((response.content.text(), response.stop), ("", StopReason::Refused));
        assert_eq!(response.usage.input, 9);
    }
}

#[tokio::test]
async fn an_error_has_the_type_that_google_gives_it() {
    let error = |code: u16, status: &str, detail: Value| json!({ "error": { "code": code, "status": status, "message": "no", "details": [detail] } });
    let retry = json!({
        "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s",
    });
    let wrong_key = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
    });
    let cases = [
        (error(429, "RESOURCE_EXHAUSTED", retry), Kind::RateLimited),
        (error(503, "UNAVAILABLE", json!({})), Kind::Overloaded),
        (error(500, "INTERNAL", json!({})), Kind::Overloaded),
        (error(401, "UNAUTHENTICATED", json!({})), Kind::Auth),
        (error(403, "PERMISSION_DENIED", json!({})), Kind::Auth),
        (error(400, "INVALID_ARGUMENT", wrong_key), Kind::Auth),
        (error(400, "INVALID_ARGUMENT", json!({})), Kind::BadRequest),
        (error(404, "NOT_FOUND", json!({})), Kind::BadRequest),
        (error(504, "DEADLINE_EXCEEDED", json!({})), Kind::Timeout),
    ];
    for (body, kind) in cases {
        let code = u16::try_from(body["error"]["code"].as_u64().unwrap()).unwrap();
        let listed = json!([body]).to_string();
        let header = [("content-type", "application/json")];
        let after = (kind == Kind::RateLimited).then_some(Duration::from_millis(34_500));
        let forms = [
            (Mode::Whole, vec![whole(code, &header, &body.to_string())]),
            // Streamed, it comes as a list of one, or in mid-answer.
            (Mode::Streamed, vec![whole(code, &header, &listed)]),
            (Mode::Streamed, events(&[HELLO[0], &body.to_string()])),
        ];
        for (mode, steps) in forms {
            let asked = ask("google", mode, steps).await;
            let error = asked.error();
            let found = (error.kind(), error.status(), error.retry_after());
            assert_eq!(found, (kind, Some(code), after), "{body}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_has_said_why_it_ends_is_not_waited_for_and_not_cut_short() {
    let piece = |frame: &str| chunk(&format!("data: {}\n\n", frame.replace('\n', " ")));
    // A connection that stays open behind the end does no harm.
    let steps = vec![head("text/event-stream"), piece(HELLO[0]), piece(HELLO[1]), Step::Hang];
    assert_eq!(ask("google", Mode::Streamed, steps).await.response().content.text(), "Hello");
    // Some models give the same reason with every piece.
    let early = HELLO[0].replace("]}}]", "]},\"finishReason\":\"STOP\"}]");
    let response = ask("google", Mode::Streamed, events(&[&early, HELLO[1]])).await.response();
    assert_eq!(response.content.text(), "Hello");
}

#[tokio::test]
async fn an_address_may_leave_out_the_version_and_a_name_may_say_its_kind() {
    let server = Server::one(json_answer(&hello())).await;
    let mut config = tenure_models::provider::ProviderConfig::default();
    let mut entry = tenure_models::provider::ProviderEntry::default();
    entry.base_url = Some((server.url.clone(), tenure_models::provider::Authority::User));
    config.providers.insert("google".to_owned(), entry);
    let providers = tenure_models::provider::Providers::with_env(config, |_| Some(KEY.to_owned()));
    for spec in ["google.gemini-2.5-pro", "google.models/gemini-2.5-pro", "google.tunedModels/a/b"]
    {
        let model = providers.model(spec).unwrap();
        ask_with(model, Mode::Whole, |_| {}).await.response();
    }
    let paths: Vec<String> = server.seen().into_iter().map(|seen| seen.path).collect();
    let model = "/v1beta/models/gemini-2.5-pro:generateContent";
    assert_eq!(paths, [model, model, "/v1beta/tunedModels/a%2Fb:generateContent"]);
    server.stop().await;
}
