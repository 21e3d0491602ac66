//! The metrics themselves.
//!
//! What belongs to a name is looked up once for a call, and counted without another look: a series
//! that was counted into before is at hand.

use super::super::lifecycle::{LifecycleCall, TRIGGERS};
use super::super::seen::lock;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tenure_core::model::Usage;

/// Names and values of labels. There are few, so that a slice is compared faster than it is hashed.
type Labels = Vec<(&'static str, Arc<str>)>;
type Counts = Family<Labels, Counter>;
type Times = Family<Labels, Histogram, fn() -> Histogram>;
type Cost = Counter<f64, AtomicU64>;

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
    agents: Names<OfAgent>,
    models_of: Names<OfModel>,
    tools_of: Names<OfTool>,
    lifecycle_tools_of: Names<OfLifecycleTool>,
    hooks: Names<Arc<str>>,
    turns: Counts,
    turn_seconds: Times,
    running: Family<Labels, Gauge>,
    models: Counts,
    model_seconds: Times,
    retries: Counts,
    tokens: Counts,
    cost: Family<Labels, Cost>,
    unpriced: Counts,
    tools: Counts,
    tool_seconds: Times,
    lifecycle_tools: Counts,
    lifecycle_tool_seconds: Times,
    hook_failures: Counts,
    asks: Gauge,
}

/// The values of a label that were seen, no more than so many, with what is counted of each.
struct Names<T> {
    most: usize,
    seen: RwLock<HashMap<Arc<str>, Arc<T>>>,
    other: OnceLock<Arc<T>>,
}

impl<T> Names<T> {
    fn new(most: usize) -> Self {
        Self { most, seen: RwLock::default(), other: OnceLock::new() }
    }

    /// What is counted of this value, or of all the many others.
    fn of(&self, value: &str, make: impl FnOnce(Arc<str>) -> T) -> Arc<T> {
        let known = self.seen.read().unwrap_or_else(PoisonError::into_inner).get(value).cloned();
        known.unwrap_or_else(|| self.add(value, make))
    }

    #[cold]
    fn add(&self, value: &str, make: impl FnOnce(Arc<str>) -> T) -> Arc<T> {
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = seen.get(value) {
            return known.clone();
        }
        if seen.len() >= self.most {
            drop(seen);
            return self.other.get_or_init(|| Arc::new(make(OTHER.into()))).clone();
        }
        let name: Arc<str> = value.into();
        let made = Arc::new(make(name.clone()));
        seen.insert(name, made.clone());
        made
    }
}

/// A series that is there from its first count on.
struct Late<C>(OnceLock<C>);

impl<C> Default for Late<C> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<C: Clone> Late<C> {
    fn get<M>(&self, family: &Family<Labels, C, M>, labels: impl FnOnce() -> Labels) -> &C
    where
        M: MetricConstructor<C>,
    {
        self.0.get_or_init(|| family.get_or_create_owned(&labels()))
    }
}

