//! The numbers of an orchestration.

use serde::{Serialize, Serializer};
use std::time::Duration;

/// The numbers of an orchestration. A step is a task, however often it was tried; in a chat it is a
/// turn, and one that is repeated is another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OrchestratorMetrics {
    /// Steps that were begun and have ended.
    pub total_steps: u64,
    /// Those that succeeded.
    pub successful_steps: u64,
    /// Those that failed.
    pub failed_steps: u64,
    /// Repetitions of failed steps.
    pub retries: u64,
    /// Decisions on who does what.
    pub routing_decisions: u64,
    /// What all steps took together; `busy_ms` in JSON.
    #[serde(rename = "busy_ms", serialize_with = "in_millis")]
    pub busy: Duration,
}

impl OrchestratorMetrics {
    /// What a step took on average, in milliseconds.
    pub fn average_step_duration_ms(&self) -> f64 {
        match self.total_steps {
            0 => 0.0,
            steps => self.busy.as_secs_f64() * 1_000.0 / steps as f64,
        }
    }

    /// Counts a step that has ended.
    pub fn record_step(&mut self, is_ok: bool, took: Duration) {
        self.total_steps += 1;
        self.busy += took;
        if is_ok {
            self.successful_steps += 1;
        } else {
            self.failed_steps += 1;
        }
    }
}

/// Durations are milliseconds wherever programs read them.
fn in_millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_durations_in_milliseconds() {
        let mut metrics = OrchestratorMetrics::default();
        metrics.record_step(true, Duration::from_micros(1500));
        let json = serde_json::to_value(metrics).expect("JSON");
        assert_eq!((&json["busy_ms"], json.get("busy")), (&1.5.into(), None));
    }
}
