use crate::offline::support::{answer, asks_for_tools, says, streamed, tool_result};
use serde_json::json;
use std::sync::Arc;
use tenure_core::agent::Agent;
use tenure_core::message::Message;
use tenure_core::model::{Model, ModelError, ModelErrorKind};
use tenure_models::Playback;

fn conversation() -> Vec<Message> {
    vec![
        Message::user("one?"),
        Message::assistant("one"),
        Message::user("two?"),
        Message::user("two, please"),
        Message::assistant("two"),
    ]
}

#[tokio::test]
async fn assistant_messages_come_in_order_and_user_ones_are_skipped() {
    let model = Arc::new(Playback::from(conversation()));
    assert_eq!(says(&model, "anything").await, "one");
    assert_eq!(says(&model, "anything").await, "two");
}

#[tokio::test]
async fn an_exhausted_tape_says_its_size_and_the_overage_from_zero() {
    let model = Arc::new(Playback::new(conversation()));
    says(&model, "").await;
    says(&model, "").await;
    for overage in 0..3 {
        assert_eq!(
            says(&model, "more").await,
            format!("MESSAGES EXHAUSTED (list size 5) ({overage} overage)")
        );
    }
}

#[tokio::test]
async fn the_first_request_is_the_tape_if_there_is_none() {
    let model = Arc::new(Playback::loading());
    let loaded = answer(&model, conversation()).await.unwrap();
    assert_eq!(loaded.content.text(), "HISTORY LOADED (5) messages");
    assert_eq!(loaded.usage.calls, 1);
    assert_eq!(says(&model, "anything").await, "one");
}

#[tokio::test]
async fn a_structured_first_request_is_refused_before_a_tape_is_loaded() {
    let agent = Agent::builder("structured").model(Playback::loading()).build().unwrap();
    agent.startup().await.unwrap();
    let request = || agent.request("go").output_schema(json!({"type": "object"}));
    let error = request().run().await.unwrap_err();
    assert_eq!(error.to_string(), "Use generate() to load playback history");
    assert_eq!(error.model_error().map(ModelError::kind), Some(ModelErrorKind::BadRequest));
    agent.run("load").await.unwrap();
    let played = request().run().await.unwrap();
    assert!(played.output().starts_with("MESSAGES EXHAUSTED"));
    agent.shutdown().await;
}

#[tokio::test]
async fn tool_calls_are_not_played_back() {
    let tape = [asks_for_tools(&["a"]), tool_result("a", "result"), Message::assistant("after")];
    let model = Arc::new(Playback::new(tape));
    let first = answer(&model, [Message::user("go")]).await.unwrap();
    assert!(first.calls.is_empty());
    assert_eq!(says(&model, "go").await, "after");
}

#[tokio::test]
async fn what_is_played_is_streamed() {
    let model = Playback::new([Message::assistant("as it was")]);
    assert_eq!(model.name(), "playback");
    assert_eq!(streamed(model).await, ["as ", "it ", "was"]);
}