/// Series by how something ended: a few words that do not grow in number.
#[derive(Default)]
struct ByEnd(Mutex<Vec<(&'static str, Counter)>>);

impl ByEnd {
    fn inc(&self, to: &'static str, family: &Counts, labels: impl FnOnce() -> Labels) {
        let mut known = lock(&self.0);
        if let Some((_, count)) = known.iter().find(|(end, _)| *end == to) {
            count.inc();
            return;
        }
        let count = family.get_or_create_owned(&labels());
        count.inc();
        known.push((to, count));
    }
}

/// What is counted of an agent.
pub(super) struct OfAgent {
    name: Arc<str>,
    running: Gauge,
    seconds: Late<Histogram>,
    ends: ByEnd,
}

/// The series of a lifecycle tool, by its trigger.
struct OfLifecycleTool {
    name: Arc<str>,
    triggers: [OfTrigger; TRIGGERS.len()],
}

#[derive(Default)]
struct OfTrigger {
    seconds: Late<Histogram>,
    ends: ByEnd,
}

impl OfLifecycleTool {
    fn new(name: Arc<str>) -> Self {
        Self { name, triggers: Default::default() }
    }
}

/// What is counted of a model.
struct OfModel {
    name: Arc<str>,
    seconds: Late<Histogram>,
    ends: ByEnd,
    retries: ByEnd,
    tokens: [Late<Counter>; 4],
    cost: Late<Cost>,
    unpriced: Late<Counter>,
}

impl OfModel {
    fn new(name: Arc<str>) -> Self {
        Self {
            name,
            seconds: Late::default(),
            ends: ByEnd::default(),
            retries: ByEnd::default(),
            tokens: Default::default(),
            cost: Late::default(),
            unpriced: Late::default(),
        }
    }
}

/// What is counted of a tool.
struct OfTool {
    name: Arc<str>,
    seconds: Histogram,
    ends: ByEnd,
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
            agents: Names::new(most),
            models_of: Names::new(most),
            tools_of: Names::new(most),
            lifecycle_tools_of: Names::new(most),
            hooks: Names::new(most),
            turns: Counts::default(),
            turn_seconds: Times::new_with_constructor(seconds),
            running: Family::default(),
            models: Counts::default(),
            model_seconds: Times::new_with_constructor(seconds),
            retries: Counts::default(),
            tokens: Counts::default(),
            cost: Family::default(),
            unpriced: Counts::default(),
            tools: Counts::default(),
            tool_seconds: Times::new_with_constructor(seconds),
            lifecycle_tools: Counts::default(),
            lifecycle_tool_seconds: Times::new_with_constructor(seconds),
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
        let help = "Attempts of model calls that failed, and were made again or by another model";
        registry.register("model_retries", help, it.retries.clone());
        let help = "Tokens; cached ones are input too, and reasoning ones output";
        registry.register("tokens", help, it.tokens.clone());
        registry.register("cost_usd", "What model calls cost, in US dollars", it.cost.clone());
        let help = "Model calls whose price is not known";
        registry.register("unpriced_model_calls", help, it.unpriced.clone());
        registry.register("tool_calls", "Tool calls", it.tools.clone());
        let help = "How long tool calls took, in seconds";
        registry.register("tool_call_duration_seconds", help, it.tool_seconds.clone());
        let help = "Calls of a workflow's lifecycle tools";
        registry.register("lifecycle_tool_calls", help, it.lifecycle_tools.clone());
        let help = "How long the functions of lifecycle tools took, in seconds";
        let times = it.lifecycle_tool_seconds.clone();
        registry.register("lifecycle_tool_call_duration_seconds", help, times);
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

    /// A turn of this agent begins. What is counted of it goes on to its end.
    pub(super) fn turn_began(&self, agent: &str) -> Arc<OfAgent> {
        let of = self.agents.of(agent, |name| OfAgent {
            running: self.running.get_or_create_owned(&vec![("agent", name.clone())]),
            seconds: Late::default(),
            ends: ByEnd::default(),
            name,
        });
        of.running.inc();
        of
    }

    pub(super) fn turn_ended(&self, of: &OfAgent, came: Came) {
        let agent = || ("agent", of.name.clone());
        of.running.dec();
        of.seconds.get(&self.turn_seconds, || vec![agent()]).observe(came.took.as_secs_f64());
        of.ends.inc(came.to, &self.turns, || vec![agent(), ("outcome", came.to.into())]);
    }

    pub(super) fn model(&self, model: &str, came: Came, usage: Option<&Usage>) {
        let of = self.models_of.of(model, OfModel::new);
        let model = || ("model", of.name.clone());
        of.seconds.get(&self.model_seconds, || vec![model()]).observe(came.took.as_secs_f64());
        if let Some(usage) = usage {
            if usage.cost.nano_usd() > 0 {
                of.cost.get(&self.cost, || vec![model()]).inc_by(usage.cost.usd());
            }
            if usage.unpriced > 0 {
                of.unpriced.get(&self.unpriced, || vec![model()]).inc_by(usage.unpriced);
            }
            let kinds = [
                ("input", usage.input),
                ("output", usage.output),
                ("cached", usage.cached),
                ("reasoning", usage.reasoning),
            ];
            for ((kind, tokens), count) in kinds.into_iter().zip(&of.tokens) {
                if tokens > 0 {
                    let labels = || vec![model(), ("kind", kind.into())];
                    count.get(&self.tokens, labels).inc_by(tokens);
                }
            }
        }
        of.ends.inc(came.to, &self.models, || vec![model(), ("outcome", came.to.into())]);
    }

    /// An attempt of a call of this model failed, and another one is made.
    pub(super) fn retried(&self, model: &str, kind: &'static str) {
        let of = self.models_of.of(model, OfModel::new);
        let labels = || vec![("model", of.name.clone()), ("kind", kind.into())];
        of.retries.inc(kind, &self.retries, labels);
    }

    pub(super) fn tool(&self, tool: &str, came: Came) {
        let of = self.tools_of.of(tool, |name| OfTool {
            seconds: self.tool_seconds.get_or_create_owned(&vec![("tool", name.clone())]),
            ends: ByEnd::default(),
            name,
        });
        of.seconds.observe(came.took.as_secs_f64());
        let labels = || vec![("tool", of.name.clone()), ("status", came.to.into())];
        of.ends.inc(came.to, &self.tools, labels);
    }

    pub(super) fn lifecycle_tool(&self, call: &LifecycleCall<'_>) {
        let of = self.lifecycle_tools_of.of(&call.tool, OfLifecycleTool::new);
        let at = &of.triggers[call.trigger];
        let labels = || vec![("trigger", TRIGGERS[call.trigger].into()), ("tool", of.name.clone())];
        let seconds = call.took.as_secs_f64();
        at.seconds.get(&self.lifecycle_tool_seconds, labels).observe(seconds);
        at.ends.inc(call.status, &self.lifecycle_tools, || {
            let mut labels = labels();
            labels.push(("status", call.status.into()));
            labels
        });
    }

    pub(super) fn hook_failed(&self, hook: &str, point: &'static str, outcome: &'static str) {
        let hook = (*self.hooks.of(hook, |name| name)).clone();
        let labels = vec![("hook", hook), ("point", point.into()), ("outcome", outcome.into())];
        self.hook_failures.get_or_create(&labels).inc();
    }

    pub(super) fn asks_waiting(&self, asks: usize) {
        self.asks.set(i64::try_from(asks).unwrap_or(i64::MAX));
    }
}
