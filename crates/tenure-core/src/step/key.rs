//! What a step is called.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The name of a step: equal in every attempt at the same run, never a global counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepKey {
    /// The scope it belongs to; empty for the turn itself. A clone's turn adds which step of its
    /// parent asked for it, the id of the call and the attempt: `1:call_7#0`.
    pub path: Arc<str>,
    /// What kind of step: a hook point, `model`, `tool`, `ask` or `step`.
    pub kind: Arc<str>,
    /// The name of the hook or tool; of a question or a step, also who asks or takes it, and where.
    pub name: Arc<str>,
    /// How many steps of this kind and name came before it in its scope.
    pub ordinal: u32,
    /// A hash of its input.
    pub input: u64,
}

impl StepKey {
    /// Whether the two name the same step, whatever its input.
    pub fn is_same_step(&self, other: &StepKey) -> bool {
        self.path == other.path
            && self.kind == other.kind
            && self.name == other.name
            && self.ordinal == other.ordinal
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}/", self.path)?;
        }
        write!(f, "{}:{}#{}", self.kind, self.name, self.ordinal)
    }
}
