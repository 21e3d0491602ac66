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
    // Short enough to be written down and read again as it is.
    Some((measured * 1e9).round() / 1e9)
}

fn latencies<'a>(latency: Latency, turns: impl Iterator<Item = &'a Observation>) -> Vec<u64> {
    match latency {
        Latency::Calls => turns.flat_map(|turn| turn.calls_us.iter().copied()).collect(),
        Latency::Turns => turns.map(|turn| turn.turn_us).collect(),
    }
}

/// The smallest value that so large a share of all does not exceed.
fn quantile(mut values: Vec<u64>, share: f64) -> Option<u64> {
    values.sort_unstable();
    let rank = (values.len() as f64 * share).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
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
