//! A cache as files ask for it.

use super::{ENTRIES, EXPIRES, Kept, PATIENCE, ResponseCache};
use crate::ready::{About, Makings, Options, Refusal, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tenure_core::hook::{IntoRegistration, Registration};

/// Where answers are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Where {
    /// In the process: they are gone with it.
    #[default]
    Memory,
    /// In the project's store: other processes have them, too.
    Store,
}

/// Whose answers they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Scope {
    /// Each agent has its own, and shares them with its clones.
    #[default]
    Agent,
    /// Every agent of the project with this scope.
    Shared,
}

/// What `cache` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::calls) struct CacheOptions {
    /// How long an answer is kept.
    expires: Time,
    /// Where answers are kept: `memory`, or `store`, which outlives the process.
    r#where: Where,
    /// Whose they are: `agent`, or `shared` among all agents that say so. The model, the instruction
    /// and the tools have to be the same in any case.
    scope: Scope,
    /// The most answers that are kept in memory: 1024. The one that was not asked for the longest
    /// time goes first.
    #[schemars(range(min = 1))]
    entries: Option<usize>,
    /// Whether answers that call tools are kept. The tools are called again with every hit.
    tool_calls: bool,
    /// How long the cache may take before it is passed over, and the call made.
    timeout: Time,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            expires: Time(EXPIRES),
            r#where: Where::default(),
            scope: Scope::default(),
            entries: None,
            tool_calls: false,
            timeout: Time(PATIENCE),
        }
    }
}

impl CacheOptions {
    fn kept(&self, makings: &dyn Makings) -> Result<Arc<Kept>, Refusal> {
        let is_shared = self.scope == Scope::Shared;
        let entries = self.entries.unwrap_or(ENTRIES);
        match self.r#where {
            _ if self.entries == Some(0) => {
                Err(Refusal::new("entries", "a cache of no answers keeps none; give at least 1"))
            }
            Where::Memory if is_shared => {
                let make = || Kept::in_memory(entries);
                let kept = makings.shared().part("cache", "memory", make);
                if let Some(most) = kept.entries.filter(|most| *most != entries) {
                    let message = format!(
                        "the shared cache holds {most} answers, as whoever came first says; give \
                         all of them the same number"
                    );
                    makings.warn("entries", message);
                }
                Ok(kept)
            }
            Where::Memory => Ok(Arc::new(Kept::in_memory(entries))),
            Where::Store if self.entries.is_some() => {
                let message = "only a cache in memory takes it; the store has a bound of its own";
                Err(Refusal::new("entries", message))
            }
            Where::Store => {
                let cache = makings.cache().ok_or_else(|| {
                    let message = "there is no store here that could keep answers; use `memory`, \
                                   or run with a store";
                    Refusal::new("where", message)
                })?;
                let make = || Kept::new(cache, None);
                match is_shared {
                    true => Ok(makings.shared().part("cache", "store", make)),
                    false => Ok(Arc::new(make())),
                }
            }
        }
    }
}

impl Options for CacheOptions {
    const ABOUT: About = About {
        name: "cache",
        summary: "Gives the answer again that a model gave to the same request before.",
        covers: &["UC-3.3"],
        peers: &[],
        example: r#"{ "expires": "10m", "entries": 500 }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let cache = ResponseCache {
            kept: self.kept(makings)?,
            expires: Some(self.expires.0),
            patience: self.timeout.0,
            is_shared: self.scope == Scope::Shared,
            tool_calls: self.tool_calls,
        };
        Ok(cache.into_registration())
    }
}
