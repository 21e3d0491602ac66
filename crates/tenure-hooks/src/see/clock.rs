//! The time of day, for what only knows how long ago it was: one look at a clock is enough then.

use std::time::{Duration, Instant, SystemTime};

/// The time of day at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    wall: SystemTime,
    now: Instant,
}

impl Clock {
    #[cfg(test)]
    pub(super) fn new(wall: SystemTime, now: Instant) -> Self {
        Self { wall, now }
    }

    /// The time of day now.
    pub(super) fn now() -> Self {
        const TRIES: usize = 5;
        const CLOSE: Duration = Duration::from_micros(50);
        for _ in 1..TRIES {
            let (before, wall, now) = (Instant::now(), SystemTime::now(), Instant::now());
            // Else somebody came between them.
            if now.duration_since(before) < CLOSE {
                return Self { wall, now };
            }
        }
        Self { wall: SystemTime::now(), now: Instant::now() }
    }

    /// This, unless the clock on the wall was set since: times that are told at different moments
    /// stay in order.
    #[cfg(feature = "telemetry")]
    pub(super) fn kept(self) -> Self {
        const SET: Duration = Duration::from_millis(1);
        let now = Self::now();
        let expected = self.at(now.now);
        let apart = now.wall.duration_since(expected).unwrap_or_else(|error| error.duration());
        if apart < SET { self } else { now }
    }

    /// When that was, or will be.
    pub(super) fn at(self, at: Instant) -> SystemTime {
        let time = match at.checked_duration_since(self.now) {
            Some(later) => self.wall.checked_add(later),
            None => self.wall.checked_sub(self.now.duration_since(at)),
        };
        time.unwrap_or(self.wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_and_after_is_told_by_its_distance() {
        let clock = Clock::now();
        let second = Duration::from_secs(1);
        assert_eq!(clock.at(clock.now), clock.wall);
        assert_eq!(clock.at(clock.now + second), clock.wall + second);
        assert_eq!(clock.at(clock.now - second), clock.wall - second);
    }

    #[test]
    #[cfg(feature = "telemetry")]
    fn a_clock_is_kept_until_the_one_on_the_wall_is_set() {
        let clock = Clock::now();
        assert_eq!(clock.kept().wall, clock.wall);
        for wall in [clock.wall - Duration::from_secs(9), clock.wall + Duration::from_secs(9)] {
            assert_ne!(Clock { wall, ..clock }.kept().wall, wall);
        }
    }
}
