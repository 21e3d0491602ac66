//! Token counts.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// What model calls cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Of the tokens read, those that came from a cache.
    pub cached: u64,
    /// Of the tokens written, those spent on reasoning.
    pub reasoning: u64,
    /// How many model calls this adds up.
    pub calls: u64,
}

impl Usage {
    /// The usage of one call.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, calls: 1, ..Self::default() }
    }

    /// All tokens, read and written.
    pub fn total(&self) -> u64 {
        self.input + self.output
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cached += other.cached;
        self.reasoning += other.reasoning;
        self.calls += other.calls;
    }
}
