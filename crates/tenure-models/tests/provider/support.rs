//! One call of a provider's model, made by a real agent.

use crate::provider::server::{Server, Step};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::Error;
use tenure_core::agent::Agent;
use tenure_core::context::ModelCx;
use tenure_core::message::{Message, ToolCall, ToolResult, ToolStatus};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use tenure_core::tool::ToolSpec;
use tenure_models::provider::{
    Authority, ProviderConfig, ProviderEntry, Providers, RemoteModel, Timeouts,
};

/// The key that tests send, and that must never be seen.
pub(crate) const KEY: &str = "sk-test-0123456789";

/// Whether somebody reads along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Streamed,
    Whole,
}

/// The four wires, each by the name of a provider that speaks it.
pub(crate) const WIRES: [&str; 4] = ["openai", "anthropic", "google", "ollama"];

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) answer: Result<ModelResponse, Error>,
    pub(crate) deltas: Vec<String>,
}

impl Asked {
    pub(crate) fn response(self) -> ModelResponse {
        self.answer.unwrap()
    }

    /// The error, which shows no key.
    pub(crate) fn error(&self) -> &ModelError {
        let error = self.answer.as_ref().unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(KEY), "the key is shown: {shown}");
        error.model_error().unwrap()
    }

    pub(crate) fn kind(&self) -> ModelErrorKind {
        self.error().kind()
    }
}

/// Providers whose servers are all at `url`, as the user wants it, with short limits.
pub(crate) fn providers_at(url: &str) -> Providers {
    providers_within(url, Duration::from_millis(600), Duration::from_millis(1_500))
}

/// The same with these limits to silence and to an answer in one piece.
pub(crate) fn providers_within(url: &str, idle: Duration, whole: Duration) -> Providers {
    let mut config = ProviderConfig::default();
    for (name, path) in
        [("openai", "/v1"), ("anthropic", ""), ("google", "/v1beta"), ("ollama", "")]
    {
        let mut entry = ProviderEntry::default();
        entry.base_url = Some((format!("{url}{path}"), Authority::User));
        config.providers.insert(name.to_owned(), entry);
    }
    let mut timeouts = Timeouts::default();
    timeouts.head = Duration::from_millis(600);
    timeouts.idle = Some(idle);
    timeouts.whole = whole;
    config.timeouts = timeouts;
    Providers::with_env(config, |name| name.ends_with("_API_KEY").then(|| KEY.to_owned()))
}

/// The model of a wire, behind `server`.
pub(crate) fn model_of(server: &Server, wire: &str) -> RemoteModel {
    providers_at(&server.url).model(name_of(wire)).unwrap()
}

fn name_of(wire: &str) -> &'static str {
    match wire {
        "openai" => "openai.gpt-4o",
        "anthropic" => "anthropic.claude-sonnet-4-5",
        "google" => "google.gemini-3-pro-preview",
        _ => "ollama.llama3.2:1b",
    }
}

/// A model that asks another one something else, and keeps what it answers. A hook could do the
/// same, but what a hook may change nobody gets to read before it did.
struct Asking {
    model: RemoteModel,
    edit: Box<dyn Fn(&mut ModelRequest) + Send + Sync>,
    answered: Arc<Mutex<Option<ModelResponse>>>,
}

#[async_trait]
impl Model for Asking {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let mut request = request.clone();
        (self.edit)(&mut request);
        let response = self.model.call(&request, cx).await?;
        let text = response.content.clone();
        *self.answered.lock().unwrap() = Some(response);
        Ok(ModelResponse::text(text))
    }
}

/// Asks `model` what `edit` makes of a request.
pub(crate) async fn ask_with(
    model: RemoteModel,
    mode: Mode,
    edit: impl Fn(&mut ModelRequest) + Send + Sync + 'static,
) -> Asked {
    let answered = Arc::new(Mutex::new(None));
    let asking = Asking { model, edit: Box::new(edit), answered: answered.clone() };
    let agent = Agent::builder("asker").model(asking).build().unwrap();
    agent.startup().await.unwrap();
    let mut deltas = Vec::new();
    let ended = match mode {
        Mode::Whole => agent.run("hello").await.map(drop),
        Mode::Streamed => {
            let mut stream = agent.stream("hello");
            while let Some(piece) = stream.next().await {
                deltas.push(piece);
            }
            stream.finish().await.map(drop)
        }
    };
    agent.shutdown().await;
    let response = answered.lock().unwrap().take();
    Asked { answer: ended.map(|()| response.expect("the model answered")), deltas }
}

/// Asks the model of `wire` behind a server that takes these steps.
pub(crate) async fn ask(wire: &str, mode: Mode, steps: Vec<Step>) -> Asked {
    let server = Server::one(steps).await;
    let asked = ask_with(model_of(&server, wire), mode, |_| {}).await;
    server.stop().await;
    asked
}

/// The same with other limits, see [`providers_within`].
pub(crate) async fn ask_within(
    (idle, whole): (Duration, Duration),
    wire: &str,
    mode: Mode,
    steps: Vec<Step>,
) -> Asked {
    let server = Server::one(steps).await;
    let model = providers_within(&server.url, idle, whole).model(name_of(wire)).unwrap();
    let asked = ask_with(model, mode, |_| {}).await;
    server.stop().await;
    asked
}

/// A conversation with everything in it: a call that went well, and one that failed.
pub(crate) fn conversation(request: &mut ModelRequest) {
    request.instruction = Some("Be brief.".into());
    request.tools = vec![Arc::new(weather())].into();
    let result = |id: &str, content: &str, status| {
        Message::Tool(ToolResult {
            call_id: id.into(),
            name: "weather".into(),
            content: content.into(),
            status,
        })
    };
    request.messages = vec![
        Message::user("Is it warm?"),
        Message::Assistant {
            content: "I will look.".into(),
            calls: vec![
                ToolCall::new("call_1", "weather", r#"{"city":"Paris"}"#),
                ToolCall::new("call_2", "weather", r#"{"city":"Atlantis"}"#),
            ],
        },
        result("call_1", "21 degrees", ToolStatus::Ok),
        result("call_2", "no such city", ToolStatus::Error),
    ]
    .into();
}

pub(crate) fn result_of(id: &str) -> Message {
    Message::Tool(ToolResult {
        call_id: id.into(),
        name: "weather".into(),
        content: "21 degrees".into(),
        status: ToolStatus::Ok,
    })
}

pub(crate) fn weather() -> ToolSpec {
    let mut spec = ToolSpec::new("weather", "Says how warm it is.");
    spec.parameters = json!({
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
    });
    spec
}

pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "warm": { "type": "boolean" } },
        "required": ["warm"],
        "additionalProperties": false,
    })
}
