//! Which hooks run, where they are declared, and what their failure means.

use crate::build::{Assembly, Built, HookPlace, selections, used_servers};
use crate::card::{Card, CardKind};
use crate::check::Loaded;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::agent::Entrant;
use tenure_core::hook::{Origin, Point, Policy};
use tenure_core::tool::Effect;
use tenure_hosts::mcp::McpSelection;

/// An agent and everything that is called in its life (G12).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Its name.
    pub agent: String,
    /// The type of its card.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its card's file.
    pub file: String,
    /// Its model, as it is named.
    pub model: String,
    /// Where its model is, if it is reached over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<ModelExplanation>,
    /// The tools that its model may ask for.
    pub tools: Vec<String>,
    /// What a crash means for a call under way, by tool. Agents are not among them: their own calls
    /// say it.
    pub effects: BTreeMap<String, Effect>,
    /// The confinement that its card asks for, by tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sandboxes: BTreeMap<String, String>,
    /// The tool servers that it uses. Their tools are known once they are connected.
    pub servers: Vec<ServerExplanation>,
    /// The agents that it calls.
    pub children: Vec<String>,
    /// The most model calls that a turn may make.
    pub max_steps: usize,
    /// Whether a turn sees the turns before it.
    pub use_history: bool,
    /// The points at which something is called, in the order of a life.
    pub points: Vec<PointExplanation>,
}

/// A model over the network.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelExplanation {
    /// Whose it is.
    pub provider: String,
    /// What the provider calls it.
    pub model: String,
    /// Where requests go.
    pub host: String,
    /// Whether that was chosen by the project and not by the user or the provider.
    pub host_by_project: bool,
    /// Where the key comes from; never the key.
    pub key: String,
}

/// What an agent takes of a tool server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerExplanation {
    /// Its name.
    pub name: String,
    /// What it is reached by: a command line or an address, as it is written.
    pub runs: String,
    /// The tools that are taken; none means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The resources that are taken; none means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
    /// The prompts that are taken; none means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Vec<String>>,
    /// The confinement that its file asks for, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

/// What is called at one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PointExplanation {
    /// The point.
    pub point: &'static str,
    /// What is called, in calling order.
    pub entries: Vec<EntryExplanation>,
}

/// One hook at one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EntryExplanation {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// The file and line that declare it; none for the platform's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// What runs: `file.py:function`, a command, a registered hook.
    pub runs: String,
    /// Its purpose, as its file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What its failure means at this point.
    pub policy: Policy,
    /// How long a call may take.
    #[serde(serialize_with = "as_text")]
    pub limit: Duration,
    /// Whether what is left of a startup or a shutdown cuts the limit: so it is at transitions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub within_budget: bool,
    /// The transition that it is called for, as in `bootstrapping -> idle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transition: Option<String>,
    /// Its condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// How often a failed call is made again.
    pub retries: u32,
    /// Whether it only observes.
    pub observes: bool,
    /// Whether it is called again when a run goes on in another process.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub again_on_resume: bool,
    /// The files that its commands are declared to write, as seen from its card.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The confinement of its process, if it is not the project's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The agent whose guard it is, if it comes along from one that calls this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inherited: Option<String>,
}

fn as_text<S: Serializer>(limit: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{limit:?}"))
}

/// The points in the order of a life.
const LIFE: [Point; 11] = [
    Point::OnStart,
    Point::BeforeChat,
    Point::BeforeAgent,
    Point::BeforeModel,
    Point::WrapModelCall,
    Point::AfterModel,
    Point::WrapToolCall,
    Point::AfterAgent,
    Point::AfterChat,
    Point::OnShutdown,
    Point::OnTransition,
];

/// Every agent of an assembly, in the order in which they start.
pub(super) fn explanations(assembly: &Assembly, loaded: &Loaded) -> Vec<Explanation> {
    assembly.agents.iter().map(|agent| explain(agent, assembly, loaded)).collect()
}

