//! A workflow that is whole.

use super::WorkflowBuilder;
use super::attach::Parts;
use super::builder::Settings;
use super::explain::{self, WorkflowExplanation};
use super::open::Opened;
use crate::Flow;
use crate::file::LoadedWorkflow;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_cards::team::Explanation;
use tenure_cards::{Report, Team, TeamError};

/// A workflow whose files are good, ready to be opened.
///
/// Dropping it ends nothing that runs: chats belong to the [`Flow`].
pub struct Workflow {
    pub(super) loaded: LoadedWorkflow,
    pub(super) settings: Settings,
    pub(super) parts: Arc<Parts>,
    /// What was built to be looked at. Nothing of it is ever started.
    plan: Team,
    pub(super) nested: Vec<Workflow>,
    warnings: Report,
    opened: Mutex<Option<Arc<Opened>>>,
}

impl Workflow {
    /// Starts building a workflow of these files.
    pub fn builder(loaded: LoadedWorkflow) -> WorkflowBuilder {
        WorkflowBuilder::new(loaded)
    }

    pub(super) fn new(
        loaded: LoadedWorkflow,
        settings: Settings,
        parts: Arc<Parts>,
        plan: Team,
        nested: Vec<Workflow>,
        warnings: Report,
    ) -> Self {
        Self { loaded, settings, parts, plan, nested, warnings, opened: Mutex::new(None) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.loaded.workflow.name
    }

    /// The files that it is made of.
    pub fn loaded(&self) -> &LoadedWorkflow {
        &self.loaded
    }

    /// What checking and building had to say: warnings only, or there would be no workflow.
    pub fn warnings(&self) -> &Report {
        &self.warnings
    }

    /// Everything that is called in its chats, in order (G12). Needs no opening.
    pub fn explain(&self) -> WorkflowExplanation {
        let agents: Vec<Explanation> = self
            .plan
            .agents()
            .into_iter()
            .filter_map(|name| self.plan.explain(name).ok())
            .collect();
        explain::explanation(&self.loaded, &agents)
    }

    /// The workflows that it names.
    pub fn nested(&self) -> &[Workflow] {
        &self.nested
    }

    /// The names of the tools that its agents have, those of nested workflows too, sorted. Those of
    /// MCP servers are not among them: they are known once a server is connected.
    pub fn tools(&self) -> Vec<Arc<str>> {
        let own = self.plan.tools().into_iter();
        let all: BTreeSet<_> = own.chain(self.nested.iter().flat_map(Workflow::tools)).collect();
        all.into_iter().collect()
    }

    /// Whether a tool of this name may come from a tool server of the workflow, once it is
    /// connected.
    pub fn may_come(&self, tool: &str) -> bool {
        self.plan.may_come(tool) || self.nested.iter().any(|nested| nested.may_come(tool))
    }

    /// The flow, to run chats of. Looks for Python, if anything needs it; starts no agent. Opening
    /// it again gives the same flow.
    pub async fn open(&self) -> Result<Flow, TeamError> {
        self.open_boxed().await
    }

    /// Workflows contain workflows, so this is a future that contains itself.
    pub(super) fn open_boxed(&self) -> BoxFuture<'_, Result<Flow, TeamError>> {
        Box::pin(async {
            if let Some(opened) = &*self.opened() {
                return Ok(opened.flow.clone());
            }
            let opened = Arc::new(Opened::new(self).await?);
            // Of two at the same moment one counts; the other has started nothing.
            let kept = self.opened().get_or_insert(opened).flow.clone();
            Ok(kept)
        })
    }

    /// How many Python workers run now, if it is open and needs any.
    pub fn workers(&self) -> Option<usize> {
        let opened = self.opened().clone()?;
        opened.cast.python().map(|python| python.processes().len())
    }

    /// Cancels every chat that goes on.
    pub fn cancel(&self) {
        if let Some(opened) = &*self.opened() {
            opened.flow.cancel();
        }
        self.nested.iter().for_each(Workflow::cancel);
    }

    /// Cancels every chat, waits until all of them are over, and ends the Python workers. The
    /// workflow can be opened again afterwards.
    pub async fn shutdown(&self) {
        self.shutdown_boxed().await;
    }

    fn shutdown_boxed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let opened = self.opened().take();
            if let Some(opened) = opened {
                opened.flow.cancel();
                opened.flow.settled().await;
                opened.cast.shutdown().await;
            }
            for nested in &self.nested {
                nested.shutdown_boxed().await;
            }
        })
    }

    fn opened(&self) -> MutexGuard<'_, Option<Arc<Opened>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Workflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workflow")
            .field("name", &self.name())
            .field("agents", &self.plan.agents())
            .finish_non_exhaustive()
    }
}
