//! What observations come to.

use super::Observation;
use crate::adapt::policy::{Goal, Latency};
use std::collections::VecDeque;
use std::sync::Arc;

/// The last turns with a setting.
pub(in crate::adapt) type Window = VecDeque<Arc<Observation>>;

/// What turns come to that needs no order of them. It is found at every turn, so in one pass.
pub(super) struct Sums {
    /// How long the longest call or turn took, in microseconds; none, if there was none.
    longest: Option<u64>,
    calls: usize,
    failed: usize,
    cost: u64,
    turns: usize,
}

impl Sums {
    pub(super) fn of(window: &Window, latency: Latency) -> Self {
        let mut sums = Self { longest: None, calls: 0, failed: 0, cost: 0, turns: window.len() };
        for turn in window {
            let longest = match latency {
                Latency::Calls => turn.calls_us.iter().copied().max(),
                Latency::Turns => Some(turn.turn_us),
            };
            sums.longest = sums.longest.max(longest);
            sums.calls += turn.calls_us.len();
            sums.failed += turn.failed;
            sums.cost = sums.cost.saturating_add(turn.cost_nano_usd);
        }
        sums
    }

    /// What no measure of the goal is more than, in its unit: a goal that this meets is met. None,
    /// if the turns show nothing of it.
    pub(super) fn most(&self, goal: Goal) -> Option<f64> {
        let most = match goal {
            Goal::LatencyP50 | Goal::LatencyP95 => self.longest? as f64 / 1e6,
            Goal::ErrorRate if self.calls == 0 => return None,
            Goal::ErrorRate => self.failed as f64 / self.calls as f64,
            Goal::CostPerTurn if self.turns == 0 => return None,
            Goal::CostPerTurn => self.cost as f64 / self.turns as f64 / 1e9,
        };
        Some(short(most))
    }
}

/// What these turns show of a goal, in its unit; nothing, if they show nothing of it.
pub(in crate::adapt) fn measure(goal: Goal, latency: Latency, window: &Window) -> Option<f64> {
    let quantile = |share| {
        let measured = quantile(latencies(latency, window), share)?;
        Some(short(measured as f64 / 1e6))
    };
    match goal {
        Goal::LatencyP50 => quantile(0.5),
        Goal::LatencyP95 => quantile(0.95),
        Goal::ErrorRate | Goal::CostPerTurn => Sums::of(window, latency).most(goal),
    }
}

/// Short enough to be written down and read again as it is.
fn short(measured: f64) -> f64 {
    (measured * 1e9).round() / 1e9
}

fn latencies(latency: Latency, window: &Window) -> Vec<u64> {
    // Most turns have a call.
    let mut all = Vec::with_capacity(window.len());
    for turn in window {
        match latency {
            Latency::Calls => all.extend_from_slice(&turn.calls_us),
            Latency::Turns => all.push(turn.turn_us),
        }
    }
    all
}

/// The smallest value that so large a share of all does not exceed.
fn quantile(mut values: Vec<u64>, share: f64) -> Option<u64> {
    let rank = (values.len() as f64 * share).ceil() as usize;
    let at = rank.saturating_sub(1);
    // The others need no order.
    (at < values.len()).then(|| *values.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let to = |count| (1..=count).collect::<Vec<u64>>();
        assert_eq!(quantile(to(100), 0.95), Some(95));
        assert_eq!(quantile(to(20), 0.95), Some(19));
        assert_eq!(quantile(to(5), 0.95), Some(5));
        assert_eq!(quantile(to(4), 0.5), Some(2));
        assert_eq!(quantile(Vec::new(), 0.5), None);
        assert_eq!(quantile(to(100).into_iter().rev().collect(), 0.95), Some(95), "in any order");
    }

    fn window<const N: usize>(turns: [Observation; N]) -> Window {
        turns.into_iter().map(Arc::new).collect()
    }

    #[test]
    fn no_measure_is_more_than_the_most() {
        let turns = window([3, 900_000, 1, 40].map(|us| Observation {
            turn_us: us + 7,
            calls_us: vec![us, 2],
            failed: usize::from(us == 1),
            cost_nano_usd: us,
            ..Observation::default()
        }));
        for (latency, longest) in [(Latency::Calls, 0.9), (Latency::Turns, 0.900_007)] {
            let sums = Sums::of(&turns, latency);
            assert_eq!(sums.most(Goal::LatencyP95), Some(longest));
            assert_eq!(sums.most(Goal::ErrorRate), Some(0.125));
            assert_eq!(sums.most(Goal::CostPerTurn), Some(0.000_225_011));
            for goal in Goal::ALL {
                assert!(measure(goal, latency, &turns) <= sums.most(goal), "{goal:?}");
            }
        }
        let none = Sums::of(&window([]), Latency::Calls);
        assert!(Goal::ALL.into_iter().all(|goal| none.most(goal).is_none()));
    }

    #[test]
    fn calls_that_were_not_made_show_nothing() {
        let quiet = window([Observation { turn_us: 5_000_000, ..Observation::default() }]);
        assert_eq!(measure(Goal::ErrorRate, Latency::Calls, &quiet), None);
        assert_eq!(measure(Goal::LatencyP95, Latency::Calls, &quiet), None);
        assert_eq!(measure(Goal::LatencyP95, Latency::Turns, &quiet), Some(5.0));
        assert_eq!(measure(Goal::CostPerTurn, Latency::Calls, &window([])), None);
    }
}
