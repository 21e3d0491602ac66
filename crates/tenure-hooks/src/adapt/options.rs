//! What `adapt` takes by `with`.

use super::adaptation::Adaptation;
use super::policy::{Bounds, Goals, Latency};
use crate::ready::{About, Makings, ModelName, Options, Refusal, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use tenure_core::hook::Registration;

/// The most calls that may be repeated, or be made at the same time.
const MOST: (usize, usize) = (10, 10_000);

/// What `adapt` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AdaptOptions {
    /// What is aimed at, over the last turns.
    goals: GoalsOption,
    /// Whose latency counts: that of model `calls`, or of whole `turns`.
    latency_of: LatencyOption,
    /// The models to choose from, from the first choice to the fastest and cheapest. Without them
    /// the agent keeps its own.
    models: Vec<ModelName>,
    /// How many model calls there may be at the same time. Without it, any number.
    concurrency: Option<RangeOption>,
    /// How often a model call that failed is made again. Without it, never.
    retries: Option<RangeOption>,
    /// How many turns are looked at.
    window: usize,
    /// How many turns with a setting it takes to judge it.
    min_samples: usize,
    /// How many turns have to pass between two changes.
    cooldown: usize,
    /// For how many turns all goals have to be met before a step back towards the first choice.
    recover_after: usize,
    /// Changes nothing, and only observes.
    frozen: bool,
}

impl Default for AdaptOptions {
    fn default() -> Self {
        Self {
            goals: GoalsOption::default(),
            latency_of: LatencyOption::default(),
            models: Vec::new(),
            concurrency: None,
            retries: None,
            window: 20,
            min_samples: 5,
            cooldown: 5,
            recover_after: 20,
            frozen: false,
        }
    }
}

/// What is aimed at.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
struct GoalsOption {
    /// Half of them take at most this long.
    latency_p50: Option<Time>,
    /// 95 of 100 take at most this long.
    latency_p95: Option<Time>,
    /// At most this share of the model calls fails, from 0 to 1.
    error_rate: Option<f64>,
    /// A turn costs at most so many dollars on average.
    cost_per_turn: Option<f64>,
}

/// Between which bounds something may be.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct RangeOption {
    /// The least.
    min: usize,
    /// The most.
    max: usize,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum LatencyOption {
    #[default]
    Calls,
    Turns,
}

impl GoalsOption {
    fn checked(self) -> Result<Goals, Refusal> {
        let Self { latency_p50, latency_p95, error_rate, cost_per_turn } = self;
        let mut goals = Goals::new();
        goals.latency_p50 = latency_p50.map(|time| time.0);
        goals.latency_p95 = latency_p95.map(|time| time.0);
        goals.error_rate = error_rate;
        goals.cost_per_turn = cost_per_turn;
        if goals == Goals::new() {
            let message = "give a goal: `latency_p95`, `latency_p50`, `error_rate` or \
                           `cost_per_turn`";
            return Err(Refusal::new("goals", message));
        }
        if let Some(rate) = error_rate.filter(|rate| !(0.0..1.0).contains(rate)) {
            let message = format!("{rate} is no share that can be missed; it is from 0 to 1");
            return Err(Refusal::new("goals.error_rate", message));
        }
        if let Some(cost) = cost_per_turn.filter(|cost| !(*cost > 0.0 && cost.is_finite())) {
            let message = format!("{cost} is nothing that a turn can cost; it is more than 0");
            return Err(Refusal::new("goals.cost_per_turn", message));
        }
        Ok(goals)
    }
}

impl RangeOption {
    fn checked(
        self,
        field: &str,
        least: usize,
        most: usize,
    ) -> Result<RangeInclusive<usize>, Refusal> {
        let Self { min, max } = self;
        if min < least || max > most || min > max {
            let message = format!(
                "{min} to {max} is no range between {least} and {most}; give a `min` and a `max` \
                 that is not less"
            );
            return Err(Refusal::new(field, message));
        }
        Ok(min..=max)
    }
}

impl Options for AdaptOptions {
    const ABOUT: About = About {
        name: "adapt",
        summary: "Changes model, attempts and concurrency of new instances when goals are missed, \
                  within bounds.",
        covers: &["UC-6.3"],
        peers: &[],
        example: r#"{
            "goals": { "latency_p95": "2s", "error_rate": 0.05 },
            "retries": { "min": 0, "max": 2 }
        }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let goals = self.goals.checked()?;
        let mut models = BTreeMap::new();
        let names: Vec<_> = self.models.iter().map(|name| name.0.clone()).collect();
        for (at, name) in names.iter().enumerate() {
            let field = format!("models[{at}]");
            let model = makings.model(name).map_err(|why| Refusal::new(field.as_str(), why))?;
            if models.insert(name.clone(), model).is_some() {
                return Err(Refusal::new(field, format!("`{name}` stands there twice")));
            }
        }
        if let (Some(first), Some(own)) = (names.first(), makings.own_model())
            && first != own
        {
            let message = format!(
                "the first choice is `{first}`, so the agent's own model, `{own}`, is not used; put \
                 it first, or give the agent `{first}`"
            );
            makings.warn("models[0]", message);
        }
        let mut bounds = Bounds::new().models(names);
        if let Some(range) = self.concurrency {
            bounds = bounds.concurrency(range.checked("concurrency", 1, MOST.1)?);
        }
        if let Some(range) = self.retries {
            bounds = bounds.retries(range.checked("retries", 0, MOST.0)?);
        }
        if bounds == Bounds::new() {
            let message = "say what may be changed: `models`, `concurrency` or `retries`";
            return Err(Refusal::new("", message));
        }
        for (field, turns) in [
            ("window", self.window),
            ("min_samples", self.min_samples),
            ("recover_after", self.recover_after),
        ] {
            if !(1..=1_000).contains(&turns) {
                let message = format!("{turns} turns are not from 1 to 1000");
                return Err(Refusal::new(field, message));
            }
        }
        if self.min_samples > self.window {
            let message = format!(
                "{} turns are more than the window has, which is {}",
                self.min_samples, self.window
            );
            return Err(Refusal::new("min_samples", message));
        }
        let adaptation = Adaptation::new(goals)
            .bounds(bounds)
            .latency_of(match self.latency_of {
                LatencyOption::Calls => Latency::Calls,
                LatencyOption::Turns => Latency::Turns,
            })
            .window(self.window)
            .min_samples(self.min_samples)
            .cooldown(self.cooldown)
            .recover_after(self.recover_after);
        if self.frozen {
            adaptation.freeze();
        }
        Ok(adaptation.applying(models))
    }
}
