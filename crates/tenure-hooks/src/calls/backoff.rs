//! How long to wait before a call is made again.
//!
//! Tower's backoff always doubles, and adds its jitter on top; here the factor is free, and the whole
//! wait is drawn, so that callers who failed together do not come back together.

use crate::ready::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::time::Instant;

/// What a hook may take beside its waits.
pub(super) const OWN_TIME: Duration = Duration::from_secs(30);

/// How much of a wait is left to chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// All of it: anything from nothing to the whole wait.
    #[default]
    Full,
    /// Half of it: anything from half of the wait to the whole.
    Equal,
    /// Nothing.
    None,
}

/// Waits that grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Backoff {
    pub(super) initial: Duration,
    pub(super) max: Duration,
    pub(super) factor: f64,
    pub(super) jitter: Jitter,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(500),
            max: Duration::from_secs(30),
            factor: 2.0,
            jitter: Jitter::Full,
        }
    }
}

impl Backoff {
    /// The wait before a retry, counted from zero.
    pub(super) fn delay(&self, retry: u32) -> Duration {
        let longest = self.longest(retry);
        match self.jitter {
            Jitter::Full => longest.mul_f64(random()),
            Jitter::Equal => longest / 2 + (longest / 2).mul_f64(random()),
            Jitter::None => longest,
        }
    }

    /// The longest that this wait can be.
    pub(super) fn longest(&self, retry: u32) -> Duration {
        let grown = self.initial.as_secs_f64() * self.factor.powi(retry.min(1000) as i32);
        Duration::try_from_secs_f64(grown).map_or(self.max, |grown| grown.min(self.max))
    }

    /// The same, if it can be waited like that.
    pub(super) fn checked(self) -> Result<Self, Refusal> {
        if !(1.0..=100.0).contains(&self.factor) {
            return Err(Refusal::new(
                "factor",
                format!("waits grow by 1 to 100 times, and not by {}", self.factor),
            ));
        }
        if self.initial > self.max {
            return Err(Refusal::new(
                "initial_delay",
                format!("{:?} is longer than `max_delay`, {:?}", self.initial, self.max),
            ));
        }
        Ok(self)
    }
}

/// How often a call is made in all, if that can be meant.
pub(super) fn checked_attempts(attempts: u32) -> Result<u32, Refusal> {
    match attempts {
        1..=100 => Ok(attempts),
        _ => Err(Refusal::new("attempts", format!("give 1 to 100 attempts, and not {attempts}"))),
    }
}

/// A time may be so long that no clock can tell when it is over.
pub(super) fn later(from: Instant, by: Duration) -> Instant {
    const A_LIFETIME: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);
    from.checked_add(by).unwrap_or_else(|| from + A_LIFETIME)
}

/// Whether a wait would last to the end of the turn, or beyond it.
pub(super) fn outlasts(wait: Duration, deadline: Option<std::time::Instant>) -> bool {
    deadline.is_some_and(|at| later(Instant::now(), wait) >= at.into())
}

/// A wait as events tell it.
pub(super) fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

/// Some number from 0 to 1.
fn random() -> f64 {
    // The keys of every new state differ, and their hash is spread evenly.
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_grow_up_to_their_bound() {
        let backoff =
            Backoff { initial: SECOND, max: 10 * SECOND, factor: 3.0, jitter: Jitter::None };
        let waits: Vec<_> = (0..4).map(|retry| backoff.delay(retry).as_secs()).collect();
        assert_eq!(waits, [1, 3, 9, 10]);
        assert_eq!(backoff.delay(u32::MAX), 10 * SECOND);
    }

    #[test]
    fn jitter_spreads_waits_within_their_bounds() {
        for (jitter, least) in [(Jitter::Full, Duration::ZERO), (Jitter::Equal, SECOND / 2)] {
            let backoff = Backoff { initial: SECOND, max: SECOND, factor: 1.0, jitter };
            let waits: Vec<_> = (0..2_000).map(|_| backoff.delay(0)).collect();
            assert!(waits.iter().all(|wait| *wait >= least && *wait <= SECOND), "{jitter:?}");
            let range = SECOND - least;
            let (low, high) = (least + range / 10, SECOND - range / 10);
            assert!(waits.iter().any(|wait| *wait < low), "{jitter:?} is never short");
            assert!(waits.iter().any(|wait| *wait > high), "{jitter:?} is never long");
            let mean = waits.iter().sum::<Duration>() / 2_000;
            let middle = least + range / 2;
            assert!(
                mean > middle - range / 20 && mean < middle + range / 20,
                "{jitter:?} {mean:?}"
            );
        }
    }

    #[test]
    fn waits_that_cannot_be_are_refused() {
        let with = |factor| Backoff { factor, ..Backoff::default() }.checked();
        assert!(with(1.0).is_ok());
        for factor in [0.5, f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(with(factor).unwrap_err().field(), "factor");
        }
        let long = Backoff { initial: 60 * SECOND, ..Backoff::default() };
        assert_eq!(long.checked().unwrap_err().field(), "initial_delay");
        assert!(checked_attempts(0).is_err() && checked_attempts(101).is_err());
    }
}
