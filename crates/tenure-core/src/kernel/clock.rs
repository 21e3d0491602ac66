//! Whose time is running.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The account of one call: whether its own time stands still, how much of the time was not its own
/// at all, and how often the effect inside it was begun.
#[derive(Default)]
pub(crate) struct Clock {
    pauses: AtomicU32,
    effects: AtomicU32,
    /// In microseconds. Clocks are part of every call's future, so they are small.
    time_off: AtomicU32,
}

impl Clock {
    /// Own time stands still while a `next` or an ask is in flight.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.pauses.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub(crate) fn pause(&self) -> Paused<'_> {
        self.change(1);
        Paused(self)
    }

    /// The calls of one wrap are polled by one task, so a plain store will do.
    #[inline]
    fn change(&self, by: i32) {
        let pauses = self.pauses.load(Ordering::Relaxed);
        self.pauses.store(pauses.wrapping_add_signed(by), Ordering::Relaxed);
    }

    /// Takes time off that was not the call's.
    pub(crate) fn take_off(&self, time: Duration) {
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let before = self.time_off.load(Ordering::Relaxed);
        self.time_off.store(before.saturating_add(micros), Ordering::Relaxed);
    }

    /// Returns the time that was not the call's.
    pub(crate) fn time_off(&self) -> Duration {
        Duration::from_micros(self.time_off.load(Ordering::Relaxed).into())
    }

    /// The effect was begun inside this wrap; or, on the effect's own clock, has answered.
    #[inline]
    pub(crate) fn count_effect(&self) {
        let effects = self.effects.load(Ordering::Relaxed);
        self.effects.store(effects + 1, Ordering::Relaxed);
    }

    /// How often the effect was begun inside this wrap; on its own clock, how often it answered.
    #[inline]
    pub(crate) fn effects(&self) -> u32 {
        self.effects.load(Ordering::Relaxed)
    }
}

/// Own time runs again when this is dropped.
pub(crate) struct Paused<'a>(&'a Clock);

impl Drop for Paused<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.change(-1);
    }
}

/// As many wraps as most agents have, and the effect.
const FEW: usize = 8;

/// One clock per wrap and one for the effect. A few of them need no allocation.
pub(crate) enum Clocks {
    Few([Clock; FEW]),
    Many(Box<[Clock]>),
}

impl Clocks {
    #[inline]
    pub(crate) fn for_wraps(wraps: usize) -> Self {
        if wraps < FEW {
            Self::Few(Default::default())
        } else {
            Self::Many((0..=wraps).map(|_| Clock::default()).collect())
        }
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> &Clock {
        match self {
            Self::Few(clocks) => &clocks[at],
            Self::Many(clocks) => &clocks[at],
        }
    }
}
