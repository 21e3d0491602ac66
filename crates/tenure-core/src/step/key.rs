//! What a step is called.

use super::print::Print;
use crate::id::RunId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The name of a step: equal in every attempt at the same run, never a global counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepKey {
    /// The scope it belongs to; empty for a turn that is the whole run. A clone's turn adds which
    /// step of its parent asked for it, the id of the call and the attempt: `1:call_7#0`.
    pub path: Arc<str>,
    /// What kind of step: a hook point, `model`, `tool`, `intent`, `ask`, `step` or `outcome`.
    pub kind: Arc<str>,
    /// The name of the hook or tool; of a question or a step, also who asks or takes it, and where.
    pub name: Arc<str>,
    /// How many steps of this kind and name came before it in its scope.
    pub ordinal: u32,
    /// A hash of its input.
    pub input: u64,
}

impl StepKey {
    /// A key. The drive loop makes its own; this is for whoever runs several agents and has steps of
    /// its own, and for logs that read keys back.
    pub fn new(
        path: impl Into<Arc<str>>,
        kind: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        ordinal: u32,
        input: u64,
    ) -> Self {
        Self { path: path.into(), kind: kind.into(), name: name.into(), ordinal, input }
    }

    /// Whether the two name the same step, whatever its input.
    pub fn is_same_step(&self, other: &StepKey) -> bool {
        self.path == other.path
            && self.kind == other.kind
            && self.name == other.name
            && self.ordinal == other.ordinal
    }

    /// Whether the step delivers an end: of a turn, of a chat, of an instance; or says what came of
    /// something that is over. Ends are delivered also in a run that is given up.
    pub fn is_end(&self) -> bool {
        matches!(&*self.kind, "after_agent" | "after_chat" | "on_shutdown" | "outcome")
    }

    /// A short name of this step of this run, the same in every attempt: what a person types to
    /// answer a question, and what a receiver knows a delivery by.
    pub fn id(&self, run: RunId) -> String {
        let mut print = Print::new();
        print.text(&run.to_string());
        for part in [&self.path, &self.kind, &self.name] {
            print.text(part);
        }
        print.number(u64::from(self.ordinal));
        format!("{:016x}", print.finish())
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
