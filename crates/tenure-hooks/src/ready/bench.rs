//! What hooks are made with outside of a project.

use super::{Makings, Shared};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::cache::Cache;
use tenure_core::model::Model;
use tenure_process::Environment;

/// What hooks are made with outside of a project: models by name, a folder, a cache.
///
/// It has the model `passthrough`, which says what it hears.
#[derive(Default)]
pub struct Bench {
    models: BTreeMap<String, Arc<dyn Model>>,
    own: Option<String>,
    agents: Option<Vec<String>>,
    root: Option<PathBuf>,
    cache: Option<Arc<dyn Cache>>,
    shared: Shared,
    warnings: RefCell<Vec<String>>,
}

impl Bench {
    /// A bench with no model but `passthrough`, at the working folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model.
    #[must_use]
    pub fn with_model(mut self, name: impl Into<String>, model: impl Model) -> Self {
        self.models.insert(name.into(), Arc::new(model));
        self
    }

    /// Says which model the agent itself uses.
    #[must_use]
    pub fn own(mut self, name: impl Into<String>) -> Self {
        self.own = Some(name.into());
        self
    }

    /// Says which agents will be there, and no others. By default nobody knows.
    #[must_use]
    pub fn agents<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
        names.sort();
        self.agents = Some(names);
        self
    }

    /// The folder that paths start from, and stay beneath.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// A cache that outlives the process.
    #[must_use]
    pub fn with_cache(mut self, cache: impl Cache) -> Self {
        self.cache = Some(Arc::new(cache));
        self
    }

    /// What hooks have warned of so far.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }
}

impl Makings for Bench {
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        if let Some(model) = self.models.get(name) {
            return Ok(model.clone());
        }
        if name == "passthrough" {
            return Ok(Arc::new(Echo));
        }
        let known: Vec<_> = self.models.keys().map(String::as_str).collect();
        Err(format!("there is no model `{name}`; there are: passthrough {}", known.join(", ")))
    }

    fn own_model(&self) -> Option<&str> {
        self.own.as_deref()
    }

    fn agents(&self) -> Option<&[String]> {
        self.agents.as_deref()
    }

    fn path(&self, path: &str) -> Result<PathBuf, String> {
        let is_beneath = |path: &Path| {
            path.components().all(|part| {
                matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir)
            })
        };
        let path = Path::new(path);
        match is_beneath(path) {
            true => Ok(Makings::root(self).join(path)),
            false => Err("it leads out of the folder that hooks may use".to_owned()),
        }
    }

    fn root(&self) -> PathBuf {
        self.root.clone().unwrap_or_else(|| PathBuf::from("."))
    }

    fn cache(&self) -> Option<Arc<dyn Cache>> {
        self.cache.clone()
    }

    fn environment(&self) -> Environment {
        Environment::new()
    }

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn warn(&self, field: &str, message: String) {
        self.warnings.borrow_mut().push(format!("{field}: {message}"));
    }
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("models", &self.models.keys()).finish_non_exhaustive()
    }
}

/// Says what it hears.
struct Echo;

#[async_trait::async_trait]
impl Model for Echo {
    async fn call(
        &self,
        request: &tenure_core::model::ModelRequest,
        _: tenure_core::context::ModelCx<'_>,
    ) -> Result<tenure_core::model::ModelResponse, tenure_core::model::ModelError> {
        let said = request.messages.last().map(|last| last.text().to_owned());
        Ok(tenure_core::model::ModelResponse::text(said.unwrap_or_default()))
    }

    fn name(&self) -> &str {
        "passthrough"
    }
}
