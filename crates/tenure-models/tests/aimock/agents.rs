//! Agents whose model is behind the mock server.

use crate::aimock::server::Aimock;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder, Request};
use tenure_core::context::{ModelCx, ToolCx};
use tenure_core::drive::TurnReport;
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_models::provider::{Authority, ProviderConfig, ProviderEntry, Providers, RemoteModel};

/// A key that every provider here has. The server takes any.
pub(crate) const KEY: &str = "sk-of-the-mock-server";

/// The wire, and whether somebody reads along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    OpenAi,
    OpenAiStream,
    Anthropic,
    AnthropicStream,
}

impl Way {
    pub(crate) const ALL: [Self; 4] =
        [Self::OpenAi, Self::OpenAiStream, Self::Anthropic, Self::AnthropicStream];

    pub(crate) fn streams(self) -> bool {
        matches!(self, Self::OpenAiStream | Self::AnthropicStream)
    }

    fn spec(self) -> &'static str {
        match self {
            Self::OpenAi | Self::OpenAiStream => "openai.gpt-4.1-mini",
            Self::Anthropic | Self::AnthropicStream => "anthropic.claude-haiku-4-5",
        }
    }

    /// A model that asks `server`.
    pub(crate) fn model(self, server: &Aimock) -> RemoteModel {
        let mut config = ProviderConfig::default();
        for provider in ["openai", "anthropic"] {
            let mut entry = ProviderEntry::default();
            entry.base_url = Some((format!("{}/v1", server.url()), Authority::User));
            config.providers.insert(provider.to_owned(), entry);
        }
        let providers =
            Providers::with_env(config, |name| name.ends_with("_API_KEY").then(|| KEY.to_owned()));
        providers.model(self.spec()).expect("the model is known, and has a key")
    }

    /// One turn, read as this way says.
    pub(crate) async fn run(self, request: Request<'_>) -> Turn {
        if !self.streams() {
            return Turn { deltas: Vec::new(), result: request.run().await };
        }
        let mut stream = request.stream();
        let mut deltas = Vec::new();
        while let Some(delta) = stream.next().await {
            deltas.push(delta);
        }
        Turn { deltas, result: stream.finish().await }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OpenAi => "openai",
            Self::OpenAiStream => "openai, streamed",
            Self::Anthropic => "anthropic",
            Self::AnthropicStream => "anthropic, streamed",
        })
    }
}

/// What a turn gave.
pub(crate) struct Turn {
    pub(crate) deltas: Vec<String>,
    pub(crate) result: Result<TurnReport, Error>,
}

/// A model, and how often it was called.
#[derive(Clone)]
pub(crate) struct Counted {
    model: Arc<RemoteModel>,
    calls: Arc<AtomicUsize>,
}

impl Counted {
    pub(crate) fn new(model: RemoteModel) -> Self {
        Self { model: Arc::new(model), calls: Arc::default() }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Model for Counted {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.model.call(request, cx).await
    }
}

/// A tool that remembers every call: its id and its arguments.
#[derive(Clone, Default)]
pub(crate) struct Lookup {
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Lookup {
    pub(crate) fn seen(&self) -> Vec<(String, Value)> {
        self.seen.lock().expect("nobody panicked").clone()
    }

    /// The arguments of the calls, in the order of their keys, because calls run side by side.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self
            .seen()
            .into_iter()
            .map(|(_, arguments)| arguments["key"].as_str().unwrap_or("none").to_owned())
            .collect();
        keys.sort();
        keys
    }
}

#[async_trait]
impl Tool for Lookup {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("lookup", "Looks up a value").parameters(json!({
            "type": "object",
            "properties": { "key": { "type": "string" } },
            "required": ["key"],
        }))
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let call = (cx.call_id().to_owned(), arguments.clone());
        self.seen.lock().expect("nobody panicked").push(call);
        Ok(ToolOutput::text(format!("the value of {} is 42", arguments["key"])))
    }
}

/// An agent with this model and this tool.
pub(crate) fn agent(model: impl Model, tool: &Lookup) -> AgentBuilder {
    Agent::builder("clerk").instruction("You are a clerk.").model(model).tool(tool.clone())
}

/// A started agent.
pub(crate) async fn started(builder: AgentBuilder) -> Agent {
    let agent = builder.build().expect("the agent is complete");
    agent.startup().await.expect("nothing can fail at startup");
    agent
}
