//! At most so many calls in any time of this length.
//!
//! Tower's `RateLimit` cannot be cloned, so that its service cannot be shared by the calls of an
//! agent; it lets twice as many through around the end of a period; and it does not say how long one
//! would have to wait. So the times of the last calls are kept here.

use super::backoff::later;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many calls in this time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) calls: usize,
    pub(super) every: Duration,
}

/// When calls were made, and when those will be that wait; in order.
#[derive(Default)]
pub(super) struct Pace {
    times: Mutex<VecDeque<Instant>>,
}

impl Pace {
    /// Takes the next time at which a call may be made, if that is within `max_wait`; else says how
    /// long it would have to wait.
    pub(super) fn turn(
        self: &Arc<Self>,
        rate: &Rate,
        now: Instant,
        max_wait: Duration,
    ) -> Result<Turn, Duration> {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        while times.front().is_some_and(|at| later(*at, rate.every) <= now) {
            times.pop_front();
        }
        // No more than `calls - 1` others are less than a period before this.
        let first = times.len().checked_sub(rate.calls).map(|at| later(times[at], rate.every));
        let at = first.map_or(now, |first| first.max(now));
        let wait = at.duration_since(now);
        if wait > max_wait {
            return Err(wait);
        }
        let place = times.partition_point(|other| *other <= at);
        times.insert(place, at);
        drop(times);
        Ok(Turn { pace: self.clone(), at, is_due: wait.is_zero(), taken: false })
    }
}

/// A time at which a call may be made. It is free again if it is not waited for.
pub(super) struct Turn {
    pace: Arc<Pace>,
    at: Instant,
    is_due: bool,
    taken: bool,
}

impl Turn {
    pub(super) async fn wait(mut self) {
        // A call that need not wait does not even look at the clock.
        if !self.is_due {
            tokio::time::sleep_until(self.at).await;
        }
        self.taken = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut times = self.pace.times.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = times.iter().position(|at| *at == self.at) {
            times.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::Config;

    const SECOND: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_secs(1000);

    #[test]
    fn so_many_go_at_once_and_the_rest_one_period_later() {
        let (pace, now) = (Arc::new(Pace::default()), Instant::now());
        let rate = Rate { calls: 2, every: 10 * SECOND };
        let turns: Vec<_> =
            (0..6).map(|_| pace.turn(&rate, now, LONG).expect("it may wait for long")).collect();
        let waits: Vec<_> = turns.iter().map(|turn| (turn.at - now).as_secs()).collect();
        assert_eq!(waits, [0, 0, 10, 10, 20, 20]);
        assert_eq!(pace.turn(&rate, now, 29 * SECOND).err(), Some(30 * SECOND));
    }

    #[test]
    fn a_turn_that_is_not_waited_for_is_free_again() {
        let (pace, now) = (Arc::new(Pace::default()), Instant::now());
        let rate = Rate { calls: 1, every: 10 * SECOND };
        let first = pace.turn(&rate, now, LONG).expect("free");
        let second = pace.turn(&rate, now, LONG).expect("it may wait");
        assert_eq!(second.at - now, 10 * SECOND);
        drop(second);
        let third = pace.turn(&rate, now, LONG).expect("it may wait");
        assert_eq!(third.at - now, 10 * SECOND);
        drop((first, third));
        assert!(pace.turn(&rate, now, Duration::ZERO).is_ok());
    }

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        /// Whoever comes when, and whoever gives up while it waits: never more than allowed.
        #[test]
        fn no_time_of_a_period_has_more_calls_than_allowed(
            calls in 1_usize..5,
            comers in prop::collection::vec((0_u64..4_000, 0_u64..20_000, any::<bool>()), 1..60),
        ) {
            let pace = Arc::new(Pace::default());
            let rate = Rate { calls, every: 3 * SECOND };
            let start = Instant::now();
            let (mut now, mut turns) = (start, Vec::new());
            for (gap, patience, gives_up) in comers {
                now += Duration::from_millis(gap);
                if let Ok(turn) = pace.turn(&rate, now, Duration::from_millis(patience)) {
                    prop_assert!(turn.at >= now);
                    turns.push(turn);
                }
                // Only one that still waits can give up.
                if gives_up && let Some(place) = turns.iter().position(|turn| turn.at > now) {
                    drop(turns.remove(place));
                }
            }
            let mut times: Vec<_> = turns.iter().map(|turn| turn.at - start).collect();
            times.sort();
            for window in times.windows(calls + 1) {
                prop_assert!(window[calls] - window[0] >= rate.every, "{times:?}");
            }
        }
    }
}
