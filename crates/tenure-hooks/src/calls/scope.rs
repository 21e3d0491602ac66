//! Whose calls a limit or a breaker is for.

use super::names::Names;
use crate::ready::{Makings, Refusal, Shared};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::context::TurnCx;
use tenure_core::hook::{Point, Points, Registration};
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
pub(super) fn key_of_model<'a>(
    per: Per,
    cx: TurnCx<'a>,
    request: &'a ModelRequest,
) -> Cow<'a, str> {
    if per == Per::Agent {
        return Cow::Borrowed("");
    }
    let name = request.model().unwrap_or(cx.agent().model()).name();
    match (per, &request.params.model) {
        (Per::Model, Some(of)) => Cow::Owned(format!("{name} {of}")),
        (Per::Provider, _) => name.split(['.', ':', '/']).next().unwrap_or(name).into(),
        _ => name.into(),
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

impl Which {
    /// The same as a file says it, for a limit of so many calls, if there is anything to be limited.
    pub(super) fn of_file(
        calls: usize,
        model: bool,
        tools: Vec<String>,
        per: Per,
    ) -> Result<Self, Refusal> {
        if !(1..=1_000_000).contains(&calls) {
            return Err(Refusal::new("calls", format!("give 1 to 1000000 calls, and not {calls}")));
        }
        if !model && tools.is_empty() {
            return Err(Refusal::new("tools", "with `model: false`, name a tool to be limited"));
        }
        Ok(Self { model, tools: Names::new(tools), per })
    }

    /// Places a limit: within whatever makes attempts or asks a person, around what is limited, and
    /// only where there is something to limit.
    pub(super) fn around(&self, registration: Registration) -> Registration {
        let model = self.model.then_some(Point::WrapModelCall);
        let tool = (!self.tools.is_empty()).then_some(Point::WrapToolCall);
        let points: Points = model.into_iter().chain(tool).collect();
        let outer =
            ["cache", "fallback", "retry", "breaker", "tool_errors", "approval", "tool_retry"];
        let registration = registration.only(points).outside("timeout");
        outer.into_iter().fold(registration, Registration::inside)
    }
}
