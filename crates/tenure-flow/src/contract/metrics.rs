//! The numbers of an orchestration.

use serde::Serialize;
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
    /// What all steps took together.
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
