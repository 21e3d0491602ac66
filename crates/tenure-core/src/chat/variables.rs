//! What the agents of a chat share.

use super::ChatRun;
use crate::error::Error;
use crate::kernel::Site;
use crate::state::{StateOwnership, StateViolation};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Set by the platform, and read-only to everybody else.
pub(super) const SYSTEM_KEYS: [&str; 4] = ["workflow_name", "app_id", "chat_id", "user_id"];

/// What is declared of a chat's variables, by whoever runs it.
pub trait Declarations: Send + Sync + 'static {
    /// Whether an agent, a hook or a tool may write these values over `current`. An error refuses
    /// the whole patch; [`StateViolation`] is the one for a key that somebody else owns.
    fn check(
        &self,
        patch: &[(String, Value)],
        current: &BTreeMap<String, Value>,
    ) -> Result<(), Error>;

    /// What a variable is that is removed: this value is written in its place, by the same rules as
    /// every write. None means that it is gone, like one that is not declared.
    fn removed(&self, key: &str) -> Option<Value> {
        let _ = key;
        None
    }

    /// Changes what follows from a write of `changed`. Called while the variables are locked, so it
    /// has to be quick and must not touch the chat.
    fn settle(&self, changed: &[String], variables: &mut BTreeMap<String, Value>) {
        let _ = (changed, variables);
    }
}

/// The values of a chat, and how often they were written.
#[derive(Default)]
pub(crate) struct Values {
    values: Mutex<BTreeMap<String, Value>>,
    writes: AtomicU64,
}

impl Values {
    pub(crate) fn new(values: BTreeMap<String, Value>) -> Self {
        Self { values: Mutex::new(values), writes: AtomicU64::new(0) }
    }

    pub(crate) fn lock(&self) -> impl Deref<Target = BTreeMap<String, Value>> {
        self.values.lock()
    }

    pub(crate) fn write(&self) -> impl DerefMut<Target = BTreeMap<String, Value>> {
        let values = self.values.lock();
        self.writes.fetch_add(1, Ordering::Release);
        values
    }

    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }
}

/// The context variables of a chat, as its hooks see them.
#[derive(Clone, Copy)]
pub struct ContextVariables<'a> {
    run: Option<&'a ChatRun>,
}

impl<'a> ContextVariables<'a> {
    pub(crate) fn new(site: &'a Site<'a>) -> Self {
        Self { run: site.chat }
    }

    pub(super) fn of(run: &'a ChatRun) -> Self {
        Self { run: Some(run) }
    }

    /// The value of a variable.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.run?.variables.lock().get(key).cloned()
    }

    /// Returns how often the variables were written, so that two looks at them can be told apart.
    pub fn version(&self) -> u64 {
        self.run.map_or(0, |run| run.variables.writes())
    }

    /// Every variable.
    #[doc(alias = "data")]
    pub fn all(&self) -> BTreeMap<String, Value> {
        self.run.map(|run| run.variables.lock().clone()).unwrap_or_default()
    }

    /// Sets a variable. The system's own (`workflow_name`, `app_id`, `chat_id`, `user_id`) are
    /// read-only.
    pub fn set(&self, key: impl Into<String>, value: impl Into<Value>) -> Result<(), Error> {
        self.update([(key.into(), value.into())])
    }

    /// Sets several variables, all or none.
    pub fn update(&self, patch: impl IntoIterator<Item = (String, Value)>) -> Result<(), Error> {
        self.change(patch, [])
    }

    /// Sets several variables and removes others, all or none. A removal may happen where a write
    /// of `null` may; what a declared variable is then, its [`Declarations`] say.
    pub fn change(
        &self,
        patch: impl IntoIterator<Item = (String, Value)>,
        removed: impl IntoIterator<Item = String>,
    ) -> Result<(), Error> {
        let mut patch: Vec<_> = patch.into_iter().collect();
        let declarations = self.run.and_then(|run| run.declarations.as_ref());
        let mut gone = Vec::new();
        for key in removed {
            match declarations.and_then(|it| it.removed(&key)) {
                Some(value) => patch.push((key, value)),
                None => gone.push((key, Value::Null)),
            }
        }
        let kept = patch.len();
        patch.extend(gone);
        if let Some((key, _)) = patch.iter().find(|(key, _)| SYSTEM_KEYS.contains(&key.as_str())) {
            let (owner, actor) = (StateOwnership::Orchestrator, StateOwnership::Agent);
            let message = format!(
                "context variable `{key}` is the platform's and read-only; nothing of this write \
                 was kept"
            );
            let violation = StateViolation { key: key.clone(), owner, actor };
            return Err(Error::orchestration(message).because(violation.into()));
        }
        let Some(run) = self.run else { return Ok(()) };
        let mut variables = run.variables.write();
        if let Some(declarations) = &run.declarations {
            declarations.check(&patch, &variables)?;
        }
        let changed: Vec<_> = match &run.declarations {
            Some(_) => patch.iter().map(|(key, _)| key.clone()).collect(),
            None => Vec::new(),
        };
        for (key, _) in patch.drain(kept..) {
            variables.remove(&key);
        }
        variables.extend(patch);
        if let Some(declarations) = &run.declarations {
            declarations.settle(&changed, &mut variables);
        }
        Ok(())
    }
}

impl fmt::Debug for ContextVariables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ContextVariables").field(&self.all()).finish()
    }
}
