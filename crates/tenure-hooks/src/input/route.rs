//! Requests that go to another agent, or to another model.

mod options;

pub(super) use options::RouteOptions;

use super::classify::{Label, classify};
use super::hand_over::hand_over;
use super::seen::{AT_TURN, Expression, Moment, pattern};
use crate::ready::{Pattern, Refusal};
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Error;
use tenure_core::context::{InstanceCx, TurnCx};
use tenure_core::drive::Input;
use tenure_core::hook::{
    AgentLifecycle, Flow, HookError, IntoRegistration, Point, Points, Registration, hook,
};
use tenure_core::model::{Model, ModelRequest};
use tenure_macros::lifecycle;
use tokio_util::task::TaskTracker;

/// What classifying may take beside the other agent's own time.
const CLASSIFYING: Duration = Duration::from_secs(120);

/// What the model that classifies is told by default.
const PROMPT: &str = "Choose the label that fits the user's request best.";
/// How often it is asked by default.
const ATTEMPTS: u32 = 2;

/// One way that a request may go, and which requests go there.
///
/// It is taken by the first of its patterns or its condition that holds; or by a model's choice, if
/// the [`Route`] has one that classifies.
#[derive(Clone)]
#[must_use]
pub struct Way {
    label: String,
    about: String,
    to: To,
    matches: Vec<Pattern>,
    when: Option<Arc<Expression>>,
}

#[derive(Clone)]
enum To {
    Agent(String),
    Model(Arc<dyn Model>),
    Here,
}

impl Way {
    fn new(label: impl Into<String>, to: To) -> Self {
        Self { label: label.into(), about: String::new(), to, matches: Vec::new(), when: None }
    }

    /// To the agent of this name, in the same registry. Its answer is the answer.
    pub fn to_agent(label: impl Into<String>, agent: impl Into<String>) -> Self {
        Self::new(label, To::Agent(agent.into()))
    }

    /// To another model: it answers for this agent, in this turn.
    pub fn to_model(label: impl Into<String>, model: impl Model) -> Self {
        Self::new(label, To::Model(Arc::new(model)))
    }

    /// Nowhere else: this agent answers with its own model.
    pub fn here(label: impl Into<String>) -> Self {
        Self::new(label, To::Here)
    }

    /// Which requests it is for, as the model that classifies gets to read it.
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// A regular expression: requests that it matches go this way.
    pub fn matching(mut self, text: &str) -> Result<Self, Refusal> {
        self.matches.push(pattern(text).map_err(|why| Refusal::new("matches", why))?);
        Ok(self)
    }

    /// A condition: requests for which it holds go this way. It sees `input`, `user`, `agent`,
    /// `variables`, `state` and `now`.
    pub fn when(mut self, expression: &str) -> Result<Self, Refusal> {
        let when = Expression::compile(expression, AT_TURN);
        self.when = Some(Arc::new(when.map_err(|why| Refusal::new("when", why))?));
        Ok(self)
    }

    fn takes(&self, moment: &Moment<'_>) -> Result<bool, String> {
        if self.matches.iter().any(|pattern| pattern.regex.is_match(moment.input)) {
            return Ok(true);
        }
        self.when.as_ref().map_or(Ok(false), |when| when.holds(moment))
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = match &self.to {
            To::Agent(name) => format!("agent {name}"),
            To::Model(model) => format!("model {}", model.name()),
            To::Here => "here".to_owned(),
        };
        f.debug_struct("Way").field("label", &self.label).field("to", &to).finish_non_exhaustive()
    }
}

/// Sends requests to another agent or to another model: by patterns and conditions first, and if none
/// of them holds, by the choice of a model among labels.
///
/// The other agent answers in a turn of its own, and its output ends this one; what it costs is part
/// of this turn, a cancel reaches it, and in a recorded run its steps are part of the record. A
/// request that would come back to an agent that has handed it on is refused.
///
/// ```
/// use std::sync::Arc;
/// use tenure_core::agent::{Agent, AgentRegistry};
/// use tenure_hooks::input::{Route, Way};
/// # use tenure_models::{Passthrough, Scripted};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let registry = Arc::new(AgentRegistry::new());
/// let billing = Agent::builder("billing")
///     .model(Scripted::new(["It is paid."]))
///     .registry(registry.clone())
///     .build()?;
/// let way = Way::to_agent("money", "billing").matching("(?i)invoice|refund")?;
/// let desk = Agent::builder("desk")
///     .model(Passthrough::new())
///     .registry(registry)
///     .with_lifecycle(Route::new().way(way))
///     .build()?;
/// billing.startup().await?;
/// desk.startup().await?;
/// assert_eq!(desk.run("Where is my invoice?").await?.output(), "It is paid.");
/// assert_eq!(desk.run("Hello").await?.output(), "Hello");
/// desk.shutdown().await;
/// billing.shutdown().await;
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct Route {
    ways: Vec<Way>,
    classifier: Option<Arc<dyn Model>>,
    prompt: Arc<str>,
    attempts: u32,
    otherwise: Option<String>,
    max_depth: usize,
    limit: Duration,
}

