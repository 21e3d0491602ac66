//! One model call, made by a real agent.

use std::sync::{Arc, Mutex};
use tenure_core::Error;
use tenure_core::agent::Agent;
use tenure_core::hook;
use tenure_core::message::{Message, ToolCall, ToolResult, ToolStatus};
use tenure_core::model::{Model, ModelResponse};

/// What `model` answers to exactly these messages.
pub(crate) async fn answer<M: Model>(
    model: &Arc<M>,
    messages: impl IntoIterator<Item = Message>,
) -> Result<ModelResponse, Error> {
    let messages: Vec<Message> = messages.into_iter().collect();
    let answered = Arc::new(Mutex::new(None));
    let keep = answered.clone();
    let ask = hook::wrap_model_call(move |_cx, request, next| {
        let (messages, keep) = (messages.clone(), keep.clone());
        Box::pin(async move {
            request.messages = messages.into();
            let response = next.call(request).await?;
            *keep.lock().unwrap() = Some(response);
            Ok(ModelResponse::text("done"))
        })
    });
    let agent = Agent::builder("asker").model(model.clone()).with_lifecycle(ask).build()?;
    agent.startup().await?;
    let result = agent.run("ask").await;
    agent.shutdown().await;
    result?;
    let response = answered.lock().unwrap().take();
    Ok(response.expect("the model answered, because the turn ended well"))
}

/// The text that `model` answers to a user who says `text`.
pub(crate) async fn says<M: Model>(model: &Arc<M>, text: &str) -> String {
    answer(model, [Message::user(text)]).await.unwrap().content.into_text()
}

pub(crate) fn tool_result(id: &str, content: &str) -> Message {
    Message::Tool(ToolResult {
        call_id: id.into(),
        name: "tool".into(),
        content: content.into(),
        status: ToolStatus::Ok,
    })
}

pub(crate) fn asks_for_tools(ids: &[&str]) -> Message {
    Message::Assistant {
        content: "".into(),
        calls: ids.iter().map(|id| ToolCall::new(*id, "tool", "{}")).collect(),
    }
}

/// The pieces in which an agent with this model streams its answer to `hello`.
pub(crate) async fn streamed(model: impl Model) -> Vec<String> {
    let agent = Agent::builder("streaming").model(model).build().unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("to be or not");
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        pieces.push(piece);
    }
    stream.finish().await.unwrap();
    agent.shutdown().await;
    pieces
}
