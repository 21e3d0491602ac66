//! The metrics, by the conventions and our own.

use super::names::{
    AGENT_NAME, APPROVAL_DECISION, ERROR_TYPE, HOOK_EVENT, HOOK_ID, HOOK_OUTCOME, OPERATION,
    PROVIDER, REQUEST_MODEL, STATE, TOKEN_TYPE, TOOL_NAME, WORKFLOW,
};
use opentelemetry::metrics::{Histogram, MeterProvider, UpDownCounter};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::model::Usage;
use tenure_core::phase::AgentState;

/// The conventions' buckets for seconds.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The conventions' buckets for tokens.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// A hook takes less time than a model.
const HOOK_SECONDS: [f64; 12] =
    [0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];
/// A person takes more.
const WAIT_SECONDS: [f64; 10] =
    [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 604_800.0];

pub(super) struct Meters {
    provider: SdkMeterProvider,
    tokens: Histogram<u64>,
    operation: Histogram<f64>,
    first_chunk: Histogram<f64>,
    agent: Histogram<f64>,
    agent_models: Histogram<u64>,
    agent_tools: Histogram<u64>,
    tool: Histogram<f64>,
    workflow: Histogram<f64>,
    hook: Histogram<f64>,
    approval: Histogram<f64>,
    states: UpDownCounter<i64>,
}

impl Meters {
    pub(super) fn new(provider: SdkMeterProvider, scope: &InstrumentationScope) -> Self {
        let meter = provider.meter_with_scope(scope.clone());
        let seconds = |name: &'static str, buckets: &[f64]| {
            meter.f64_histogram(name).with_unit("s").with_boundaries(buckets.to_vec()).build()
        };
        let calls = |name: &'static str| {
            let buckets = vec![0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0, 89.0];
            meter.u64_histogram(name).with_unit("{call}").with_boundaries(buckets).build()
        };
        Self {
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_boundaries(TOKENS.to_vec())
                .build(),
            operation: seconds("gen_ai.client.operation.duration", &SECONDS),
            first_chunk: seconds("gen_ai.client.operation.time_to_first_chunk", &SECONDS),
            agent: seconds("gen_ai.invoke_agent.duration", &SECONDS),
            agent_models: calls("gen_ai.invoke_agent.inference_calls"),
            agent_tools: calls("gen_ai.invoke_agent.tool_calls"),
            tool: seconds("gen_ai.execute_tool.duration", &SECONDS),
            workflow: seconds("gen_ai.workflow.duration", &SECONDS),
            hook: seconds("tenure.hook.duration", &HOOK_SECONDS),
            approval: seconds("tenure.approval.wait", &WAIT_SECONDS),
            states: meter.i64_up_down_counter("tenure.agent.state").with_unit("{agent}").build(),
            provider,
        }
    }

    pub(super) fn model(
        &self,
        provider: &Arc<str>,
        model: &Arc<str>,
        took: Duration,
        error: Option<&'static str>,
    ) {
        let kind = KeyValue::new(OPERATION, "chat");
        let provider = KeyValue::new(PROVIDER, provider.clone());
        let model = KeyValue::new(REQUEST_MODEL, model.clone());
        match error {
            None => self.operation.record(took.as_secs_f64(), &[kind, provider, model]),
            Some(error) => {
                let error = KeyValue::new(ERROR_TYPE, error);
                self.operation.record(took.as_secs_f64(), &[kind, provider, model, error]);
            }
        }
    }

    pub(super) fn answered(
        &self,
        provider: &Arc<str>,
        model: &Arc<str>,
        usage: &Usage,
        first: Option<Duration>,
    ) {
        let mut attributes = [
            KeyValue::new(OPERATION, "chat"),
            KeyValue::new(PROVIDER, provider.clone()),
            KeyValue::new(REQUEST_MODEL, model.clone()),
            KeyValue::new(TOKEN_TYPE, "input"),
        ];
        // A model that says nothing of its tokens has used an unknown number, and not none.
        if usage.total() > 0 {
            self.tokens.record(usage.input, &attributes);
            attributes[3] = KeyValue::new(TOKEN_TYPE, "output");
            self.tokens.record(usage.output, &attributes);
        }
        if let Some(first) = first {
            self.first_chunk.record(first.as_secs_f64(), &attributes[..3]);
        }
    }

    pub(super) fn turn(
        &self,
        agent: &Arc<str>,
        took: Duration,
        error: Option<&'static str>,
        calls: (u64, u64),
    ) {
        let mut attributes = vec![KeyValue::new(AGENT_NAME, agent.clone())];
        self.agent_models.record(calls.0, &attributes);
        self.agent_tools.record(calls.1, &attributes);
        attributes.extend(error.map(|error| KeyValue::new(ERROR_TYPE, error)));
        self.agent.record(took.as_secs_f64(), &attributes);
    }

    pub(super) fn tool(&self, tool: &Arc<str>, took: Duration, error: Option<&'static str>) {
        let mut attributes = vec![KeyValue::new(TOOL_NAME, tool.clone())];
        attributes.extend(error.map(|error| KeyValue::new(ERROR_TYPE, error)));
        self.tool.record(took.as_secs_f64(), &attributes);
    }

    pub(super) fn workflow(&self, name: &str, took: Duration, error: Option<&'static str>) {
        let mut attributes = vec![KeyValue::new(WORKFLOW, name.to_owned())];
        attributes.extend(error.map(|error| KeyValue::new(ERROR_TYPE, error)));
        self.workflow.record(took.as_secs_f64(), &attributes);
    }

    pub(super) fn hook(
        &self,
        hook: &Arc<str>,
        point: &'static str,
        outcome: &'static str,
        took: Duration,
    ) {
        let attributes = [
            KeyValue::new(HOOK_ID, hook.clone()),
            KeyValue::new(HOOK_EVENT, point),
            KeyValue::new(HOOK_OUTCOME, outcome),
        ];
        self.hook.record(took.as_secs_f64(), &attributes);
    }

    pub(super) fn approval(&self, decision: &'static str, took: Duration) {
        let attributes = [KeyValue::new(APPROVAL_DECISION, decision)];
        self.approval.record(took.as_secs_f64(), &attributes);
    }

    /// An agent left one state, and entered another.
    pub(super) fn state(&self, from: Option<AgentState>, to: Option<AgentState>) {
        let count = |state: Option<AgentState>, by| {
            if let Some(state) = state {
                self.states.add(by, &[KeyValue::new(STATE, state.as_str())]);
            }
        };
        count(from, -1);
        count(to, 1);
    }

    /// Sends what is left, and stops. It blocks.
    pub(super) fn close(&self) {
        // A receiver that is not there is nobody's failure.
        let _ = self.provider.shutdown();
    }
}
