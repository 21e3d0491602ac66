//! How an agent is configured.

use crate::life::LifecycleConfig;
use crate::model::ModelParams;
use crate::phase::PhaseHook;
use crate::resource::RELEASE_LIMIT;
use crate::secret::Redactor;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What an agent is called, told and allowed.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentConfig {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for, as another model reads it when the agent is a tool.
    pub description: String,
    /// Its system instruction.
    #[doc(alias = "system_prompt")]
    pub instruction: Option<Arc<str>>,
    /// What steers its model.
    pub params: ModelParams,
    /// The most model calls that a turn may make. 10.
    #[doc(alias = "max_iterations")]
    pub max_steps: usize,
    /// The most tool bodies that run at the same time. 8.
    pub max_parallel_tools: usize,
    /// Whether a turn sees the turns before it. Yes.
    pub use_history: bool,
    /// How startup and shutdown behave.
    pub lifecycle: LifecycleConfig,
    /// Time limits.
    pub limits: Limits,
    /// Hooks by registered name. The keys are exactly `on_start` and `on_shutdown`.
    pub lifecycle_hooks: BTreeMap<String, String>,
    /// Hooks on phase transitions.
    pub phase_hooks: Vec<Arc<dyn PhaseHook>>,
    /// The fields of the file that declares it, for hooks that read them: as they are written, so that no
    /// `${SECRET}` of it is resolved. None for an agent that is built in code.
    pub declaration: Option<Arc<Map<String, Value>>>,
    /// Takes secrets out of its events and of what its hooks write and send. The agents of a project share
    /// one; an agent that is built in code has its own unless it is given another.
    pub redactor: Redactor,
}

impl AgentConfig {
    /// The defaults, for an agent of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            instruction: None,
            params: ModelParams::default(),
            max_steps: 10,
            max_parallel_tools: 8,
            use_history: true,
            lifecycle: LifecycleConfig::default(),
            limits: Limits::default(),
            lifecycle_hooks: BTreeMap::new(),
            phase_hooks: Vec::new(),
            declaration: None,
            redactor: Redactor::new(),
        }
    }
}

impl fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentConfig")
            .field("name", &self.name)
            .field("instruction", &self.instruction)
            .field("params", &self.params)
            .field("max_steps", &self.max_steps)
            .field("max_parallel_tools", &self.max_parallel_tools)
            .field("use_history", &self.use_history)
            .field("lifecycle", &self.lifecycle)
            .field("limits", &self.limits)
            .field("lifecycle_hooks", &self.lifecycle_hooks)
            .finish_non_exhaustive()
    }
}

/// Time limits. Waiting for a person never counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Each call of a hook. 30 s.
    pub hook: Duration,
    /// Each call of a hook that only observes. 5 s.
    pub observer: Duration,
    /// Each call of a hook at the end of a scope. 5 s.
    pub end: Duration,
    /// All calls at the end of a scope together. 15 s.
    pub ends: Duration,
    /// Storing what memory has to keep, at shutdown. 5 s, and no more than half of what is left of
    /// the shutdown's budget.
    pub flush: Duration,
    /// The release of each resource. 5 s.
    pub release: Duration,
    /// A turn. None by default; exceeding it ends the turn as timed out.
    pub turn: Option<Duration>,
    /// A model call. None by default.
    pub model: Option<Duration>,
    /// A tool call. None by default; a tool may have its own.
    pub tool: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            hook: Duration::from_secs(30),
            observer: Duration::from_secs(5),
            end: Duration::from_secs(5),
            ends: Duration::from_secs(15),
            flush: Duration::from_secs(5),
            release: RELEASE_LIMIT,
            turn: None,
            model: None,
            tool: None,
        }
    }
}

impl Limits {
    /// Adds to `problems` every limit that nothing could keep.
    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        let limits = [
            ("hook", Some(self.hook)),
            ("observer", Some(self.observer)),
            ("end", Some(self.end)),
            ("ends", Some(self.ends)),
            ("flush", Some(self.flush)),
            ("release", Some(self.release)),
            ("turn", self.turn),
            ("model", self.model),
            ("tool", self.tool),
        ];
        for (name, limit) in limits {
            if limit.is_some_and(|limit| limit.is_zero()) {
                problems.push(format!(
                    "the limit `{name}` is zero; give it more than zero, or leave it out"
                ));
            }
        }
    }
}
