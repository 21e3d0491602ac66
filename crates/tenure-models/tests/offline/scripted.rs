use crate::offline::support::{answer, says, streamed};
use serde_json::json;
use std::sync::Arc;
use tenure_core::ErrorKind;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelResponse, StopReason, Usage};
use tenure_models::{Reply, Scripted};

#[tokio::test]
async fn replies_come_in_order_and_calls_get_their_own_ids() {
    let model = Arc::new(
        Scripted::new(["hello"])
            .call("clock", json!({"zone": "utc"}))
            .calls([("a", json!({})), ("b", json!({}))])
            .text("bye"),
    );
    assert_eq!(says(&model, "x").await, "hello");
    let one = answer(&model, [Message::user("x")]).await.unwrap();
    assert_eq!(one.calls, [ToolCall::new("call_0", "clock", r#"{"zone":"utc"}"#)]);
    assert_eq!(one.stop, StopReason::ToolUse);
    let two = answer(&model, [Message::user("x")]).await.unwrap();
    let ids: Vec<_> = two.calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids, ["call_1", "call_2"]);
    assert_eq!(says(&model, "x").await, "bye");
    assert_eq!((model.calls_made(), model.remaining()), (4, Some(0)));
}

#[tokio::test]
async fn an_exhausted_script_says_how_long_it_was() {
    let model = Arc::new(Scripted::new(["only"]));
    says(&model, "x").await;
    let error = answer(&model, [Message::user("x")]).await.unwrap_err();
    assert_eq!(error.to_string(), "the script has 1 replies, and this is call 2; add a reply");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn errors_and_panics_are_part_of_a_script() {
    let model = Arc::new(
        Scripted::empty()
            .error(ModelErrorKind::RateLimited, "slow down")
            .panics("no more")
            .reply(Err(ModelError::new(ModelErrorKind::Auth, "no key")))
            .text("recovered"),
    );
    let error = answer(&model, [Message::user("x")]).await.unwrap_err();
    assert!(error.is_retryable());
    let error = answer(&model, [Message::user("x")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panicked);
    assert!(error.to_string().contains("no more"), "{error}");
    let error = answer(&model, [Message::user("x")]).await.unwrap_err();
    assert_eq!(error.to_string(), "no key");
    assert_eq!(says(&model, "x").await, "recovered");
}

#[tokio::test]
async fn a_closure_sees_the_request_and_the_number_of_the_call() {
    let model = Arc::new(Scripted::from_fn(|request, call| {
        let said = request.messages.last().map_or("", Message::text);
        Ok(ModelResponse::text(format!("{call}: {said}")))
    }));
    assert_eq!(says(&model, "a").await, "0: a");
    assert_eq!(says(&model, "b").await, "1: b");
    assert_eq!(model.remaining(), None);
}

#[tokio::test]
async fn usage_is_in_words_unless_the_script_says_otherwise() {
    let given = ModelResponse::text("x").with_usage(Usage::new(100, 7));
    let model = Arc::new(Scripted::new([Reply::from("two words"), given.into()]));
    let usage = |response: ModelResponse| response.usage;
    let ask = || answer(&model, [Message::user("one two three")]);
    assert_eq!(ask().await.map(usage).unwrap(), Usage::new(3, 2));
    assert_eq!(ask().await.map(usage).unwrap(), Usage::new(100, 7));
}

#[tokio::test]
async fn text_is_streamed_word_by_word() {
    let model = Scripted::new(["a  b\nc"]);
    assert_eq!(model.name(), "scripted");
    assert_eq!(streamed(model).await, ["a ", " ", "b\n", "c"]);
}
