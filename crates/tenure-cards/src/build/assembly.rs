//! All agents of a run, in the order in which they start.

use super::agent::Workshop;
use super::hooks::{HookPlace, Hosts};
use super::makings::Supplies;
use super::memory::SharedMemory;
use super::{Attach, HookCatalog};
use super::{remote, servers};
use crate::card::Card;
use crate::check::Loaded;
use crate::diagnostic::Report;
use crate::team::ModelExplanation;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tenure_core::agent::{AgentRegistry, Blueprint};
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tenure_core::cache::Cache;
use tenure_core::event::EventBus;
use tenure_core::hook::Limit;
use tenure_core::message::History;
use tenure_core::model::Model;
use tenure_hooks::ready::Shared;
use tenure_hosts::mcp::{McpServers, McpView};
use tenure_hosts::{Environment, PythonHost};
use tenure_models::provider::Providers;

/// What a run says beside its cards.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    /// The model that every card uses in place of its own.
    pub(crate) model: Option<String>,
    pub(crate) catalog: HookCatalog,
    pub(crate) events: Option<EventBus>,
    pub(crate) asker: Option<SharedAsker>,
    /// Where models over the network come from; by default what the configurations say.
    pub(crate) providers: Option<Providers>,
    /// Who adds to what the cards say.
    pub(crate) attach: Vec<Arc<dyn Attach>>,
    /// What they remember across runs.
    pub(crate) memory: Option<SharedMemory>,
    /// Where answers are kept across runs.
    pub(crate) cache: Option<Arc<dyn Cache>>,
    /// What the hooks of all agents share.
    pub(crate) shared: Shared,
    /// Lists the files that decide over processes beside the cards, as a workflow's do.
    pub(crate) guarding: Option<Arc<dyn Fn() -> Vec<PathBuf> + Send + Sync>>,
    /// What the date is, if it is not today's.
    pub(crate) now: Option<SystemTime>,
    /// Models that agents without a card bring along, by the name of the agent.
    pub(crate) brought: BTreeMap<Arc<str>, Arc<dyn Model>>,
}

/// Somebody who answers for several agents.
#[derive(Clone)]
pub(crate) struct SharedAsker(pub(crate) Arc<dyn Asker>);

#[async_trait::async_trait]
impl Asker for SharedAsker {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        self.0.answer(ask).await
    }

    fn is_there(&self) -> bool {
        self.0.is_there()
    }
}

/// An agent that can be started.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) name: Arc<str>,
    /// Its card's place among those loaded.
    pub(crate) card: usize,
    pub(crate) blueprint: Blueprint,
    /// What it has said and heard when it starts.
    pub(crate) history: Option<History>,
    pub(crate) places: Vec<HookPlace>,
    /// The agents that it calls.
    pub(crate) children: Vec<Arc<str>>,
    /// The name of its model.
    pub(crate) model: String,
    /// Where its model is, if it is reached over the network.
    pub(crate) remote: Option<ModelExplanation>,
    /// What it sees of tool servers, if it uses any.
    pub(crate) view: Option<McpView>,
}

/// All agents of a run.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// Children before parents, then by name.
    pub(crate) agents: Vec<Built>,
    /// What was refused, and what means nothing.
    pub(crate) report: Report,
    /// What is not wrong with the cards, and keeps them from running here: keys and variables.
    pub(crate) needs: Report,
    /// Whether any of them needs Python.
    pub(crate) python: bool,
    /// The tool servers that they share.
    pub(crate) servers: McpServers,
}

impl Assembly {
    /// Builds every card. Executes nothing; what a card asks for and cannot have is in the report,
    /// and its agent is built without it, so that it can still be explained.
    pub(crate) fn new(
        loaded: &Loaded,
        settings: &Settings,
        python: &PythonHost,
        environment: &Environment,
    ) -> Self {
        let providers = settings.providers.clone().unwrap_or_else(|| loaded.providers());
        let catalog = settings.catalog.supplied(Supplies {
            root: loaded.project.root.clone(),
            providers: Some(providers.clone()),
            environment: environment.clone(),
            tool_limit: loaded.project.config.tool_limit.map(Limit::duration),
            shared: settings.shared.clone(),
            cache: settings.cache.clone(),
            agents: loaded.agent_names(),
            more_agents: loaded.more_agents(),
            commands: Some(loaded.commands.clone()),
        });
        let hosts = Hosts { python, environment, catalog: &catalog, commands: &loaded.commands };
        let (mut report, mut needs) = (Report::new(), Report::new());
        let servers = servers::connectable(loaded, environment, &mut report, &mut needs);
        let limits = servers.iter().map(|it| (it.name.clone(), it.start_limit)).collect();
        let servers = McpServers::new(servers, environment.clone());
        let mut workshop = Workshop {
            project: &loaded.project,
            user: &loaded.user,
            redactor: loaded.redactor(),
            settings,
            hosts,
            registry: Arc::new(AgentRegistry::new()),
            cards: loaded.cards.iter().map(|card| (card.name.clone(), card)).collect(),
            built: BTreeMap::new(),
            providers,
            servers: servers.clone(),
            start_limits: limits,
            views: BTreeMap::new(),
            report,
            needs,
            python: false,
        };
        let mut agents = Vec::new();
        for at in start_order(&loaded.cards) {
            if let Some(built) = workshop.build(&loaded.cards[at], at) {
                workshop.built.insert(built.name.clone(), built.blueprint.clone());
                agents.push(built);
            }
        }
        let Workshop { mut report, needs, python, providers, .. } = workshop;
        remote::check_aliases(loaded, &providers, &mut report);
        Self { agents, report, needs, python, servers }
    }
}

/// Children before parents; of those that could come next, the first by name. Cards that name each
/// other in a circle are left out: checking has refused them.
fn start_order(cards: &[Card]) -> Vec<usize> {
    let places: BTreeMap<&str, usize> =
        cards.iter().enumerate().map(|(at, card)| (&*card.name, at)).collect();
    let needs = |card: &Card| -> BTreeSet<usize> {
        card.references().iter().filter_map(|child| places.get(&*child.name)).copied().collect()
    };
    let mut waiting: BTreeMap<(&str, usize), BTreeSet<usize>> =
        cards.iter().enumerate().map(|(at, card)| ((&*card.name, at), needs(card))).collect();
    let mut order = Vec::with_capacity(cards.len());
    while let Some(&next) = waiting.iter().find(|(_, needs)| needs.is_empty()).map(|(key, _)| key) {
        waiting.remove(&next);
        for needs in waiting.values_mut() {
            needs.remove(&next.1);
        }
        order.push(next.1);
    }
    order
}
