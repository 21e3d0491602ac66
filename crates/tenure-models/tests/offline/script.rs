//! A model that is read from data.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::hook;
use tenure_core::model::{Model as _, ModelErrorKind};
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_models::Script;

fn agent(script: Value) -> Agent {
    let shout = FnTool::new(ToolSpec::new("shout", "Says it louder"), |arguments| {
        Ok(arguments["what"].as_str().unwrap_or_default().to_uppercase().into())
    });
    let script = Script::from_json(&script).expect("a good script");
    Agent::builder("actor").model(script).tool(shout).build().expect("a good agent")
}

#[tokio::test(start_paused = true)]
async fn the_nth_call_of_a_turn_gets_the_nth_reply_in_every_turn() {
    let agent = agent(json!([
        { "call": "shout", "with": { "what": "{input}" } },
        { "text": "the tool said {result} to {input}" },
    ]));
    agent.startup().await.expect("starts");
    for (said, answer) in
        [("hi", "the tool said HI to hi"), ("{result}", "the tool said {RESULT} to {result}")]
    {
        assert_eq!(agent.run(said).await.expect("runs").output(), answer);
    }
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_turn_that_fits_the_message_counts() {
    let agent = agent(json!({ "turns": [
        { "when": "weather", "replies": ["sunny"] },
        { "when": "twice", "replies": [
            { "calls": [{ "call": "shout", "with": { "what": "a" } }, { "call": "shout" }] },
            "done",
        ] },
        { "replies": [{ "error": "no idea about {input}" }] },
    ] }));
    agent.startup().await.expect("starts");
    assert_eq!(agent.run("what weather?").await.expect("runs").output(), "sunny");
    assert_eq!(agent.run("twice").await.expect("runs").output(), "done");
    assert_eq!(agent.run("x").await.expect_err("fails").to_string(), "no idea about x");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_needs_more_replies_than_there_are_fails() {
    let agent = agent(json!([{ "call": "shout" }]));
    agent.startup().await.expect("starts");
    let error = agent.run("go").await.expect_err("there is no second reply");
    assert_eq!(
        error.to_string(),
        "the script has 1 replies for this turn, and this is model call 2 of it"
    );
    agent.shutdown().await;
}

type Failures = Arc<Mutex<Vec<(ModelErrorKind, String, Option<Duration>)>>>;

/// An agent that makes a failed call again, up to nine times, and notes how it failed.
fn patient(script: &Script) -> (Agent, Failures) {
    let failures = Failures::default();
    let noted = failures.clone();
    let again = hook::wrap_model_call(move |_, request, next| {
        let noted = noted.clone();
        Box::pin(async move {
            for _ in 0..9 {
                let error = match next.call(request).await {
                    Ok(response) => return Ok(response),
                    Err(error) => error,
                };
                let failed = error.model_error().expect("it is the model that fails");
                let failed = (failed.kind(), failed.to_string(), failed.retry_after());
                noted.lock().expect("nobody panics").push(failed);
            }
            Ok(next.call(request).await?)
        })
    });
    let shout = FnTool::new(ToolSpec::new("shout", "Says it louder"), |arguments| {
        Ok(arguments["what"].as_str().unwrap_or_default().to_uppercase().into())
    });
    let agent = Agent::builder("patient").model(script.clone()).tool(shout);
    (agent.with_lifecycle(hook::hook(again)).build().expect("a good agent"), failures)
}

#[tokio::test(start_paused = true)]
async fn a_call_may_fail_so_often_and_then_do_what_follows() {
    let script = Script::from_json(&json!([
        { "error": "too many of {input}", "kind": "rate_limited", "retry_after": "2s", "times": 2 },
        { "error": "too much to do", "kind": "overloaded", "times": 1 },
        { "call": "shout", "with": { "what": "{input}" } },
        { "error": "down", "times": 1 },
        "it said {result}",
    ]))
    .expect("a good script");
    let (agent, failures) = patient(&script);
    agent.startup().await.expect("starts");
    // Each turn begins at the first failure again.
    for _ in 0..2 {
        assert_eq!(agent.run("hi").await.expect("runs").output(), "it said HI");
        let failed = std::mem::take(&mut *failures.lock().expect("nobody panics"));
        let limited =
            (ModelErrorKind::RateLimited, "too many of hi".into(), Some(Duration::from_secs(2)));
        assert_eq!(
            failed,
            [
                limited.clone(),
                limited,
                (ModelErrorKind::Overloaded, "too much to do".into(), None),
                (ModelErrorKind::Other, "down".into(), None),
            ]
        );
    }
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_turn_of_each_agent_fails_as_often_as_the_script_says() {
    let script = Script::from_json(&json!([{ "error": "down", "times": 1 }, "up"]));
    let script = script.expect("a good script");
    // Without anybody who makes a call again, each turn is a first call.
    let give_up = Agent::builder("a").model(script.clone()).build().expect("a good agent");
    give_up.startup().await.expect("starts");
    for _ in 0..3 {
        assert_eq!(give_up.run("go").await.expect_err("it fails first").to_string(), "down");
    }
    give_up.shutdown().await;
    let (agent, failures) = patient(&script);
    agent.startup().await.expect("starts");
    assert_eq!(agent.run("go").await.expect("runs").output(), "up");
    assert_eq!(failures.lock().expect("nobody panics").len(), 1);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_without_times_fails_always() {
    let script = json!([{ "error": "down", "kind": "transport" }, "never"]);
    let (agent, failures) = patient(&Script::from_json(&script).expect("a good script"));
    agent.startup().await.expect("starts");
    assert!(agent.run("go").await.expect_err("it is down").is_retryable());
    assert_eq!(failures.lock().expect("nobody panics").len(), 9);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_may_wait() {
    let agent = agent(json!([{ "text": "late", "wait": "2s" }]));
    agent.startup().await.expect("starts");
    let before = tokio::time::Instant::now();
    agent.run("go").await.expect("runs");
    assert!(before.elapsed() >= Duration::from_secs(2));
    agent.shutdown().await;
}

#[test]
fn what_is_wrong_with_a_script_is_said_with_its_place() {
    for (script, message) in [
        (json!(5), "a script is a list of replies, or an object with a list `turns`"),
        (json!([]), "the script has no reply; give it at least one"),
        (json!({ "turn": [] }), "the script has the unknown key `turn`; the keys are turns"),
        (json!({ "turns": 1 }), "the script needs a list `turns`"),
        (json!({ "turns": [{}] }), "turns[0] needs a list `replies`"),
        (json!({ "turns": [{ "when": 1, "replies": [] }] }), "turns[0].when must be a text"),
        (json!([1]), "replies[0] must be a text or an object"),
        (json!(["a", {}]), "replies[1] says nothing; give it `text`, `call`, `calls` or `error`"),
        (json!([{ "with": {} }]), "replies[0] has `with` but no `call`"),
        (json!([{ "call": 1 }]), "replies[0].call must be the name of a tool"),
        (json!([{ "call": "a", "with": 1 }]), "replies[0].with must be an object"),
        (
            json!([{ "call": "a", "calls": [] }]),
            "replies[0] has both `call` and `calls`; use one of them",
        ),
        (json!([{ "calls": [1] }]), "replies[0].calls[0] must be an object with `call`"),
        (
            json!([{ "error": "e", "text": "t" }]),
            "replies[0] has an `error` and something else to say",
        ),
        (json!([{ "text": "t", "times": 2 }]), "replies[0] has `times` but no `error`"),
        (json!([{ "text": "t", "kind": "other" }]), "replies[0] has `kind` but no `error`"),
        (
            json!([{ "error": "e", "times": 0 }, "t"]),
            "replies[0].times must be a whole number, and at least 1",
        ),
        (
            json!(["t", { "error": "e", "times": 1 }]),
            "replies[1] has `times`, and no reply follows; give one, or leave `times` out",
        ),
        (json!([{ "error": "e", "retry_after": 5 }]), "replies[0].retry_after must be a text"),
        (
            json!([{ "error": "e", "kind": "busy" }]),
            "replies[0].kind: unknown variant `busy`, expected one of `rate_limited`, `overloaded`, \
             `auth`, `bad_request`, `truncated`, `malformed`, `timeout`, `transport`, `other`",
        ),
        (
            json!([{ "text": "t", "wait": "5" }]),
            "replies[0].wait: the limit `5` has no unit; write for example `5s` or `5ms`",
        ),
    ] {
        let error = Script::from_json(&script).expect_err("a bad script");
        assert_eq!(error.to_string(), message, "{script}");
    }
}

#[test]
fn scripts_are_told_apart_by_their_names() {
    let script = Script::from_json(&json!(["x"])).expect("a good script");
    assert_eq!(script.name(), "script");
    assert_eq!(script.named("script:up.yaml").name(), "script:up.yaml");
}
