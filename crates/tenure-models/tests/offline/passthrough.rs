use crate::offline::support::{answer, asks_for_tools, says, streamed, tool_result};
use serde_json::json;
use std::sync::Arc;
use tenure_core::agent::Agent;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelResponse, StopReason, Usage};
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_models::Passthrough;

fn passthrough() -> Arc<Passthrough> {
    Arc::new(Passthrough::new())
}

async fn refused(text: &str) -> (ModelErrorKind, String) {
    let error = answer(&passthrough(), [Message::user(text)]).await.unwrap_err();
    let kind = error.model_error().map(ModelError::kind);
    (kind.expect("a model's error"), error.to_string())
}

#[tokio::test]
async fn an_assistant_message_at_the_end_is_returned_as_it_is() {
    let last = Message::Assistant {
        content: "***CALL_TOOL no".into(),
        calls: vec![ToolCall::new("a", "tool", "{}")],
    };
    let response = answer(&passthrough(), [Message::user("hi"), last]).await.unwrap();
    assert_eq!(response.content.text(), "***CALL_TOOL no");
    assert_eq!(response.calls, [ToolCall::new("a", "tool", "{}")]);
    let plain = answer(&passthrough(), [Message::assistant("said")]).await.unwrap();
    assert_eq!((plain.content.text(), plain.stop), ("said", StopReason::EndTurn));
}

#[tokio::test]
async fn a_tool_is_called_with_ids_counted_from_zero_and_the_text_echoed() {
    let model = passthrough();
    let command = r#"***CALL_TOOL fetch {"url": "a b"}"#;
    let expected = |id: &str| ModelResponse {
        content: command.into(),
        usage: Usage::new(5, 8),
        ..ModelResponse::calls([ToolCall::new(id, "fetch", r#"{"url": "a b"}"#)])
    };
    for id in ["correlationId0", "correlationId1"] {
        let response = answer(&model, [Message::user(command)]).await.unwrap();
        assert_eq!(response, expected(id));
    }
    let other = answer(&passthrough(), [Message::user("***CALL_TOOL fetch")]).await.unwrap();
    assert_eq!(other.calls, [ToolCall::new("correlationId0", "fetch", "{}")]);
    assert_eq!(other.stop, StopReason::ToolUse);
}

#[tokio::test]
async fn a_command_in_the_middle_of_a_text_is_only_text() {
    assert_eq!(says(&passthrough(), "say ***CALL_TOOL x").await, "say ***CALL_TOOL x");
    let response = answer(&passthrough(), [Message::user(" ***CALL_TOOL x")]).await.unwrap();
    assert!(response.calls.is_empty());
}

#[tokio::test]
async fn a_command_without_a_tool_name_is_a_bad_request() {
    for command in ["***CALL_TOOL", "***CALL_TOOL ", "***CALL_TOOL  x"] {
        let (kind, message) = refused(command).await;
        assert_eq!(kind, ModelErrorKind::BadRequest, "{command:?}");
        assert_eq!(message, "Invalid format. Expected '***CALL_TOOL <tool_name> [arguments_json]'");
    }
}

#[tokio::test]
async fn arguments_that_are_not_json_are_a_bad_request() {
    let (kind, message) = refused("***CALL_TOOL fetch {oops").await;
    assert_eq!(kind, ModelErrorKind::BadRequest);
    assert_eq!(message, "Invalid JSON arguments: {oops");
}

#[tokio::test]
async fn a_refused_command_uses_up_no_id() {
    let model = passthrough();
    answer(&model, [Message::user("***CALL_TOOL fetch {oops")]).await.unwrap_err();
    let response = answer(&model, [Message::user("***CALL_TOOL fetch")]).await.unwrap();
    assert_eq!(&*response.calls[0].id, "correlationId0");
}

#[tokio::test]
async fn a_fixed_response_sticks_and_an_empty_one_clears_it() {
    let model = passthrough();
    assert_eq!(says(&model, "***FIXED_RESPONSE so it is").await, "so it is");
    assert_eq!(says(&model, "really?").await, "so it is");
    assert_eq!(says(&model, "***FIXED_RESPONSE").await, "***FIXED_RESPONSE");
    assert_eq!(says(&model, "really?").await, "really?");
}

#[tokio::test]
async fn a_fixed_response_does_not_stop_a_tool_call() {
    let model = passthrough();
    says(&model, "***FIXED_RESPONSE fixed").await;
    let response = answer(&model, [Message::user("***CALL_TOOL fetch")]).await.unwrap();
    assert_eq!(response.content.text(), "fixed");
    assert_eq!(response.calls.len(), 1);
}

#[tokio::test]
async fn tool_results_are_joined_and_go_before_a_fixed_response() {
    let model = passthrough();
    says(&model, "***FIXED_RESPONSE fixed").await;
    let messages = [
        Message::user("go"),
        asks_for_tools(&["a", "b", "c"]),
        tool_result("a", "one"),
        tool_result("b", ""),
        tool_result("c", "three"),
    ];
    let response = answer(&model, messages).await.unwrap();
    assert_eq!(response.content.text(), "one <empty> three");
    assert_eq!(response.stop, StopReason::EndTurn);
}

#[tokio::test]
async fn only_the_results_of_the_last_batch_are_joined() {
    let messages = [
        asks_for_tools(&["a"]),
        tool_result("a", "old"),
        asks_for_tools(&["b"]),
        tool_result("b", "new"),
    ];
    assert_eq!(answer(&passthrough(), messages).await.unwrap().content.text(), "new");
}

#[tokio::test]
async fn user_messages_at_the_end_are_joined_by_newline() {
    let messages = [
        Message::user("before"),
        Message::assistant("said"),
        Message::user("one"),
        Message::user("two"),
    ];
    assert_eq!(answer(&passthrough(), messages).await.unwrap().content.text(), "one\ntwo");
    assert_eq!(answer(&passthrough(), []).await.unwrap().content.text(), "");
}

#[tokio::test]
async fn usage_is_recorded_in_words() {
    let agent = Agent::builder("counted")
        .model(Passthrough::new())
        .instruction("be brief")
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("one two three").await.unwrap().usage, Usage::new(5, 3));
    agent.shutdown().await;
}

#[tokio::test]
async fn an_agent_calls_the_tool_and_says_its_result() {
    let echo = FnTool::new(ToolSpec::new("echo", "Echo"), |arguments| {
        Ok(arguments["text"].clone().into())
    });
    let agent = Agent::builder("caller").model(Passthrough::new()).tool(echo).build().unwrap();
    agent.startup().await.unwrap();
    let report = agent.run(r#"***CALL_TOOL echo {"text": "it works"}"#).await.unwrap();
    assert_eq!((report.output(), report.steps), ("it works", 2));
    agent.shutdown().await;
}

#[tokio::test]
async fn structured_output_is_its_own_echo_read_as_json() {
    let agent = Agent::builder("structured").model(Passthrough::new()).build().unwrap();
    agent.startup().await.unwrap();
    let (value, _) = agent.request(r#"{"a": 1}"#).run_as::<serde_json::Value>().await.unwrap();
    assert_eq!(value, json!({"a": 1}));
    agent.shutdown().await;
}

#[tokio::test]
async fn text_is_streamed_word_by_word() {
    assert_eq!(streamed(Passthrough::new()).await, ["to ", "be ", "or ", "not"]);
    assert_eq!(Passthrough::new().name(), "passthrough");
}
