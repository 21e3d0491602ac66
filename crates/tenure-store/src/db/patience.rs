//! Waiting for another process that writes.

use std::process;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long to wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest pause between two attempts. SQLite's own waiting grows to a tenth of a second: with
/// many processes the file is idle most of the time then, and who came first waits longest.
const MOST_MILLIS: u32 = 6;

/// What a connection does while another one writes.
pub(super) struct Patience {
    since: Instant,
    lasts: Duration,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), lasts: PATIENCE }
    }

    /// Pauses before the next attempt, or says that it has been long enough. The first attempt of
    /// each wait has the number 0.
    pub(super) fn wait(&mut self, attempt: i32) -> bool {
        if attempt == 0 {
            self.since = Instant::now();
        }
        if self.since.elapsed() >= self.lasts {
            return false;
        }
        // Processes that were turned away together do not come back together.
        let mixed = (process::id() ^ (attempt.unsigned_abs() << 8)).wrapping_mul(0x9e37_79b1);
        sleep(Duration::from_millis(u64::from(1 + (mixed >> 16) % MOST_MILLIS)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_pauses_and_an_end_and_the_next_one_begins_anew() {
        let begun = Instant::now();
        let mut patience = Patience { since: begun, lasts: Duration::from_millis(50) };
        let attempts = (0..).take_while(|attempt| patience.wait(*attempt)).count();
        assert!(begun.elapsed() >= Duration::from_millis(50));
        assert!((2..=50).contains(&attempts), "{attempts} attempts");
        assert!(!patience.wait(51));
        assert!(patience.wait(0));
    }
}
