//! What a step is called.

use super::print::Print;
use crate::id::RunId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The name of a step: equal in every attempt at the same run, never a global counter.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// What its input is made of, part by part, each with a short hash of its own:
    /// `instruction=1a2b3c4d messages=5e6f7a8b/7`. For people who are told what has changed; two
    /// keys are equal whatever it says, and it may be empty.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub detail: Arc<str>,
}

impl PartialEq for StepKey {
    fn eq(&self, other: &Self) -> bool {
        self.is_same_step(other) && self.input == other.input
    }
}

impl Eq for StepKey {}

impl Hash for StepKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.path, &self.kind, &self.name, self.ordinal, self.input).hash(state);
    }
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
        let (path, kind, name) = (path.into(), kind.into(), name.into());
        Self { path, kind, name, ordinal, input, detail: "".into() }
    }

    /// The same key, which says what its input is made of.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Arc<str>>) -> Self {
        self.detail = detail.into();
        self
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

    /// Whether the step delivers the end of an instance. That is recorded also in a run that is
    /// parked, if something can be written.
    pub fn ends_instance(&self) -> bool {
        &*self.kind == "on_shutdown"
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
