//! Makings for a hook that is made only to see whether it can be.

use super::{Makings, Shared};
use std::path::PathBuf;
use std::sync::Arc;
use tenure_core::cache::Cache;
use tenure_core::model::Model;
use tenure_process::Environment;

/// The same makings for a hook that nobody will use: it shares nothing, and what it says is not heard.
pub(super) struct Apart<'m> {
    makings: &'m dyn Makings,
    shared: Shared,
}

impl<'m> Apart<'m> {
    pub(super) fn new(makings: &'m dyn Makings) -> Self {
        Self { makings, shared: Shared::new() }
    }
}

impl Makings for Apart<'_> {
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        self.makings.model(name)
    }

    fn own_model(&self) -> Option<&str> {
        self.makings.own_model()
    }

    fn agents(&self) -> Option<&[String]> {
        self.makings.agents()
    }

    fn more_agents(&self) -> Option<&str> {
        self.makings.more_agents()
    }

    fn path(&self, path: &str) -> Result<PathBuf, String> {
        self.makings.path(path)
    }

    fn root(&self) -> PathBuf {
        self.makings.root()
    }

    fn cache(&self) -> Option<Arc<dyn Cache>> {
        self.makings.cache()
    }

    fn environment(&self) -> Environment {
        self.makings.environment()
    }

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn warn(&self, _: &str, _: String) {}
}
