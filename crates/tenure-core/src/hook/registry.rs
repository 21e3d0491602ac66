//! Hooks by name.

use super::AgentLifecycle;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Hooks that configuration may name, as `AgentConfig::lifecycle_hooks` does.
#[derive(Clone, Default)]
pub struct HookRegistry {
    hooks: BTreeMap<String, Arc<dyn AgentLifecycle>>,
}

impl HookRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `hook` under `name`, in place of an earlier one.
    #[must_use]
    pub fn register(mut self, name: impl Into<String>, hook: impl AgentLifecycle) -> Self {
        self.hooks.insert(name.into(), Arc::new(hook));
        self
    }

    /// The hook of this name.
    pub fn find(&self, name: &str) -> Option<Arc<dyn AgentLifecycle>> {
        self.hooks.get(name).cloned()
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.hooks.keys().map(String::as_str)
    }
}

impl fmt::Debug for HookRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
