//! What observations come to.

use super::Observation;
use crate::adapt::policy::{Goal, Latency};

/// What these turns show of a goal, in its unit; nothing, if they show nothing of it.
pub(in crate::adapt) fn measure<'a>(
    goal: Goal,
    latency: Latency,
    turns: impl Iterator<Item = &'a Observation>,
) -> Option<f64> {
    let measured = match goal {
        Goal::LatencyP50 => quantile(latencies(latency, turns), 0.5)? as f64 / 1e6,
        Goal::LatencyP95 => quantile(latencies(latency, turns), 0.95)? as f64 / 1e6,
        Goal::ErrorRate => {
            let (failed, calls) = turns.fold((0, 0), |(failed, calls), turn| {
                (failed + turn.failed, calls + turn.calls_us.len())
            });
            (calls > 0).then(|| failed as f64 / calls as f64)?
        }
        Goal::CostPerTurn => {
            let (cost, count) = turns.fold((0u64, 0u64), |(cost, count), turn| {
                (cost.saturating_add(turn.cost_nano_usd), count + 1)
            });
            (count > 0).then(|| cost as f64 / count as f64 / 1e9)?
        }
    };
    Some(short(measured))
}

/// What no turn shows more of, where that is quicker to say than what they show: a goal that it
/// meets is met.
pub(in crate::adapt) fn most<'a>(
    goal: Goal,
    latency: Latency,
    turns: impl Iterator<Item = &'a Observation>,
) -> Option<f64> {
    let longest = match (goal, latency) {
        (Goal::ErrorRate | Goal::CostPerTurn, _) => return None,
        (_, Latency::Calls) => turns.flat_map(|turn| &turn.calls_us).copied().max(),
        (_, Latency::Turns) => turns.map(|turn| turn.turn_us).max(),
    };
    longest.map(|longest| short(longest as f64 / 1e6))
}

/// Short enough to be written down and read again as it is.
fn short(measured: f64) -> f64 {
    (measured * 1e9).round() / 1e9
}

fn latencies<'a>(latency: Latency, turns: impl Iterator<Item = &'a Observation>) -> Vec<u64> {
    // Most turns have a call.
    let mut all = Vec::with_capacity(turns.size_hint().0);
    match latency {
        Latency::Calls => turns.for_each(|turn| all.extend_from_slice(&turn.calls_us)),
        Latency::Turns => all.extend(turns.map(|turn| turn.turn_us)),
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

    #[test]
    fn no_measure_is_more_than_the_most() {
        let turns = [3, 900_000, 1, 40].map(|us| Observation {
            turn_us: us + 7,
            calls_us: vec![us, 2],
            ..Observation::default()
        });
        for (latency, longest) in [(Latency::Calls, 0.9), (Latency::Turns, 0.900_007)] {
            for goal in [Goal::LatencyP50, Goal::LatencyP95] {
                let most = most(goal, latency, turns.iter());
                assert_eq!(most, Some(longest));
                assert!(measure(goal, latency, turns.iter()) <= most);
            }
        }
        assert_eq!(most(Goal::ErrorRate, Latency::Calls, turns.iter()), None);
        assert_eq!(most(Goal::LatencyP95, Latency::Calls, [].iter()), None);
    }

    #[test]
    fn calls_that_were_not_made_show_nothing() {
        let quiet = [Observation { turn_us: 5_000_000, ..Observation::default() }];
        assert_eq!(measure(Goal::ErrorRate, Latency::Calls, quiet.iter()), None);
        assert_eq!(measure(Goal::LatencyP95, Latency::Calls, quiet.iter()), None);
        assert_eq!(measure(Goal::LatencyP95, Latency::Turns, quiet.iter()), Some(5.0));
        assert_eq!(measure(Goal::CostPerTurn, Latency::Calls, [].iter()), None);
    }
}