impl Default for Route {
    fn default() -> Self {
        Self::new()
    }
}

impl Route {
    /// No ways yet: every request stays.
    pub fn new() -> Self {
        Self {
            ways: Vec::new(),
            classifier: None,
            prompt: PROMPT.into(),
            attempts: ATTEMPTS,
            otherwise: None,
            max_depth: 3,
            limit: Duration::from_secs(600),
        }
    }

    /// Adds a way. The first that takes a request counts.
    pub fn way(mut self, way: Way) -> Self {
        self.ways.push(way);
        self
    }

    /// Has a model choose among the labels, for requests that no pattern and no condition takes.
    pub fn classify_with(mut self, model: impl Model) -> Self {
        self.classifier = Some(Arc::new(model));
        self
    }

    /// What the model that classifies is told, before the labels.
    pub fn prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// How often it is asked, if it gives none of the labels, or fails.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The label of requests that nothing else takes. Without it they stay.
    pub fn otherwise(mut self, label: impl Into<String>) -> Self {
        self.otherwise = Some(label.into());
        self
    }

    /// How often a request may be handed on, from agent to agent.
    pub fn max_depth(mut self, most: usize) -> Self {
        self.max_depth = most;
        self
    }

    /// The most time that the other agent may take. Waiting for a person does not count.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    fn names_agents(&self) -> bool {
        self.ways.iter().any(|way| matches!(way.to, To::Agent(_)))
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("ways", &self.ways)
            .field("classifier", &self.classifier.as_ref().map(|model| model.name()))
            .field("otherwise", &self.otherwise)
            .finish_non_exhaustive()
    }
}

impl IntoRegistration for Route {
    fn into_registration(self) -> Registration {
        let mut points = Points::from(Point::BeforeAgent);
        if self.names_agents() {
            points = points.with(Point::OnStart);
        }
        if self.ways.iter().any(|way| matches!(way.to, To::Model(_))) {
            points = points.with(Point::BeforeModel);
        }
        let limit = self.limit.saturating_add(CLASSIFYING);
        hook(Router { own: self, tracker: TaskTracker::new() })
            .named("route")
            .kind("route")
            .only(points)
            .limit(limit)
            // A model cannot be put on record, so it is chosen again; by what is on record.
            .again_on_resume()
            .outside("load_context")
            .outside("cheaper_model")
    }
}

struct Router {
    own: Route,
    tracker: TaskTracker,
}

/// Which way the turn has gone.
struct Chosen(usize);

impl Router {
    async fn choose(&self, cx: TurnCx<'_>, input: &str) -> Result<(Option<usize>, &str), Error> {
        let own = &self.own;
        let place = |label: &str| own.ways.iter().position(|way| way.label == label);
        // Conditions may see the time. What they said once is what they say.
        let by_rule = cx.step("rule", async {
            let moment = Moment::of_turn(cx, input);
            for way in &own.ways {
                if way.takes(&moment).map_err(Error::orchestration)? {
                    return Ok(Some(way.label.clone()));
                }
            }
            Ok(None)
        });
        if let Some(label) = by_rule.await? {
            return Ok((place(&label), "rule"));
        }
        if let Some(model) = &own.classifier {
            let labels: Vec<_> =
                own.ways.iter().map(|way| Label { name: &way.label, about: &way.about }).collect();
            let label = classify(cx, model, &own.prompt, &labels, input, own.attempts).await?;
            if label.is_some() {
                return Ok((label, "model"));
            }
        }
        Ok((own.otherwise.as_deref().and_then(place), "default"))
    }
}

#[lifecycle]
impl AgentLifecycle for Router {
    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        // Agents may start in any order, so that those who are named need not be there yet; but
        // there has to be a place where they will be.
        let is_known = cx.get_agent(cx.agent_name()).is_some() || !cx.agent_names().is_empty();
        match is_known {
            true => Ok(()),
            false => Err(HookError::new(
                "requests are to be routed to other agents, and this one is in no registry; give it \
                 the registry that they are in",
            )),
        }
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        let (chosen, by) = self.choose(cx, input.content.text()).await?;
        let Some(at) = chosen else { return Ok(Flow::Continue) };
        let way = &self.own.ways[at];
        cx.announce("route.chosen", || {
            let (agent, model) = match &way.to {
                To::Agent(name) => (Some(name.as_str()), None),
                To::Model(model) => (None, Some(model.name())),
                To::Here => (None, None),
            };
            json!({ "label": way.label, "agent": agent, "model": model, "by": by })
        });
        match &way.to {
            To::Here => Ok(Flow::Continue),
            To::Model(_) => {
                cx.carry(Chosen(at));
                Ok(Flow::Continue)
            }
            To::Agent(name) => {
                let Route { max_depth, limit, .. } = self.own;
                let tracker = &self.tracker;
                hand_over(cx, name, input, max_depth, limit, tracker)
                    .await
                    .map(|said| Flow::Finish(said.into()))
            }
        }
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        if let Some(chosen) = cx.carried::<Chosen>()
            && let To::Model(model) = &self.own.ways[chosen.0].to
        {
            request.use_model(model.clone());
        }
        Ok(Flow::Continue)
    }
}
