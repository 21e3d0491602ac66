//! Hooks that cards name by `use`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tenure_core::hook::{AgentLifecycle, HookRegistry, IntoRegistration, Registration};

type Factory = dyn Fn(&Value) -> Result<Registration, String> + Send + Sync;

/// Rust hooks that cards may name by `use`, and configure by `with`.
///
/// A hook is made when a team is built, to be looked at, and again when it is started; whoever makes
/// it does nothing else.
///
/// ```
/// use tenure_cards::build::HookCatalog;
/// use tenure_core::hook::{self, Flow};
///
/// let catalog = HookCatalog::new().register_with("greet", |with| {
///     let word = with["word"].as_str().ok_or("`with` needs a text `word`")?.to_owned();
///     Ok(hook::hook(hook::before_agent(move |_, input| {
///         input.text = format!("{word}, {}", input.text);
///         Box::pin(async { Ok(Flow::Continue) })
///     })))
/// });
/// assert_eq!(catalog.names().collect::<Vec<_>>(), ["greet"]);
/// ```
#[derive(Clone, Default)]
pub struct HookCatalog {
    factories: BTreeMap<String, Arc<Factory>>,
}

/// Why a hook cannot be had.
#[derive(Debug)]
pub(super) enum CatalogError {
    Unknown,
    Refused(String),
}

impl HookCatalog {
    /// An empty catalog.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook that takes nothing by `with`.
    #[must_use]
    pub fn register(self, name: impl Into<String>, hook: impl IntoRegistration) -> Self {
        let registration = hook.into_registration();
        self.register_with(name, move |with| match with {
            Value::Null => Ok(registration.clone()),
            Value::Object(object) if object.is_empty() => Ok(registration.clone()),
            _ => Err("it takes nothing by `with`".to_owned()),
        })
    }

    /// Adds a hook that is made of what `with` says. The error says what is wrong with it.
    #[must_use]
    pub fn register_with(
        mut self,
        name: impl Into<String>,
        factory: impl Fn(&Value) -> Result<Registration, String> + Send + Sync + 'static,
    ) -> Self {
        self.factories.insert(name.into(), Arc::new(factory));
        self
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.factories.keys().map(String::as_str)
    }

    /// The hook of this name, made of what `with` says. The error says why there is none.
    pub fn hook(&self, name: &str, with: &Value) -> Result<Registration, String> {
        self.make(name, with).map_err(|error| match error {
            CatalogError::Unknown => {
                let known: Vec<_> = self.names().collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                format!("nothing is registered as `{name}`; registered are: {known}")
            }
            CatalogError::Refused(why) => format!("`{name}` cannot be made: {why}"),
        })
    }

    pub(super) fn make(&self, name: &str, with: &Value) -> Result<Registration, CatalogError> {
        let factory = self.factories.get(name).ok_or(CatalogError::Unknown)?;
        factory(with).map_err(CatalogError::Refused)
    }
}

impl From<&HookRegistry> for HookCatalog {
    fn from(registry: &HookRegistry) -> Self {
        let hooks = registry.names().filter_map(|name| Some((name, registry.find(name)?)));
        hooks.fold(Self::new(), |catalog, (name, hook): (_, Arc<dyn AgentLifecycle>)| {
            catalog.register(name, Registration::shared(hook))
        })
    }
}

impl fmt::Debug for HookCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
