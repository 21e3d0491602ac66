//! Whose calls a limit or a breaker is for.

use super::names::Names;
use crate::ready::{Makings, Shared};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::context::TurnCx;
use tenure_core::model::ModelRequest;

/// Which model calls count together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// All of the agent's.
    #[default]
    Agent,
    /// Those to the models of one provider: what stands before the first `.`, `:` or `/` of a
    /// model's name.
    Provider,
    /// Those to one model.
    Model,
}

/// Where a model call counts.
pub(super) fn key_of_model(per: Per, cx: TurnCx<'_>, request: &ModelRequest) -> String {
    let name = request.model().unwrap_or(cx.agent().model()).name();
    match (per, &request.params.model) {
        (Per::Agent, _) => String::new(),
        (Per::Provider, _) => name.split(['.', ':', '/']).next().unwrap_or(name).to_owned(),
        (Per::Model, None) => name.to_owned(),
        (Per::Model, Some(of)) => format!("{name} {of}"),
    }
}

/// Where a tool call counts: by itself. No name of a model begins like this.
pub(super) fn key_of_tool(name: &str) -> String {
    format!("tool {name}")
}

/// One of each for every key, made when it is first asked for.
pub(super) struct Parts<T> {
    parts: Mutex<HashMap<String, Arc<T>>>,
}

impl<T> Parts<T> {
    pub(super) fn new() -> Self {
        Self { parts: Mutex::default() }
    }

    pub(super) fn part(&self, key: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts.get(key) {
            return part.clone();
        }
        let made = Arc::new(make());
        parts.insert(key.to_owned(), made.clone());
        made
    }
}

/// What hooks of one kind count by, alone or together with others.
pub(super) struct Group<S, T> {
    pub(super) settings: S,
    pub(super) parts: Parts<T>,
}

impl<S: fmt::Debug, T> fmt::Debug for Group<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<S, T> Group<S, T>
where
    S: Clone + PartialEq + Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    pub(super) fn alone(settings: S) -> Arc<Self> {
        Arc::new(Self { settings, parts: Parts::new() })
    }

    /// The group of this name. What the first of its hooks says counts for all.
    pub(super) fn named(
        kind: &'static str,
        shared: &Shared,
        name: &str,
        settings: &S,
    ) -> Arc<Self> {
        shared.part(kind, name, || Self { settings: settings.clone(), parts: Parts::new() })
    }

    /// The same for a file, which is told if another one says something else.
    pub(super) fn of_file(
        kind: &'static str,
        makings: &dyn Makings,
        name: &str,
        settings: &S,
    ) -> Arc<Self> {
        let group = Self::named(kind, makings.shared(), name, settings);
        if group.settings != *settings {
            let what = format!("another hook that shares `{name}` has other numbers, which count");
            makings.warn("shared", what);
        }
        group
    }
}

/// Which calls a limit is for.
#[derive(Clone, Debug)]
pub(super) struct Which {
    pub(super) model: bool,
    pub(super) tools: Names,
    pub(super) per: Per,
}

impl Default for Which {
    fn default() -> Self {
        Self { model: true, tools: Names::default(), per: Per::Agent }
    }
}
