//! What a workflow adds to the agents of its cards.
//!
//! A card says what an agent is; a workflow says what it is in its chats: hooks that stand between
//! the platform's and the card's, and tools. They are built where the card's own are, with the same
//! hosts, so that one chain has all of them and one explanation shows them.

use super::HookCatalog;
use super::hooks::{
    Entries, HookPlace, Hosts, line_of, restricted, shown_from, transition, written,
};
use crate::diagnostic::{Diagnostic, Report};
use crate::hook::CardHooks;
use crate::source::Source;
use crate::trust::CommandChecks;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::AgentBuilder;
use tenure_core::context::ToolCx;
use tenure_core::hook::{Origin, Points, Registration};
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_hosts::{Environment, PythonHost};

/// Adds to the agents of cards. See [`TeamBuilder::attach`](crate::team::TeamBuilder::attach).
pub trait Attach: Send + Sync + 'static {
    /// What the agent of this name gets beside what its card says. Called when the agents are built
    /// to be looked at, and again when they are built to run; it executes nothing.
    fn attach(&self, agent: &str, hosts: &AttachHosts<'_>) -> Attached;
}

/// What hooks and tools in other processes are made with.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct AttachHosts<'a> {
    /// Runs Python.
    pub python: &'a PythonHost,
    /// What processes get to see of our environment.
    pub environment: &'a Environment,
    /// Hooks by name.
    pub catalog: &'a HookCatalog,
    /// Says of commands whether they may be started.
    pub commands: &'a CommandChecks,
}

impl AttachHosts<'_> {
    /// The hooks that a file of a workflow declares, as entries of origin workflow, at these points
    /// alone. Nothing, if none of them has any.
    pub fn declared(&self, hooks: &CardHooks, source: &Arc<Source>, points: Points) -> Attached {
        let mut made = Attached::new();
        let mut report = Report::new();
        let mut any = false;
        for declared in &hooks.declared {
            let mut entries = Entries::default();
            let Self { python, environment, catalog, commands } = *self;
            let hosts = Hosts { python, environment, catalog, commands };
            let one = entries.one(declared, source, Origin::Workflow, &hosts, &mut report);
            let Some((registration, runs)) = one else { continue };
            let registration = restricted(registration, points);
            made.needs.append(&mut entries.needs);
            if !registration.points().is_empty() {
                any = true;
                made.python |= entries.python;
            }
            made.entries.push(AttachedEntry {
                registration,
                name: declared.name.clone(),
                declared: Some(line_of(source, declared.span.start)),
                runs,
                transition: transition(&declared.on),
                when: declared.when.as_ref().map(|when| when.expression.clone()),
                retries: declared.retries,
                description: None,
                writes: written(declared),
            });
        }
        if !any {
            made.entries.clear();
        }
        made.problems.extend(report.iter().cloned());
        made
    }
}

/// What an agent gets beside what its card says.
#[derive(Default)]
#[non_exhaustive]
pub struct Attached {
    /// Hooks, in the order in which they are registered.
    pub entries: Vec<AttachedEntry>,
    /// Tools that its model may ask for.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Whether any of it needs Python.
    pub python: bool,
    /// The time that the ends of a scope need together, if it is more than they have by default.
    pub ends: Option<Duration>,
    /// What is wrong with it.
    pub problems: Vec<Diagnostic>,
    /// What is not wrong with it, and keeps it from running here.
    pub needs: Vec<Diagnostic>,
}

/// A hook, and what is to be said of it.
#[derive(Clone)]
#[non_exhaustive]
pub struct AttachedEntry {
    /// The hook. Its origin and its order decide where it stands.
    pub registration: Registration,
    /// How it is called in reports; the name of its entry.
    pub name: Arc<str>,
    /// The file and line that declare it; none for the platform's own.
    pub declared: Option<String>,
    /// What runs.
    pub runs: String,
    /// The transition that it is called for, as in `bootstrapping -> idle`.
    pub transition: Option<String>,
    /// Its condition.
    pub when: Option<String>,
    /// How often a failed call is made again.
    pub retries: u32,
    /// Its purpose, as its file says.
    pub description: Option<Arc<str>>,
    /// The files that its commands are declared to write, as seen from where it is declared.
    pub writes: Vec<String>,
}

impl AttachedEntry {
    /// A hook under a name.
    pub fn new(
        name: impl Into<Arc<str>>,
        registration: Registration,
        runs: impl Into<String>,
    ) -> Self {
        let name = name.into();
        Self {
            registration: registration.named(name.clone()),
            name,
            declared: None,
            runs: runs.into(),
            transition: None,
            when: None,
            retries: 0,
            description: None,
            writes: Vec::new(),
        }
    }

    /// Says where it is declared, as `file:line`.
    #[must_use]
    pub fn declared(mut self, place: impl Into<String>) -> Self {
        self.declared = Some(place.into());
        self
    }

    /// Says its condition.
    #[must_use]
    pub fn when(mut self, condition: Option<String>) -> Self {
        self.when = condition;
        self
    }

    /// Says how often a failed call is made again.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Says what it is for.
    #[must_use]
    pub fn description(mut self, description: Option<Arc<str>>) -> Self {
        self.description = description;
        self
    }

    /// Says which files its commands are declared to write, as seen from a folder.
    #[must_use]
    pub fn writes(mut self, files: &[PathBuf], dir: &Path) -> Self {
        self.writes = shown_from(files, dir);
        self
    }
}

impl Attached {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all that another has.
    pub fn extend(&mut self, other: Self) {
        self.entries.extend(other.entries);
        self.tools.extend(other.tools);
        self.python |= other.python;
        self.ends = self.ends.max(other.ends);
        self.problems.extend(other.problems);
    }
}

impl<'a> Hosts<'a> {
    pub(super) fn for_attaching(&self) -> AttachHosts<'a> {
        let Self { python, environment, catalog, commands } = *self;
        AttachHosts { python, environment, catalog, commands }
    }
}

impl Entries {
    /// Adds what was attached, and gives what is wrong with it.
    pub(super) fn attach(
        &mut self,
        attached: Attached,
        mut builder: AgentBuilder,
    ) -> (AgentBuilder, Vec<Diagnostic>) {
        self.python |= attached.python;
        self.needs.extend(attached.needs);
        if let Some(ends) = attached.ends {
            let limits = &mut builder.config_mut().limits;
            limits.ends = limits.ends.max(ends);
        }
        for entry in attached.entries {
            self.registrations.push(entry.registration);
            self.places.push(HookPlace {
                name: entry.name,
                declared: entry.declared,
                runs: entry.runs,
                transition: entry.transition,
                when: entry.when,
                retries: entry.retries,
                description: entry.description,
                writes: entry.writes,
                sandbox: None,
            });
        }
        for tool in attached.tools {
            builder = builder.tool(Shared(tool));
        }
        (builder, attached.problems)
    }
}

/// A tool that several agents have.
struct Shared(Arc<dyn Tool>);

#[async_trait]
impl Tool for Shared {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        self.0.call(cx, arguments).await
    }

    fn cancel_grace(&self) -> Duration {
        self.0.cancel_grace()
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        self.0.as_any()
    }

    fn is_composite(&self) -> bool {
        self.0.is_composite()
    }
}

impl fmt::Debug for AttachHosts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttachHosts").field("python", self.python).finish_non_exhaustive()
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| tool.spec().name).collect();
        f.debug_struct("Attached")
            .field("entries", &self.entries)
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AttachedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttachedEntry")
            .field("name", &self.name)
            .field("declared", &self.declared)
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}
