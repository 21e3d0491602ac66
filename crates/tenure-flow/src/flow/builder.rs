//! Building a flow.

use super::{Farewell, Flow, FlowInner, FlowMember, Prepare};
use crate::contract::ErrorStrategy;
use crate::journey::{Journey, defects};
use crate::output::Outputs;
use crate::people::AskPerson;
use crate::route::{RoundRobin, Router};
use crate::variables::Variables;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use tenure_core::Error;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tenure_core::chat::Declarations;
use tenure_core::event::EventBus;
use tenure_core::hook::{IntoRegistration, Origin, Point, Points, Registration, hook};
use tenure_core::message::History;
use tenure_models::Silent;
use tokio_util::task::TaskTracker;

/// The turns of a chat, unless the flow says otherwise.
const MAX_TURNS: usize = 50;

/// The points of a chat's scope.
const CHAT: Points = Points::NONE.with(Point::BeforeChat).with(Point::AfterChat);

/// Who begins a chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum StartupMode {
    /// The agents; what they are told to begin with is hidden from people.
    #[default]
    AgentDriven,
    /// The person.
    UserDriven,
    /// Nobody is there; nothing is shown.
    BackendOnly,
}

/// Says what a flow is. Nothing is checked until [`FlowBuilder::build`].
#[must_use]
pub struct FlowBuilder {
    name: Arc<str>,
    speakers: Vec<FlowMember>,
    helpers: Vec<FlowMember>,
    registrations: Vec<Registration>,
    host: Option<Blueprint>,
    has_user: bool,
    user: Option<Blueprint>,
    router: Arc<dyn Router>,
    initial: Option<Arc<str>>,
    max_turns: usize,
    seed: u64,
    startup: StartupMode,
    initial_message: Option<String>,
    greeting: Option<String>,
    strategy: ErrorStrategy,
    declarations: Option<Arc<dyn Declarations>>,
    variables: Option<Arc<Variables>>,
    outputs: Arc<Outputs>,
    hidden: BTreeSet<Arc<str>>,
    bus: Option<EventBus>,
    asker: Option<Arc<dyn Asker>>,
    prepare: Option<Prepare>,
    farewell: Option<Farewell>,
    journeys: Vec<Journey>,
    workflows: BTreeMap<Arc<str>, Flow>,
}

