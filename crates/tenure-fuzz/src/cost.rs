//! The time and the memory that one input takes.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The most processor time that one input may take.
pub const MAX_CPU: Duration = Duration::from_secs(1);
/// The most memory that one input may take, in bytes.
pub const MAX_MEMORY: u64 = 200 << 20;

/// The lines of `/proc/self/status` with the most memory that this process has had, and what it has now.
pub(crate) const PEAK: &str = "VmHWM:";
const PRESENT: &str = "VmRSS:";

/// The cost of one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// The processor time.
    pub cpu: Duration,
    /// The most memory that was in use, in bytes.
    pub memory: u64,
}

impl Cost {
    /// Returns the cost of `work` in this process: the memory is what it took beyond what was in use before.
    pub(crate) fn of(work: impl FnOnce()) -> Self {
        // Forgets the peak of earlier inputs. Where that is not possible the peak is of all of them, which errs on the
        // side of a report.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let (before, began) = (memory(PRESENT), cpu_time());
        work();
        let cpu = cpu_time().saturating_sub(began);
        Self { cpu, memory: memory(PEAK).saturating_sub(before) }
    }

    /// Whether an input may cost this much.
    pub fn is_within_limits(&self) -> bool {
        self.cpu <= MAX_CPU && self.memory <= MAX_MEMORY
    }
}

pub(crate) fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Returns the figure of this line, in bytes.
pub(crate) fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let figure = status.lines().find_map(|all| all.strip_prefix(line));
    let kilobytes = figure.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_too_much_is_known_even_after_it_was_given_back() {
        let little = || drop(vec![1u8; 1 << 20]);
        assert!(Cost::of(little).is_within_limits());
        let cost = Cost::of(|| drop(vec![1u8; 300 << 20]));
        assert!(cost.memory > MAX_MEMORY && !cost.is_within_limits(), "{cost:?}");
        assert!(Cost::of(little).is_within_limits(), "the peak of another input does not count");
        let spin = || {
            let began = cpu_time();
            while cpu_time() - began < MAX_CPU + Duration::from_millis(100) {}
        };
        assert!(!Cost::of(spin).is_within_limits());
    }
}
