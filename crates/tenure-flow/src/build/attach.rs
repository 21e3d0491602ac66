//! What a workflow adds to the agents of its chats.

use super::tools;
use crate::file::{AgentEntry, AgentKind, LoadedWorkflow, Replaced, VariablesFile, WorkflowFile};
use crate::lifecycle::{self, LifecycleTool, USER, platform_defaults};
use crate::message_hook;
use crate::output::Outputs;
use crate::people::AskPerson;
use crate::route::handoff::{HandoffRule, Source};
use crate::route::{Routing, Selector, Target};
use crate::variables::{DescribedSchema, Sqlite, Variables};
use crate::{StartupMode, route};
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_cards::build::{Attach, AttachHosts, Attached, AttachedEntry};
use tenure_cards::source::Span;
use tenure_cards::{Code, Diagnostic};
use tenure_core::hook::{Origin, Point, Points, hook};
use tenure_core::tool::Tool;

/// The points of a chat's scope: hooks there are the chat's own.
const CHAT: Points = Points::NONE.with(Point::BeforeChat).with(Point::AfterChat);

/// Every other point: hooks there are the agents'.
fn rest() -> Points {
    let rest = Points::ALL.iter().filter(|point| !CHAT.contains(*point));
    rest.fold(Points::NONE, Points::with)
}

/// Who takes part in the chats of a workflow, and what each of them gets beside what its card says.
pub(super) struct Parts {
    file: WorkflowFile,
    /// Stands for the chat itself.
    pub(super) host: Arc<str>,
    pub(super) has_user: bool,
    /// Picks speakers and judges conditions, if anybody has to.
    pub(super) selector: Option<Arc<str>>,
    /// What the project has in place of the platform's own lifecycle tools.
    replaced: Arc<Replaced>,
    /// The platform's lifecycle tools, then the workflow's.
    lifecycle: Arc<[LifecycleTool]>,
    /// What the agents share.
    pub(super) variables: Arc<Variables>,
    /// Which agent answers in which form.
    pub(super) outputs: Arc<Outputs>,
    /// What is wrong with the two.
    problems: Vec<String>,
    /// By agent that is a workflow: what runs its chats. Empty until there are flows to run.
    chats: BTreeMap<Arc<str>, Arc<dyn Tool>>,
}

impl Parts {
    pub(super) fn of(loaded: &LoadedWorkflow) -> Self {
        let file = loaded.workflow.clone();
        let routing = Routing::new(file.orchestrator.pattern).handoffs(file.handoffs.clone());
        let replaced = loaded.platform.clone();
        let mut lifecycle = platform_defaults(|name| replaced.named(name));
        lifecycle.extend(file.lifecycle.iter().cloned());
        let selector = routing
            .needs_selector()
            .then(|| format!("{}.selector", file.name.replace(' ', "_")).into());
        let mut problems = Vec::new();
        let variables = Arc::new(variables(loaded, &mut problems));
        let outputs = Outputs::new(file.outputs.clone()).unwrap_or_else(|wrong| {
            problems.extend(wrong.iter().map(ToString::to_string));
            Outputs::default()
        });
        Self {
            variables,
            outputs: Arc::new(outputs),
            problems,
            host: Self::host_of(&file.name).into(),
            has_user: has_user(&file),
            selector,
            replaced,
            lifecycle: lifecycle.into(),
            chats: BTreeMap::new(),
            file,
        }
    }

    /// The same with what runs the chats of agents that are workflows.
    pub(super) fn with_chats(&self, chats: BTreeMap<Arc<str>, Arc<dyn Tool>>) -> Self {
        Self {
            file: self.file.clone(),
            host: self.host.clone(),
            has_user: self.has_user,
            selector: self.selector.clone(),
            replaced: self.replaced.clone(),
            lifecycle: self.lifecycle.clone(),
            variables: self.variables.clone(),
            outputs: self.outputs.clone(),
            problems: self.problems.clone(),
            chats,
        }
    }

    /// The name of the agent that stands for the chats of a workflow.
    pub(super) fn host_of(workflow: &str) -> String {
        format!("{}.workflow", workflow.replace(' ', "_"))
    }

    /// Who decides who speaks.
    pub(super) fn routing(&self, loaded: &LoadedWorkflow) -> Routing {
        let file = &self.file;
        let mut routing = Routing::new(file.orchestrator.pattern)
            .handoffs(file.handoffs.clone())
            .declared(file.variables.definitions.iter().map(|it| it.name.as_str()));
        if let Some(selector) = &self.selector {
            routing = routing.selector(Selector::new(selector.clone()));
        }
        for agent in &file.agents {
            if let Some(limit) = agent.max_consecutive_auto_reply {
                routing = routing.reply_limit(agent.name.clone(), limit as usize);
            }
            let card = match &agent.kind {
                AgentKind::Card(card) => loaded.cards.card(card),
                AgentKind::Workflow(_) => None,
            };
            if let Some(description) = card.and_then(|card| card.description.as_deref()) {
                routing = routing.describe(agent.name.clone(), description);
            }
        }
        routing
    }

