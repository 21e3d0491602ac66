//! Hooks that cards name by `use`.

use super::makings::{HookMakings, HookSite, Said, Supplies};
use crate::feature::Feature;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tenure_core::hook::{AgentLifecycle, HookRegistry, IntoRegistration, Registration};
use tenure_hooks::ready::{self, Refusal};

type Factory = dyn Fn(&Value) -> Result<Registration, String> + Send + Sync;

/// Rust hooks that cards may name by `use`, and configure by `with`: those that are registered here,
/// and the [ready-made](tenure_hooks::ready) ones.
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
///         input.content.map_text(|text| format!("{word}, {text}"));
///         Box::pin(async { Ok(Flow::Continue) })
///     })))
/// });
/// assert_eq!(catalog.names().collect::<Vec<_>>(), ["greet"]);
/// ```
#[derive(Clone, Default)]
pub struct HookCatalog {
    factories: BTreeMap<String, Arc<Factory>>,
    supplies: Supplies,
}

/// Why a hook cannot be had.
#[derive(Debug)]
pub(super) enum CatalogError {
    Unknown,
    /// It is a ready-made one, and this build has none.
    NotBuilt,
    Refused(String),
    /// Never nothing.
    Options(Vec<Refusal>),
}

/// A hook that was made, and what is to be said of it.
pub(super) struct Made {
    pub(super) registration: Registration,
    pub(super) said: Vec<Said>,
}

impl HookCatalog {
    /// A catalog with no hooks but the ready-made ones.
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

    /// Adds a hook that is made of what `with` says. The error says what is wrong with it. It stands
    /// for a ready-made hook of the same name.
    #[must_use]
    pub fn register_with(
        mut self,
        name: impl Into<String>,
        factory: impl Fn(&Value) -> Result<Registration, String> + Send + Sync + 'static,
    ) -> Self {
        self.factories.insert(name.into(), Arc::new(factory));
        self
    }

    /// The names of those that are registered, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.factories.keys().map(String::as_str)
    }

    /// Every name that a file may use.
    pub(super) fn usable(&self) -> impl Iterator<Item = &str> {
        self.names().chain(ready::all().map(|(_, hook)| hook.name()))
    }

    /// The hook of this name, made of what `with` says. The error says why there is none.
    pub fn hook(&self, name: &str, with: &Value) -> Result<Registration, String> {
        let site =
            HookSite { dir: self.supplies.root(), writes: &[], own_model: None, sandbox: None };
        let made = self.make(name, with, site);
        made.map(|made| made.registration).map_err(|error| match error {
            CatalogError::Unknown => {
                let near = crate::nearest(name, self.usable());
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`tenure hooks` lists those that there are".to_owned(),
                };
                format!("nothing is registered as `{name}`; {help}")
            }
            CatalogError::NotBuilt => {
                let what = format!("the hook `{name}`");
                format!("{}; {}", Feature::Hooks.missing(&what), Feature::Hooks.help())
            }
            CatalogError::Refused(why) => format!("`{name}` cannot be made: {why}"),
            CatalogError::Options(refusals) => {
                let why: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                format!("`{name}` cannot be made: {}", why.join("; "))
            }
        })
    }

    /// The same catalog, with what the ready-made hooks are made with.
    pub(super) fn supplied(&self, supplies: Supplies) -> Self {
        Self { factories: self.factories.clone(), supplies }
    }

    /// The hook of this name, as a file in `dir` configures it for an agent with this model.
    pub(super) fn make(
        &self,
        name: &str,
        with: &Value,
        site: HookSite<'_>,
    ) -> Result<Made, CatalogError> {
        if let Some(factory) = self.factories.get(name) {
            let registration = factory(with).map_err(CatalogError::Refused)?;
            return Ok(Made { registration, said: Vec::new() });
        }
        let Some(ready) = ready::find(name) else {
            return Err(match ready::left_out(name) {
                Some(_) => CatalogError::NotBuilt,
                None => CatalogError::Unknown,
            });
        };
        let makings = HookMakings::new(&self.supplies, site);
        let registration = ready.make_or_all(with, &makings).map_err(CatalogError::Options)?;
        Ok(Made { registration, said: makings.into_said() })
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
