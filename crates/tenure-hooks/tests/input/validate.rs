//! Input that is refused before any model is asked.

use crate::input::support::with_hook;
use crate::support::{made, refused};
use serde_json::{Value, json};
use tenure_core::drive::Input;
use tenure_core::hook::IntoRegistration;
use tenure_hooks::input::Validate;

/// What an input is refused with, if it is; and that a model was asked only if it is not.
async fn said_to(with: Value, input: &str) -> Option<String> {
    let (agent, heard) = with_hook(made("validate", with).expect("it works here"));
    let result = agent.scoped(async |agent| agent.run(input).await).await;
    assert_eq!(heard.requests().len(), usize::from(result.is_ok()));
    let error = result.err()?;
    assert!(error.is_denied(), "{error:?}");
    Some(error.to_string())
}

#[tokio::test]
async fn empty_and_blank_input_is_refused_unless_it_is_allowed() {
    assert_eq!(said_to(json!({}), "").await.unwrap(), "the input is empty");
    assert_eq!(said_to(json!({}), " \n\t").await.unwrap(), "the input has nothing but blanks");
    assert_eq!(said_to(json!({}), "hello").await, None);
    assert_eq!(said_to(json!({ "allow_blank": true }), " ").await, None);
}

#[tokio::test]
async fn length_is_counted_in_characters() {
    let with = || json!({ "min_chars": 3, "max_chars": 5 });
    assert_eq!(said_to(with(), "äöü€₿").await, None);
    let long = said_to(with(), "äöü€₿!").await.unwrap();
    assert_eq!(long, "the input has 6 characters, and at most 5 are allowed");
    let short = said_to(with(), "ab").await.unwrap();
    assert_eq!(short, "the input has 2 characters, and at least 3 are wanted");
}

#[tokio::test]
async fn patterns_are_wanted_and_forbidden() {
    let with = || json!({ "matches": ["^order \\d+$"], "forbids": ["13"] });
    assert_eq!(said_to(with(), "order 42").await, None);
    assert!(said_to(with(), "my order 42").await.unwrap().contains("does not match `^order"));
    assert!(said_to(with(), "order 4132").await.unwrap().contains("matches `13`"));
    let with = json!({ "forbids": ["x"], "message": "Please ask about orders." });
    assert_eq!(said_to(with, "x").await.unwrap(), "Please ask about orders.");
}

#[tokio::test]
async fn json_is_held_against_its_schema_with_a_reason_that_names_the_place() {
    let with = || {
        json!({ "schema": {
            "type": "object",
            "properties": { "count": { "type": "integer", "minimum": 1 }, "name": { "type": "string" } },
            "required": ["count"],
            "additionalProperties": false,
        } })
    };
    assert_eq!(said_to(with(), r#"{"count": 2}"#).await, None);
    let reason = said_to(with(), r#"{"count": "secret", "name": 1}"#).await.unwrap();
    assert!(reason.contains("/count") && reason.contains("/name"), "{reason}");
    assert!(!reason.contains("secret"), "{reason}");
    assert!(said_to(with(), "{}").await.unwrap().contains("count"));
    assert!(said_to(with(), "two").await.unwrap().contains("has to be JSON"));
}

#[tokio::test]
async fn tokens_are_counted_as_models_do() {
    assert_eq!(said_to(json!({ "max_tokens": 50 }), "a short question").await, None);
    let long = "word ".repeat(60);
    let reason = said_to(json!({ "max_tokens": 50 }), &long).await.unwrap();
    assert!(reason.contains("tokens, and at most 50 are allowed"), "{reason}");
}

#[test]
fn options_are_checked() {
    assert_eq!(refused("validate", json!({ "max_chars": 2, "min_chars": 3 })), "max_chars");
    assert_eq!(refused("validate", json!({ "max_chars": 0 })), "max_chars");
    assert_eq!(refused("validate", json!({ "max_tokens": 0 })), "max_tokens");
    assert_eq!(refused("validate", json!({ "matches": ["("] })), "matches[0]");
    assert_eq!(refused("validate", json!({ "schema": { "type": "nonsense" } })), "schema");
    let remote = json!({ "schema": { "$ref": "http://127.0.0.1:1/schema.json" } });
    assert_eq!(refused("validate", remote), "schema");
    assert!(Validate::new().matches("(").is_err());
    assert!(Validate::new().into_registration().is_guard());
}

#[tokio::test]
async fn what_others_said_before_is_judged_too() {
    for (earlier, passes) in [("order 1", true), ("a secret word", false)] {
        let (agent, heard) = with_hook(made("validate", json!({ "forbids": ["secret"] })).unwrap());
        let input = Input::text("order 2").after(vec![earlier.into()]);
        let result = agent.scoped(async |agent| agent.run(input).await).await;
        assert_eq!(result.is_ok(), passes, "{earlier}");
        assert_eq!(heard.requests().len(), usize::from(passes));
    }
}

#[tokio::test]
async fn a_pattern_of_a_schema_takes_no_more_time_than_there_is_text() {
    // What goes back and forth in a text has no place in what others send.
    let back = json!({ "schema": { "type": "string", "pattern": "^(a)\\1$" } });
    assert_eq!(refused("validate", back), "schema");
    let with = json!({ "schema": { "type": "string", "pattern": "^(a+)+$" } });
    let begun = std::time::Instant::now();
    let text = format!("\"{}!\"", "a".repeat(5000));
    assert!(said_to(with, &text).await.is_some());
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
}