    /// What the chat itself gets.
    fn of_chat(&self, hosts: &AttachHosts<'_>) -> Attached {
        let mut attached = lifecycle::of_chat(&self.lifecycle, hosts);
        attached.problems.extend(self.replaced.problems.iter().cloned());
        let orchestrator = &self.file.orchestrator;
        // The loader has refused all of these; if one comes here, it is not passed over.
        attached.problems.extend(self.problems.iter().map(|problem| {
            let here = Span::at(0);
            Diagnostic::new(Code::CannotBeBuilt, &orchestrator.source, here, problem.clone())
        }));
        attached.extend(hosts.declared(&orchestrator.hooks, &orchestrator.source, CHAT));
        attached
    }

    /// What an agent that may speak gets.
    fn of_speaker(&self, agent: &AgentEntry, hosts: &AttachHosts<'_>) -> Attached {
        let name = &agent.name;
        let mut attached = lifecycle::of_agent(&self.lifecycle, name, hosts);
        attached.extend(message_hook::of_agent(&self.file.message_hooks, name, hosts.python));
        attached.extend(tools::of_agent(&self.file, agent, &self.variables, &self.outputs, hosts));
        if let Some(exposure) = self.variables.exposure(name) {
            let runs = "tells the model of the variables that it gets to see";
            attached.entries.push(AttachedEntry::new("context_variables", exposure, runs));
        }
        attached.tools.extend(self.chats.get(&**name).cloned());
        let orchestrator = &self.file.orchestrator;
        attached.extend(hosts.declared(&orchestrator.hooks, &orchestrator.source, rest()));
        attached
    }

    /// What the person's place gets.
    fn of_user(&self, hosts: &AttachHosts<'_>) -> Attached {
        let mut attached = lifecycle::of_agent(&self.lifecycle, USER, hosts);
        attached.extend(message_hook::of_agent(&self.file.message_hooks, USER, hosts.python));
        let asks = hook(AskPerson).origin(Origin::Platform);
        attached.entries.push(AttachedEntry::new("ask_person", asks, "asks the person"));
        attached
    }
}

impl Attach for Parts {
    fn attach(&self, agent: &str, hosts: &AttachHosts<'_>) -> Attached {
        if agent == &*self.host {
            return self.of_chat(hosts);
        }
        if agent == USER && self.has_user {
            return self.of_user(hosts);
        }
        match self.file.agent(agent) {
            Some(entry) => self.of_speaker(entry, hosts),
            None => Attached::new(),
        }
    }
}

/// The declared variables, with the files and databases of the project.
fn variables(loaded: &LoadedWorkflow, problems: &mut Vec<String>) -> Variables {
    let (file, project) = (&loaded.workflow, &loaded.cards.project);
    let VariablesFile { definitions, exposures, .. } = file.variables.clone();
    let mut variables = Variables::new(definitions, exposures, &project.root, &file.dir)
        .unwrap_or_else(|wrong| {
            problems.extend(wrong.iter().map(ToString::to_string));
            Variables::none()
        })
        .environ(loaded.cards.environ().clone());
    for (name, path) in &project.config.databases {
        variables = variables.database(name, Arc::new(Sqlite::new(path)));
    }
    let context = &project.config.context;
    variables
        .overviews(context.aware, context.concept_overview.clone(), context.schema_overview.clone())
        .described(described_schema(loaded))
}

/// The database that chats get to know: what the workflow says, else what the project says.
pub(super) fn described_schema(loaded: &LoadedWorkflow) -> DescribedSchema {
    let (file, context) = (&loaded.workflow.variables.schema, &loaded.cards.project.config.context);
    let database = file.database.clone().or_else(|| context.schema_database.clone());
    DescribedSchema { is_included: file.is_included || context.include_schema, database }
}

/// Whether a person takes part: the files say so, or somebody hands over to one.
fn has_user(file: &WorkflowFile) -> bool {
    let names_user =
        |rule: &HandoffRule| rule.target == Target::User || rule.source == Source::User;
    let orchestrator = &file.orchestrator;
    orchestrator.human_in_the_loop
        || orchestrator.startup_mode == StartupMode::UserDriven
        || (orchestrator.pattern == route::Pattern::Default && file.handoffs.iter().any(names_user))
}
