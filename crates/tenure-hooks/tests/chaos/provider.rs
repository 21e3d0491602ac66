//! Real providers behind mock servers, and a tool that remembers its calls.

use crate::chaos::server::Aimock;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_core::context::{ModelCx, ToolCx};
use tenure_core::message::Message;
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_models::provider::{Authority, ProviderConfig, ProviderEntry, Providers, RemoteModel};

/// One call of a model.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The run that made it.
    pub(crate) run: usize,
    /// How many messages it had: those of one run that have the same number want the same answer.
    pub(crate) messages: usize,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// How it failed, and when it was told to come back.
    pub(crate) failed: Option<(ModelErrorKind, Option<Duration>)>,
}

/// A provider's model that remembers when it was called. Clones are one.
#[derive(Clone)]
pub(crate) struct Timed {
    model: Arc<RemoteModel>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Timed {
    pub(crate) fn new(name: &str, server: &Aimock) -> Self {
        let mut config = ProviderConfig::default();
        for provider in ["openai", "anthropic"] {
            let mut entry = ProviderEntry::default();
            entry.base_url = Some((format!("{}/v1", server.url()), Authority::User));
            config.providers.insert(provider.to_owned(), entry);
        }
        // The server takes any key.
        let key = |name: &str| name.ends_with("_API_KEY").then(|| "sk-of-the-mock".to_owned());
        let model = Providers::with_env(config, key).model(name);
        let model = model.expect("the model is known, and has a key");
        Self { model: Arc::new(model), calls: Arc::default() }
    }

    /// Every call that has ended, in the order in which they began.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let mut calls = self.calls.lock().expect("nobody panicked").clone();
        calls.sort_by_key(|call| call.began);
        calls
    }
}

fn run_of(request: &ModelRequest) -> usize {
    let said = request.messages.iter().find_map(|message| match message {
        Message::User { content } => {
            content.text().strip_prefix("run ")?.split_once(':')?.0.parse().ok()
        }
        _ => None,
    });
    said.expect("every question has the number of its run")
}

#[async_trait]
impl Model for Timed {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let (run, messages, began) = (run_of(request), request.messages.len(), Instant::now());
        let result = self.model.call(request, cx).await;
        let failed = result.as_ref().err().map(|error| (error.kind(), error.retry_after()));
        let call = Call { run, messages, began, ended: Instant::now(), failed };
        self.calls.lock().expect("nobody panicked").push(call);
        result
    }

    fn name(&self) -> &str {
        self.model.name()
    }
}

/// A tool that must not be called twice, and remembers the ids of its calls.
#[derive(Clone, Default)]
pub(crate) struct Lookup {
    seen: Arc<Mutex<Vec<String>>>,
}

impl Lookup {
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("nobody panicked").clone()
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
        self.seen.lock().expect("nobody panicked").push(cx.call_id().to_owned());
        Ok(ToolOutput::text(format!("the value of {} is 42", arguments["key"])))
    }
}