fn explain(built: &Built, assembly: &Assembly, loaded: &Loaded) -> Explanation {
    let card = &loaded.cards[built.card];
    let config = built.blueprint.config();
    let ancestors = ancestors(built, assembly);
    let points = LIFE.into_iter().filter_map(|point| {
        let own = built.blueprint.entrants(point);
        let own = own.iter().map(|entrant| entry(entrant, &built.places, None));
        let guards = ancestors.iter().flat_map(|parent| {
            let comes_along = |entrant: &Entrant| {
                entrant.policy == Policy::Deny
                    && point != Point::OnStart
                    && point != Point::BeforeChat
            };
            let guards = parent.blueprint.entrants(point);
            let guards = guards.into_iter().filter(comes_along);
            guards.map(|it| entry(&it, &parent.places, Some(&parent.name))).collect::<Vec<_>>()
        });
        let entries: Vec<_> = own.chain(guards).collect();
        (!entries.is_empty()).then_some(PointExplanation { point: point.as_str(), entries })
    });
    Explanation {
        agent: built.name.to_string(),
        kind: card.card_type().to_string(),
        file: card.source.path().display().to_string(),
        model: built.model.clone(),
        remote: built.remote.clone(),
        servers: servers(card, loaded),
        tools: built.blueprint.tools().iter().map(|tool| tool.name.to_string()).collect(),
        effects: effects(built),
        sandboxes: sandboxes(card),
        children: built.children.iter().map(ToString::to_string).collect(),
        max_steps: config.max_steps,
        use_history: config.use_history,
        points: points.collect(),
    }
}

fn effects(built: &Built) -> BTreeMap<String, Effect> {
    let is_agent = |name: &str| built.blueprint.is_composite(name);
    let own = built.blueprint.tools().iter().filter(|tool| !is_agent(&tool.name));
    own.map(|tool| (tool.name.to_string(), tool.effect)).collect()
}

fn sandboxes(card: &Card) -> BTreeMap<String, String> {
    let CardKind::Agent(agent) = &card.kind else { return BTreeMap::new() };
    let said = agent
        .function_tools
        .iter()
        .filter_map(|tool| Some((tool.spec.name.to_string(), tool.sandbox.as_ref()?.to_string())));
    said.collect()
}

fn servers(card: &Card, loaded: &Loaded) -> Vec<ServerExplanation> {
    let Some(mcp) = card.kind.mcp() else { return Vec::new() };
    let known = used_servers(loaded);
    let explained = |selection: McpSelection| ServerExplanation {
        name: selection.server.to_string(),
        runs: known.get(&selection.server).map(|server| server.written()).unwrap_or_default(),
        sandbox: known
            .get(&selection.server)
            .and_then(|it| it.sandbox.as_ref())
            .map(ToString::to_string),
        tools: selection.tools,
        resources: selection.resources,
        prompts: selection.prompts,
    };
    selections(mcp).into_iter().map(explained).collect()
}

/// Every agent that may call this one, directly or through others.
fn ancestors<'a>(built: &Built, assembly: &'a Assembly) -> Vec<&'a Built> {
    // Children come before their parents, so one pass from here on finds them all.
    let mut family = vec![built.name.clone()];
    let mut found = Vec::new();
    for agent in &assembly.agents {
        if agent.name != built.name && agent.children.iter().any(|child| family.contains(child)) {
            family.push(agent.name.clone());
            found.push(agent);
        }
    }
    found
}

fn entry(entrant: &Entrant, places: &[HookPlace], inherited: Option<&str>) -> EntryExplanation {
    let place = places.iter().find(|place| place.name == entrant.name);
    EntryExplanation {
        name: entrant.name.to_string(),
        origin: entrant.origin,
        declared: place.and_then(|place| place.declared.clone()),
        runs: place.map_or_else(|| entrant.name.to_string(), |place| place.runs.clone()),
        description: place.and_then(|place| place.description.as_deref().map(str::to_owned)),
        policy: entrant.policy,
        limit: entrant.limit,
        within_budget: entrant.within_budget,
        transition: place.and_then(|place| place.transition.clone()),
        when: place.and_then(|place| place.when.clone()),
        retries: place.map_or(0, |place| place.retries),
        observes: entrant.observes,
        again_on_resume: entrant.again_on_resume,
        writes: place.map(|place| place.writes.clone()).unwrap_or_default(),
        sandbox: place.and_then(|place| place.sandbox.clone()),
        inherited: inherited.map(str::to_owned),
    }
}
