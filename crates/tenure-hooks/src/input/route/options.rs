//! What `route` takes by `with`.

use super::{ATTEMPTS, PROMPT, Route, To, Way};
use crate::ready::{About, Makings, ModelName, Options, Pattern, Refusal, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use tenure_core::hook::{IntoRegistration, Registration};

/// A way that requests may go.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct WayOptions {
    /// Its name: what the model that classifies answers with.
    label: String,
    /// Which requests it is for, as the model that classifies reads it.
    about: String,
    /// The agent that answers. Without it and without a model, the request stays.
    agent: Option<String>,
    /// The model that answers for this agent.
    model: Option<ModelName>,
    /// Regular expressions: a request that one of them matches goes this way.
    matches: Vec<Pattern>,
    /// A condition: a request for which it holds goes this way. It sees `input`, `user`, `agent`,
    /// `variables`, `state` and `now`.
    when: Option<String>,
}

/// What `route` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::input) struct RouteOptions {
    /// The ways that requests may go. The first that takes a request by a pattern or a condition
    /// counts.
    ways: Vec<WayOptions>,
    /// The model that chooses among the labels, for requests that no pattern and no condition takes.
    model: Option<ModelName>,
    /// What that model is told, before the labels.
    #[schemars(extend("default" = PROMPT))]
    prompt: Option<String>,
    /// How often it is asked, if it gives none of the labels, or fails.
    #[schemars(extend("default" = ATTEMPTS))]
    attempts: Option<u32>,
    /// The label of requests that nothing else takes. Without it they stay.
    default: Option<String>,
    /// How often a request may be handed on, from agent to agent.
    max_depth: usize,
    /// The most time that the other agent may take. Waiting for a person does not count.
    limit: Time,
}

impl Default for RouteOptions {
    fn default() -> Self {
        let Route { max_depth, limit, .. } = Route::new();
        let (ways, model, default) = (Vec::new(), None, None);
        let (prompt, attempts) = (None, None);
        Self { ways, model, prompt, attempts, default, max_depth, limit: Time(limit) }
    }
}

impl Options for RouteOptions {
    const ABOUT: About = About {
        name: "route",
        summary: "Sends requests to another agent or model, by rules or by a model's choice.",
        covers: &["UC-1.4"],
        peers: &[],
        example: r#"{ "ways": [{ "label": "deep", "matches": ["(?i)prove|derive"],
                      "model": "passthrough" }] }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        if self.ways.is_empty() {
            return Err(Refusal::new("ways", "there is none; say where requests may go"));
        }
        for (field, is_zero) in
            [("attempts", self.attempts == Some(0)), ("max_depth", self.max_depth == 0)]
        {
            if is_zero {
                return Err(Refusal::new(field, "give more than zero"));
            }
        }
        for (field, is_given) in
            [("prompt", self.prompt.is_some()), ("attempts", self.attempts.is_some())]
        {
            if is_given && self.model.is_none() {
                let why = "it is for the model that chooses, and there is none; give `model`, or \
                           leave it out";
                return Err(Refusal::new(field, why));
            }
        }
        let mut route = Route::new().max_depth(self.max_depth).limit(self.limit.0);
        if let Some(prompt) = self.prompt {
            route = route.prompt(prompt);
        }
        if let Some(attempts) = self.attempts {
            route = route.attempts(attempts);
        }
        for (at, options) in self.ways.into_iter().enumerate() {
            let way = way_of(&format!("ways[{at}]"), options, self.model.is_some(), makings)?;
            if route.ways.iter().any(|other| other.label == way.label) {
                let why = format!("`{}` is the label of another way already", way.label);
                return Err(Refusal::new(format!("ways[{at}].label"), why));
            }
            route.ways.push(way);
        }
        if let Some(ModelName(name)) = &self.model {
            let model = makings.model(name).map_err(|why| Refusal::new("model", why))?;
            route.classifier = Some(model);
        }
        if let Some(label) = self.default {
            if !route.ways.iter().any(|way| way.label == label) {
                let labels: Vec<_> = route.ways.iter().map(|way| &*way.label).collect();
                let why =
                    format!("no way has the label `{label}`; there are: {}", labels.join(", "));
                return Err(Refusal::new("default", why));
            }
            route.otherwise = Some(label);
        }
        Ok(route.into_registration())
    }
}

fn way_of(
    field: &str,
    options: WayOptions,
    is_classified: bool,
    makings: &dyn Makings,
) -> Result<Way, Refusal> {
    let WayOptions { label, about, agent, model, matches, when } = options;
    let refuse = |part: &str, why: String| Refusal::new(format!("{field}.{part}"), why);
    if label.trim().is_empty() {
        return Err(refuse("label", "a way needs a name".to_owned()));
    }
    let to = match (agent, model) {
        (Some(_), Some(_)) => {
            let why = "a way leads to an agent or to a model, not to both".to_owned();
            return Err(refuse("model", why));
        }
        (Some(agent), None) => {
            must_be_there(&agent, makings).map_err(|why| refuse("agent", why))?;
            To::Agent(agent)
        }
        (None, Some(ModelName(name))) => {
            To::Model(makings.model(&name).map_err(|why| refuse("model", why))?)
        }
        (None, None) => To::Here,
    };
    if is_classified && about.trim().is_empty() {
        let why = "say which requests it is for: a model chooses by it".to_owned();
        return Err(refuse("about", why));
    }
    let mut way = Way { about, matches, ..Way::new(label, to) };
    if let Some(when) = when {
        way = way.when(&when).map_err(|why| refuse("when", why.message().to_owned()))?;
    }
    Ok(way)
}

/// Refuses an agent that will not be there. Where nobody knows yet who will be, the request finds out.
fn must_be_there(agent: &str, makings: &dyn Makings) -> Result<(), String> {
    let Some(agents) = makings.agents() else { return Ok(()) };
    if agents.iter().any(|known| known == agent) {
        return Ok(());
    }
    let more = makings.more_agents().map(|help| format!("; {help}")).unwrap_or_default();
    let agents = agents.join(", ");
    Err(format!("there is no agent `{agent}` among those that are loaded: {agents}{more}"))
}
