//! From a workflow to its flow.

use super::Workflow;
use super::attach::Parts;
use super::builder::team;
use crate::Flow;
use crate::file::AgentKind;
use crate::lifecycle::USER;
use crate::nested::NestedFlow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_cards::TeamError;
use tenure_cards::team::Cast;
use tenure_core::agent::Blueprint;
use tenure_core::model::Model;
use tenure_core::tool::Tool;

/// A workflow that chats can be run of.
pub(super) struct Opened {
    pub(super) flow: Flow,
    pub(super) cast: Arc<Cast>,
}

impl Opened {
    pub(super) async fn new(workflow: &Workflow) -> Result<Self, TeamError> {
        let mut flows = BTreeMap::new();
        for nested in &workflow.nested {
            flows.insert(nested.name().to_owned(), nested.open_boxed().await?);
        }
        let file = &workflow.loaded.workflow;
        let mut chats: BTreeMap<Arc<str>, Arc<dyn Tool>> = BTreeMap::new();
        let mut models: BTreeMap<Arc<str>, Arc<dyn Model>> = BTreeMap::new();
        for entry in &file.agents {
            if let AgentKind::Workflow(name) = &entry.kind {
                let flow = flows.get(&**name).ok_or_else(|| missing(name))?;
                let inner = workflow.nested.iter().find(|nested| nested.name() == &**name);
                let nested = NestedFlow::new(flow.clone());
                let nested = match inner.map(|inner| shared(&workflow.parts, &inner.parts)) {
                    Some((inputs, outputs)) => nested.inputs(inputs).outputs(outputs),
                    None => nested,
                };
                let (model, tool) = nested.parts();
                chats.insert(entry.name.clone(), tool);
                models.insert(entry.name.clone(), model);
            }
        }
        let parts = Arc::new(workflow.parts.with_chats(chats));
        let team = team(&workflow.loaded, &workflow.settings, &parts, &models);
        let cast = Arc::new(team.cast().await?);
        let flow = build(workflow, &cast, &flows)
            .map_err(|error| TeamError::start(error.to_string(), Some(error)))?;
        Ok(Self { flow, cast })
    }
}

fn build(
    workflow: &Workflow,
    cast: &Arc<Cast>,
    flows: &BTreeMap<String, Flow>,
) -> Result<Flow, tenure_core::Error> {
    let (file, parts) = (&workflow.loaded.workflow, &workflow.parts);
    let blueprint = |name: &str| -> Result<Blueprint, tenure_core::Error> {
        cast.blueprint(name)
            .cloned()
            .ok_or_else(|| tenure_core::Error::invalid(format!("the agent `{name}` was not built")))
    };
    let orchestrator = &file.orchestrator;
    let mut flow = Flow::builder(file.name.clone())
        .host(blueprint(&parts.host)?)
        .router(parts.routing(&workflow.loaded).router()?)
        .max_turns(orchestrator.max_turns)
        .seed(orchestrator.seed)
        .variables(parts.variables.clone())
        .outputs(parts.outputs.clone())
        .startup_mode(orchestrator.startup_mode)
        .error_strategy(orchestrator.error_strategy);
    for entry in &file.agents {
        let name = &entry.name;
        flow = flow.agent_with_history(blueprint(name)?, cast.history(name).cloned());
    }
    if let Some(selector) = &parts.selector {
        flow = flow.helper(blueprint(selector)?);
    }
    if parts.has_user {
        flow = flow.user_agent(blueprint(USER)?);
    }
    if let Some(initial) = &orchestrator.initial_agent {
        flow = flow.initial_agent(initial.clone());
    }
    if let Some(message) = &orchestrator.initial_message {
        flow = flow.initial_message(message);
    }
    if let Some(message) = &orchestrator.initial_message_to_user {
        flow = flow.greeting(message);
    }
    for hidden in file.hidden() {
        flow = flow.hide(hidden.clone());
    }
    if let Some(bus) = &workflow.settings.bus {
        flow = flow.events(bus);
    }
    if let Some(asker) = &workflow.settings.asker {
        flow = flow.on_ask(asker.clone());
    }
    let joined = cast.clone();
    flow = flow.prepare(move |agent, chat| joined.join(agent, chat));
    let left = cast.clone();
    flow = flow.farewell(move |chat| {
        let (cast, chat) = (left.clone(), chat.to_owned());
        Box::pin(async move { cast.leave(&chat).await })
    });
    for journey in &file.journeys {
        flow = flow.journey(journey.clone());
    }
    for nested in flows.values() {
        flow = flow.workflow(nested.clone());
    }
    flow.build()
}

/// What both workflows declare under one name is one thing to both, as far as each lets it: the inner
/// chat begins with what it may be given, and what both may write comes back.
fn shared(outer: &Parts, inner: &Parts) -> (Vec<String>, Vec<String>) {
    let (outer, inner) = (&outer.variables, &inner.variables);
    let names = inner.definitions().iter().map(|it| it.name.clone());
    let inputs: Vec<_> = names.filter(|it| outer.get(it).is_some() && inner.accepts(it)).collect();
    let outputs = inputs.iter().filter(|it| outer.accepts(it)).cloned().collect();
    (inputs, outputs)
}

fn missing(name: &str) -> TeamError {
    TeamError::start(format!("the workflow `{name}` was not loaded"), None)
}
