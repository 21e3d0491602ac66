//! The metrics themselves.

use super::super::seen::lock;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::model::Usage;

/// Names and values of labels. There are few, so that a slice is compared faster than it is hashed.
type Labels = Vec<(&'static str, Arc<str>)>;
type Counts = Family<Labels, Counter>;
type Times = Family<Labels, Histogram, fn() -> Histogram>;

/// What the value of a label is once there are too many of them.
const OTHER: &str = "other";

/// From a millisecond to ten minutes.
fn seconds() -> Histogram {
    Histogram::new([
        0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0,
        600.0,
    ])
}

/// Everything that is counted.
pub(super) struct Numbers {
    registry: Registry,
    names: Names,
    turns: Counts,
    turn_seconds: Times,
    running: Family<Labels, Gauge>,
    models: Counts,
    model_seconds: Times,
    tokens: Counts,
    cost: Family<Labels, Counter<f64, AtomicU64>>,
    unpriced: Counts,
    tools: Counts,
    tool_seconds: Times,
    hook_failures: Counts,
    asks: Gauge,
}

/// The values of labels that were seen, for each of them no more than so many.
struct Names {
    most: usize,
    seen: Mutex<HashSet<(&'static str, Arc<str>)>>,
}

impl Names {
    /// The value, or that it is one of the many others.
    fn bounded(&self, label: &'static str, value: &str) -> Arc<str> {
        let value: Arc<str> = value.into();
        let mut seen = lock(&self.seen);
        let key = (label, value);
        if seen.contains(&key) {
            return key.1;
        }
        if seen.iter().filter(|(of, _)| *of == label).count() >= self.most {
            return OTHER.into();
        }
        seen.insert(key.clone());
        key.1
    }
}

/// What a call came to: how it ended, and how long it took.
#[derive(Clone, Copy)]
pub(super) struct Came {
    pub(super) to: &'static str,
    pub(super) took: Duration,
}

impl Numbers {
    /// None yet. Each label gets at most so many values.
    pub(super) fn new(most: usize) -> Self {
        let mut registry = Registry::with_prefix("tenure");
        let numbers = Self {
            registry: Registry::default(),
            names: Names { most, seen: Mutex::default() },
            turns: Counts::default(),
            turn_seconds: Times::new_with_constructor(seconds),
            running: Family::default(),
            models: Counts::default(),
            model_seconds: Times::new_with_constructor(seconds),
            tokens: Counts::default(),
            cost: Family::default(),
            unpriced: Counts::default(),
            tools: Counts::default(),
            tool_seconds: Times::new_with_constructor(seconds),
            hook_failures: Counts::default(),
            asks: Gauge::default(),
        };
        let it = &numbers;
        registry.register("turns", "Turns that ended", it.turns.clone());
        let help = "How long turns took, in seconds";
        registry.register("turn_duration_seconds", help, it.turn_seconds.clone());
        registry.register("turns_running", "Turns that are under way", it.running.clone());
        registry.register("model_calls", "Model calls, each with its attempts", it.models.clone());
        let help = "How long model calls took, in seconds";
        registry.register("model_call_duration_seconds", help, it.model_seconds.clone());
        let help = "Tokens; cached ones are input too, and reasoning ones output";
        registry.register("tokens", help, it.tokens.clone());
        registry.register("cost_usd", "What model calls cost, in US dollars", it.cost.clone());
        let help = "Model calls whose price is not known";
        registry.register("unpriced_model_calls", help, it.unpriced.clone());
        registry.register("tool_calls", "Tool calls", it.tools.clone());
        let help = "How long tool calls took, in seconds";
        registry.register("tool_call_duration_seconds", help, it.tool_seconds.clone());
        let help = "Hook calls that did not end well";
        registry.register("hook_failures", help, it.hook_failures.clone());
        registry.register("asks_waiting", "Questions that wait for a person", it.asks.clone());
        Self { registry, ..numbers }
    }

    /// The metrics in the text form of Prometheus.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        // A text takes whatever is written.
        let _ = encode(&mut text, &self.registry);
        text
    }

    fn label(&self, label: &'static str, value: &str) -> (&'static str, Arc<str>) {
        (label, self.names.bounded(label, value))
    }

    pub(super) fn turn_began(&self, agent: &str) {
        self.running.get_or_create(&vec![self.label("agent", agent)]).inc();
    }

    pub(super) fn turn_ended(&self, agent: &str, came: Came) {
        let agent = self.label("agent", agent);
        let mut labels = vec![agent];
        self.running.get_or_create(&labels).dec();
        self.turn_seconds.get_or_create(&labels).observe(came.took.as_secs_f64());
        labels.push(("outcome", came.to.into()));
        self.turns.get_or_create(&labels).inc();
    }

    pub(super) fn model(&self, model: &str, came: Came, usage: Option<&Usage>) {
        let model = self.label("model", model);
        let mut labels = vec![model];
        self.model_seconds.get_or_create(&labels).observe(came.took.as_secs_f64());
        if let Some(usage) = usage {
            if usage.cost.nano_usd() > 0 {
                self.cost.get_or_create(&labels).inc_by(usage.cost.usd());
            }
            if usage.unpriced > 0 {
                self.unpriced.get_or_create(&labels).inc_by(usage.unpriced);
            }
            let kinds = [
                ("input", usage.input),
                ("output", usage.output),
                ("cached", usage.cached),
                ("reasoning", usage.reasoning),
            ];
            for (kind, tokens) in kinds.into_iter().filter(|(_, tokens)| *tokens > 0) {
                labels.push(("kind", kind.into()));
                self.tokens.get_or_create(&labels).inc_by(tokens);
                labels.pop();
            }
        }
        labels.push(("outcome", came.to.into()));
        self.models.get_or_create(&labels).inc();
    }

    pub(super) fn tool(&self, tool: &str, came: Came) {
        let mut labels = vec![self.label("tool", tool)];
        self.tool_seconds.get_or_create(&labels).observe(came.took.as_secs_f64());
        labels.push(("status", came.to.into()));
        self.tools.get_or_create(&labels).inc();
    }

    pub(super) fn hook_failed(&self, hook: &str, point: &'static str, outcome: &'static str) {
        let hook = self.label("hook", hook);
        let labels = vec![hook, ("point", point.into()), ("outcome", outcome.into())];
        self.hook_failures.get_or_create(&labels).inc();
    }

    pub(super) fn asks_waiting(&self, asks: usize) {
        self.asks.set(i64::try_from(asks).unwrap_or(i64::MAX));
    }
}