impl FlowBuilder {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            speakers: Vec::new(),
            helpers: Vec::new(),
            registrations: Vec::new(),
            host: None,
            has_user: false,
            user: None,
            router: Arc::new(RoundRobin),
            initial: None,
            max_turns: MAX_TURNS,
            seed: 0,
            startup: StartupMode::default(),
            initial_message: None,
            greeting: None,
            strategy: ErrorStrategy::default(),
            declarations: None,
            variables: None,
            outputs: Arc::default(),
            hidden: BTreeSet::new(),
            bus: None,
            asker: None,
            prepare: None,
            farewell: None,
            journeys: Vec::new(),
            workflows: BTreeMap::new(),
        }
    }

    /// Adds an agent that may speak. Every chat makes its own instance of it.
    pub fn agent(self, blueprint: Blueprint) -> Self {
        self.agent_with_history(blueprint, None)
    }

    /// Adds an agent that has said and heard something before.
    pub fn agent_with_history(mut self, blueprint: Blueprint, history: Option<History>) -> Self {
        self.speakers.push(FlowMember { blueprint, history });
        self
    }

    /// Adds an agent that does not speak, and that a router may consult.
    pub fn helper(mut self, blueprint: Blueprint) -> Self {
        self.helpers.push(FlowMember { blueprint, history: None });
        self
    }

    /// Adds a hook of the chat itself: its `before_chat` and `after_chat` are called around those of
    /// the agents. Other points belong to agents.
    pub fn with_lifecycle(mut self, hook: impl IntoRegistration) -> Self {
        self.registrations.push(hook.into_registration().only(CHAT));
        self
    }

    /// The agent that stands for the chat itself, in place of one that the builder makes. Hooks of
    /// [`with_lifecycle`](FlowBuilder::with_lifecycle) are not added to it.
    pub fn host(mut self, blueprint: Blueprint) -> Self {
        self.host = Some(blueprint);
        self
    }

    /// Says whether a person takes part.
    pub fn user(mut self, has_user: bool) -> Self {
        self.has_user = has_user;
        self
    }

    /// The agent that stands for the person, in place of one that the builder makes and that asks
    /// by [`on_ask`](FlowBuilder::on_ask).
    pub fn user_agent(mut self, blueprint: Blueprint) -> Self {
        self.user = Some(blueprint);
        self.has_user = true;
        self
    }

    /// Who decides who speaks. By default it goes round.
    pub fn router(mut self, router: impl Router) -> Self {
        self.router = Arc::new(router);
        self
    }

    /// Who begins. By default the router decides that too.
    pub fn initial_agent(mut self, agent: impl Into<Arc<str>>) -> Self {
        self.initial = Some(agent.into());
        self
    }

    /// How many turns agents may have. 50.
    pub fn max_turns(mut self, turns: usize) -> Self {
        self.max_turns = turns;
        self
    }

    /// What chance is made of, for chats that do not say themselves.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Who begins a chat.
    pub fn startup_mode(mut self, startup: StartupMode) -> Self {
        self.startup = startup;
        self
    }

    /// What the agents are told to begin with, as if the user had said it.
    pub fn initial_message(mut self, message: impl Into<String>) -> Self {
        self.initial_message = Some(message.into());
        self
    }

    /// What the person is told to begin with.
    pub fn greeting(mut self, message: impl Into<String>) -> Self {
        self.greeting = Some(message.into());
        self
    }

    /// What the failure of a turn means for the chat.
    pub fn error_strategy(mut self, strategy: ErrorStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// What is declared of the context variables.
    pub fn declarations(mut self, declarations: Arc<dyn Declarations>) -> Self {
        self.declarations = Some(declarations);
        self
    }

    /// What is declared of the context variables, with where their values come from.
    pub fn variables(mut self, variables: Arc<Variables>) -> Self {
        self.declarations = Some(variables.clone());
        self.variables = Some(variables);
        self
    }

    /// Which agent answers in which form.
    pub fn outputs(mut self, outputs: Arc<Outputs>) -> Self {
        self.outputs = outputs;
        self
    }

    /// An agent whose words people do not get to see.
    pub fn hide(mut self, agent: impl Into<Arc<str>>) -> Self {
        self.hidden.insert(agent.into());
        self
    }

    /// Where events of the chat itself go. Those of its agents go where their blueprints say.
    pub fn events(mut self, bus: &EventBus) -> Self {
        self.bus = Some(bus.clone());
        self
    }

    /// Who answers for the person.
    pub fn on_ask(mut self, asker: impl Asker) -> Self {
        self.asker = Some(Arc::new(asker));
        self
    }

    /// Called with every instance that a chat makes, before it is started, and the chat's id.
    pub fn prepare(mut self, prepare: impl Fn(&Agent, &str) + Send + Sync + 'static) -> Self {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// Called with the id of every chat that is over, after its agents have stopped, and waited for.
    pub fn farewell(
        mut self,
        farewell: impl Fn(&str) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.farewell = Some(Arc::new(farewell));
        self
    }

    /// Adds a journey: children that are chats of their own, at the same time.
    pub fn journey(mut self, journey: Journey) -> Self {
        self.journeys.push(journey);
        self
    }

    /// Adds a flow that journeys may name as their workflow. The flow itself needs no adding.
    pub fn workflow(mut self, flow: Flow) -> Self {
        self.workflows.insert(flow.inner.name.clone(), flow);
        self
    }

    /// Checks and builds the flow.
    pub fn build(self) -> Result<Flow, Error> {
        let names: Arc<[Arc<str>]> =
            self.speakers.iter().map(|it| it.blueprint.config().name.clone()).collect();
        let mut problems = Vec::new();
        if names.is_empty() {
            problems.push("it has no agent; add one".to_owned());
        }
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                problems.push(format!("two of its agents are called `{name}`"));
            }
        }
        if let Some(initial) = self.initial.as_ref().filter(|it| !names.contains(it)) {
            let known: Vec<_> = names.iter().map(|name| &**name).collect();
            let known = known.join(", ");
            problems.push(format!("its initial agent `{initial}` is none of its agents: {known}"));
        }
        let has_user = self.has_user && self.startup != StartupMode::BackendOnly;
        let workflows = self.workflows.keys().chain([&self.name]);
        let workflows: Vec<&str> = workflows.map(|name| &**name).collect();
        let declared = self.variables.as_deref();
        problems.extend(defects(&self.journeys, &names, &workflows, has_user, declared));
        if self.max_turns == 0 {
            problems.push("max_turns is 0; allow one turn at least".to_owned());
        }
        if !problems.is_empty() {
            let name = &self.name;
            return Err(Error::invalid(format!("flow `{name}`: {}", problems.join("; "))));
        }
        let bus = self.bus.as_ref();
        let host = match self.host {
            Some(host) => host,
            None => {
                let mut host =
                    Agent::builder(format!("{}.workflow", self.name)).model(Silent::new());
                for registration in self.registrations {
                    host = host.with_lifecycle(registration);
                }
                if let Some(bus) = bus {
                    host = host.events(bus);
                }
                if let Some(asker) = &self.asker {
                    host = host.on_ask(SharedAsker(asker.clone()));
                }
                host.blueprint()?
            }
        };
        let user = match (self.user, has_user) {
            (_, false) => None,
            (Some(user), true) => Some(user),
            (None, true) => {
                let asks = hook(AskPerson).origin(Origin::Platform);
                let mut user = Agent::builder("user").model(Silent::new()).with_lifecycle(asks);
                if let Some(bus) = bus {
                    user = user.events(bus);
                }
                if let Some(asker) = &self.asker {
                    user = user.on_ask(SharedAsker(asker.clone()));
                }
                Some(user.blueprint()?)
            }
        };
        let member = |blueprint| FlowMember { blueprint, history: None };
        Ok(Flow {
            inner: Arc::new(FlowInner {
                name: self.name,
                host: member(host),
                speakers: self.speakers,
                names,
                user: user.map(member),
                helpers: self.helpers,
                router: self.router,
                initial: self.initial,
                max_turns: self.max_turns,
                seed: self.seed,
                startup: self.startup,
                initial_message: self.initial_message,
                greeting: self.greeting,
                strategy: self.strategy,
                declarations: self.declarations,
                variables: self.variables,
                outputs: self.outputs,
                hidden: self.hidden,
                prepare: self.prepare,
                farewell: self.farewell,
                journeys: self.journeys,
                workflows: self.workflows,
                tracker: TaskTracker::new(),
                open: Mutex::default(),
            }),
        })
    }
}

impl fmt::Debug for FlowBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Somebody who answers for the chat and for the person.
struct SharedAsker(Arc<dyn Asker>);

#[async_trait::async_trait]
impl Asker for SharedAsker {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        self.0.answer(ask).await
    }

    fn is_there(&self) -> bool {
        self.0.is_there()
    }
}
