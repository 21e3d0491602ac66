//! Models and tools that do what a test says, and remember when.

use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::context::{ModelCx, ToolCx};
use tenure_core::message::ToolCall;
use tenure_core::model::{
    Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, StopReason,
};
use tenure_core::step::{MemoryStepLog, Steps};
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use tokio::time::Instant;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// What a model does in one call: waits, says some pieces, and ends.
pub(crate) struct Act {
    wait: Duration,
    pieces: &'static [&'static str],
    end: Result<ModelResponse, ModelError>,
}

/// Answers in these pieces.
pub(crate) fn says(pieces: &'static [&'static str]) -> Act {
    Act { wait: Duration::ZERO, pieces, end: Ok(ModelResponse::text(pieces.concat())) }
}

/// Fails.
pub(crate) fn fails(kind: ModelErrorKind) -> Act {
    breaks(&[], ModelError::new(kind, format!("{kind:?}")))
}

/// Says some pieces, and then fails.
pub(crate) fn breaks(pieces: &'static [&'static str], error: ModelError) -> Act {
    Act { wait: Duration::ZERO, pieces, end: Err(error) }
}

/// Calls a tool.
pub(crate) fn calls(tools: &[&str]) -> Act {
    let call = |(at, name): (usize, &&str)| ToolCall::new(format!("call_{at}"), *name, "{}");
    let response = ModelResponse::calls(tools.iter().enumerate().map(call));
    Act { wait: Duration::ZERO, pieces: &[], end: Ok(response) }
}

/// Is withheld after these pieces.
pub(crate) fn withheld(pieces: &'static [&'static str]) -> Act {
    let mut act = says(pieces);
    if let Ok(response) = &mut act.end {
        response.stop = StopReason::Refused;
    }
    act
}

impl Act {
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

/// A model that plays its acts one after the other. Clones are one.
#[derive(Clone)]
pub(crate) struct Play {
    name: &'static str,
    acts: Arc<Mutex<VecDeque<Act>>>,
    asked: Arc<Mutex<Vec<(Instant, Asked)>>>,
}

/// What a model was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) messages: usize,
    pub(crate) params_model: Option<String>,
}

impl Play {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::named("play", acts)
    }

    pub(crate) fn named(name: &'static str, acts: impl IntoIterator<Item = Act>) -> Self {
        let acts = acts.into_iter().collect();
        Self { name, acts: Arc::new(Mutex::new(acts)), asked: Arc::default() }
    }

    /// How often it was called.
    pub(crate) fn calls(&self) -> usize {
        self.asked.lock().expect("it works here").len()
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("it works here").iter().map(|(_, asked)| asked.clone()).collect()
    }

    /// The times between its calls.
    pub(crate) fn gaps(&self) -> Vec<Duration> {
        let asked = self.asked.lock().expect("it works here");
        asked.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }
}

#[async_trait]
impl Model for Play {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let asked = Asked {
            messages: request.messages.len(),
            params_model: request.params.model.as_deref().map(str::to_owned),
        };
        self.asked.lock().expect("it works here").push((Instant::now(), asked));
        let act = self
            .acts
            .lock()
            .expect("it works here")
            .pop_front()
            .expect("the play has an act for this call");
        tokio::time::sleep(act.wait).await;
        for piece in act.pieces {
            cx.delta(piece);
            tokio::task::yield_now().await;
        }
        act.end
    }

    fn name(&self) -> &str {
        self.name
    }
}

/// A tool that gives these results one after the other, and then `done`.
#[derive(Clone)]
pub(crate) struct Clerk {
    spec: ToolSpec,
    results: Arc<Mutex<VecDeque<ToolOutput>>>,
    calls: Arc<Mutex<Vec<(Instant, String)>>>,
    wait: Duration,
}

impl Clerk {
    pub(crate) fn new(effect: Effect, results: impl IntoIterator<Item = ToolOutput>) -> Self {
        Self {
            spec: ToolSpec::new("clerk", "Does it").effect(effect),
            results: Arc::new(Mutex::new(results.into_iter().collect())),
            calls: Arc::default(),
            wait: Duration::ZERO,
        }
    }

    pub(crate) fn slow(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.lock().expect("it works here").len()
    }

    pub(crate) fn gaps(&self) -> Vec<Duration> {
        let calls = self.calls.lock().expect("it works here");
        calls.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }
}

#[async_trait]
impl Tool for Clerk {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, cx: ToolCx<'_>, _: &Value) -> Result<ToolOutput, ToolError> {
        self.calls.lock().expect("it works here").push((Instant::now(), cx.call_id().to_owned()));
        tokio::time::sleep(self.wait).await;
        let next = self.results.lock().expect("it works here").pop_front();
        Ok(next.unwrap_or_else(|| ToolOutput::text("done")))
    }
}

pub(crate) fn steps(log: &MemoryStepLog) -> Steps {
    Steps::new(Arc::new(log.clone()))
}
