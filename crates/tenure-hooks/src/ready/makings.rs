//! What hooks are made with, beside their options.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::cache::Cache;
use tenure_core::model::Model;
use tenure_process::{Environment, StartCheck};

/// What hooks are made with, beside their options. Nothing of it is opened, reached or started while
/// a hook is made.
pub trait Makings {
    /// The model of this name. The error says why there is none.
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String>;

    /// The name of the model that the agent itself uses.
    fn own_model(&self) -> Option<&str> {
        None
    }

    /// The names of all agents that will be there, sorted; none, where that is not known yet.
    fn agents(&self) -> Option<&[String]> {
        None
    }

    /// What to do where an agent is not among them, if there may be more.
    fn more_agents(&self) -> Option<&str> {
        None
    }

    /// The file or folder that a path means, which a file names: beneath the project. It need not be
    /// there. The error says why it may not be used.
    fn path(&self, path: &str) -> Result<PathBuf, String>;

    /// The project's folder, in which its tools run; the working folder of the process, where there is
    /// no project.
    fn root(&self) -> PathBuf {
        PathBuf::from(".")
    }

    /// A cache that outlives the process, if there is one.
    fn cache(&self) -> Option<Arc<dyn Cache>> {
        None
    }

    /// The environment that commands run in.
    fn environment(&self) -> Environment;

    /// The most time that a tool call may take, if the project limits it.
    fn tool_limit(&self) -> Option<Duration> {
        None
    }

    /// Says before each start of a command in a folder whether it may be started: the files that it runs are
    /// those that were checked. None, where nothing was checked.
    fn start_check(&self, _argv: &[String], _dir: &Path) -> Option<StartCheck> {
        None
    }

    /// Checks that the value of a variable of the environment may be sent to an address that a file names.
    /// The error says why not: it is the key of a provider, and not for that host.
    fn may_send(&self, _variable: &str, _url: &str) -> Result<(), String> {
        Ok(())
    }

    /// What the hooks of all agents share that are made together.
    fn shared(&self) -> &Shared;

    /// Says that something is not wrong, and yet hardly meant.
    fn warn(&self, field: &str, message: String);
}

/// What hooks share by name: a pool of permits, a breaker. Clones are one.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Parts>>);

type Parts = BTreeMap<(&'static str, String), Arc<dyn Any + Send + Sync>>;

impl Shared {
    /// Nothing is shared yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is shared by this name among hooks of this kind; made, if nobody has asked for it yet.
    pub fn part<T: Any + Send + Sync>(
        &self,
        kind: &'static str,
        name: &str,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, name.to_owned());
        if let Some(part) = parts.get(&key)
            && let Ok(part) = part.clone().downcast()
        {
            return part;
        }
        let made = Arc::new(make());
        parts.insert(key, made.clone());
        made
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(parts.keys()).finish()
    }
}
