//! What is aimed at, and what may be changed for it.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;

/// What an agent is to achieve, over its last turns. What is left out is no goal.
///
/// ```
/// use std::time::Duration;
/// use tenure_hooks::adapt::Goals;
///
/// let goals = Goals::new().latency_p95(Duration::from_secs(2)).error_rate(0.05).cost_per_turn(0.02);
/// # let _ = goals;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Goals {
    pub(super) latency_p50: Option<Duration>,
    pub(super) latency_p95: Option<Duration>,
    pub(super) error_rate: Option<f64>,
    pub(super) cost_per_turn: Option<f64>,
}

impl Goals {
    /// No goal yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Half of them take at most this long.
    pub fn latency_p50(mut self, most: Duration) -> Self {
        self.latency_p50 = Some(most);
        self
    }

    /// 95 of 100 take at most this long.
    pub fn latency_p95(mut self, most: Duration) -> Self {
        self.latency_p95 = Some(most);
        self
    }

    /// At most this share of the model calls fails, from 0 to 1.
    pub fn error_rate(mut self, most: f64) -> Self {
        self.error_rate = Some(most);
        self
    }

    /// A turn costs at most so many dollars on average. Calls without a known price cost nothing
    /// here.
    pub fn cost_per_turn(mut self, most: f64) -> Self {
        self.cost_per_turn = Some(most);
        self
    }

    /// What is to be achieved of this, in its unit: seconds, a share, dollars.
    pub(super) fn target(&self, goal: Goal) -> Option<f64> {
        match goal {
            Goal::LatencyP50 => self.latency_p50.map(|it| it.as_secs_f64()),
            Goal::LatencyP95 => self.latency_p95.map(|it| it.as_secs_f64()),
            Goal::ErrorRate => self.error_rate,
            Goal::CostPerTurn => self.cost_per_turn,
        }
    }
}

/// One thing that is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Goal {
    /// [`Goals::error_rate`], a share.
    ErrorRate,
    /// [`Goals::latency_p95`], in seconds.
    LatencyP95,
    /// [`Goals::latency_p50`], in seconds.
    LatencyP50,
    /// [`Goals::cost_per_turn`], in dollars.
    CostPerTurn,
}

impl Goal {
    /// All of them, the most pressing first: an answer that fails is worse than one that is late,
    /// and that is worse than one that is dear.
    pub(super) const ALL: [Self; 4] =
        [Self::ErrorRate, Self::LatencyP95, Self::LatencyP50, Self::CostPerTurn];

    /// Its name, as options and events spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ErrorRate => "error_rate",
            Self::LatencyP95 => "latency_p95",
            Self::LatencyP50 => "latency_p50",
            Self::CostPerTurn => "cost_per_turn",
        }
    }
}

/// Whose latency counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Latency {
    /// That of model calls, with what repeats them and with waiting for a place.
    #[default]
    Calls,
    /// That of whole turns, with their tools and the people that they wait for.
    Turns,
}

/// What may be changed, and how far. What is left out stays as it is.
///
/// ```
/// use tenure_hooks::adapt::Bounds;
///
/// let bounds = Bounds::new().models(["opus", "sonnet", "haiku"]).concurrency(1..=8).retries(0..=3);
/// # let _ = bounds;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Bounds {
    pub(super) models: Vec<String>,
    pub(super) concurrency: Option<(usize, usize)>,
    pub(super) retries: (usize, usize),
}

impl Bounds {
    /// Nothing may be changed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The models, from the first choice to the fastest and cheapest.
    pub fn models(mut self, models: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.models = models.into_iter().map(Into::into).collect();
        self
    }

    /// How many model calls there may be at the same time: at least 1. The most is the first choice.
    pub fn concurrency(mut self, range: RangeInclusive<usize>) -> Self {
        let least = (*range.start()).max(1);
        self.concurrency = Some((least, least.max(*range.end())));
        self
    }

    /// How often a model call that failed is made again. The least is the first choice.
    pub fn retries(mut self, range: RangeInclusive<usize>) -> Self {
        self.retries = (*range.start(), (*range.start()).max(*range.end()));
        self
    }

    /// Whether a setting keeps within them.
    pub fn allow(&self, setting: &Setting) -> bool {
        let model = match &setting.model {
            Some(model) => self.models.contains(model),
            None => self.models.is_empty(),
        };
        let concurrency = match (setting.concurrency, self.concurrency) {
            (Some(places), Some((least, most))) => (least..=most).contains(&places),
            (None, None) => true,
            _ => false,
        };
        model && concurrency && (self.retries.0..=self.retries.1).contains(&setting.retries)
    }

    /// The first choice of everything.
    pub(super) fn first(&self) -> Setting {
        Setting {
            model: self.models.first().cloned(),
            concurrency: self.concurrency.map(|(_, most)| most),
            retries: self.retries.0,
            revision: 0,
        }
    }

    /// The setting that is nearest to one that was found somewhere.
    pub(super) fn nearest(&self, setting: &Setting) -> Setting {
        let kept = setting.model.clone().filter(|model| self.models.contains(model));
        Setting {
            model: kept.or_else(|| self.models.first().cloned()),
            concurrency: self.concurrency.map(|(least, most)| {
                setting.concurrency.map_or(most, |places| places.clamp(least, most))
            }),
            retries: setting.retries.clamp(self.retries.0, self.retries.1),
            revision: setting.revision,
        }
    }

    /// The place of a setting's model in the list.
    pub(super) fn place(&self, setting: &Setting) -> usize {
        let is_it = |model: &String| setting.model.as_ref() == Some(model);
        self.models.iter().position(is_it).unwrap_or_default()
    }
}

/// How an agent works: what instances are made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Setting {
    /// The model; `None` if it is not for adaptation to choose.
    pub model: Option<String>,
    /// The most model calls at the same time; `None` if that is not bounded.
    pub concurrency: Option<usize>,
    /// How often a model call that failed is made again.
    pub retries: usize,
    /// Which setting it is: each change makes a new one.
    pub revision: u64,
}

/// All that decisions depend on, beside what was observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub(super) goals: Goals,
    pub(super) bounds: Bounds,
    pub(super) latency: Latency,
    pub(super) window: usize,
    pub(super) min_samples: usize,
    pub(super) cooldown: usize,
    pub(super) recover_after: usize,
}

impl Policy {
    pub(super) fn new(goals: Goals) -> Self {
        Self {
            goals,
            bounds: Bounds::default(),
            latency: Latency::default(),
            window: 20,
            min_samples: 5,
            cooldown: 5,
            recover_after: 20,
        }
    }
}
