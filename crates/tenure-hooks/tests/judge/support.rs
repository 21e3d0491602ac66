//! What the tests here share.

use std::sync::{Arc, Mutex};
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::context::ModelCx;
use tenure_core::drive::TurnReport;
use tenure_core::event::{EventBus, EventKind};
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};
use tenure_models::Scripted;
use tenure_testkit::Recorder;

/// A scripted model that remembers what it was asked. Clones are one.
#[derive(Clone)]
pub(crate) struct Heard {
    model: Arc<Scripted>,
    name: &'static str,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Heard {
    pub(crate) fn new(replies: Scripted) -> Self {
        Self { model: Arc::new(replies), name: "heard", requests: Arc::default() }
    }

    pub(crate) fn says<const N: usize>(replies: [&str; N]) -> Self {
        Self::new(Scripted::new(replies))
    }

    pub(crate) fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// How often it was asked.
    pub(crate) fn times(&self) -> usize {
        self.requests.lock().expect("it works here").len()
    }

    /// What it was asked, call by call: instruction and texts of the messages.
    pub(crate) fn asked(&self, call: usize) -> (String, Vec<String>) {
        let requests = self.requests.lock().expect("it works here");
        let request = &requests[call];
        let instruction = request.instruction.as_deref().unwrap_or_default().to_owned();
        (instruction, request.messages.iter().map(|message| message.text().to_owned()).collect())
    }
}

#[async_trait::async_trait]
impl Model for Heard {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        self.requests.lock().expect("it works here").push(request.clone());
        self.model.call(request, cx).await
    }

    fn name(&self) -> &str {
        self.name
    }
}

pub(crate) const APPROVE: &str = r#"{"verdict": "approve"}"#;

pub(crate) fn reject(critique: &str) -> String {
    format!(r#"{{"verdict": "reject", "critique": "{critique}"}}"#)
}

pub(crate) fn scored(critique: &str, score: u32) -> String {
    format!(r#"{{"verdict": "reject", "critique": "{critique}", "score": {score}}}"#)
}

pub(crate) fn modify(text: &str) -> String {
    format!(r#"{{"verdict": "modify", "text": "{text}"}}"#)
}

/// Builds, starts, asks, and shuts down.
pub(crate) async fn ask(builder: AgentBuilder, input: &str) -> Result<TurnReport, Error> {
    builder.build()?.scoped(async |agent: &Agent| agent.run(input).await).await
}

/// A bus, and what was announced on it under a name.
pub(crate) struct Announced(Recorder);

impl Announced {
    pub(crate) fn new() -> (EventBus, Self) {
        let bus = EventBus::new();
        let recorder = Recorder::new(&bus);
        (bus, Self(recorder))
    }

    pub(crate) fn named(&self, wanted: &str) -> Vec<serde_json::Value> {
        let of_it = |kind: &EventKind| match kind {
            EventKind::Announced { name, data } if *name == wanted => Some(data.clone()),
            _ => None,
        };
        self.0.events().iter().filter_map(|event| of_it(&event.kind)).collect()
    }
}
