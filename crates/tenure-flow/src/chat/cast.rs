//! The agents of one chat while they live.

use super::ChatStatus;
use crate::flow::{FlowInner, FlowMember};
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::agent::{Agent, AgentRegistry, Request};
use tenure_core::chat::Chat;
use tenure_core::context::ExecutionContext;
use tenure_core::model::Usage;
use tenure_core::step::Steps;
use tenure_core::{CancelCause, CancelToken, Error};

/// The agents of one chat, in the order in which they are started.
pub(crate) struct Cast {
    /// Stands for the chat itself: its hooks are the flow's own.
    pub(crate) host: Agent,
    /// Those who may be chosen to speak, in the order of their declaration.
    pub(crate) speakers: Vec<Agent>,
    /// The person's place, if the flow has one.
    pub(crate) user: Option<Agent>,
    helpers: Vec<Agent>,
    pub(crate) names: Arc<[Arc<str>]>,
    pub(crate) context: Arc<ExecutionContext>,
    pub(crate) token: CancelToken,
    /// Where the chat is recorded, if it is.
    pub(crate) steps: Option<Steps>,
    pub(crate) status: Arc<StatusLine>,
    /// How many of them were started, or tried to.
    started: AtomicUsize,
    /// How many helpers are being asked.
    consulted: AtomicUsize,
    /// How often helpers were asked, and how many turns the person had: places in the record.
    consults: AtomicUsize,
    person_turns: AtomicUsize,
    /// What helpers cost.
    spent: Mutex<Usage>,
    /// What they cost for the decision that is being made.
    spent_on_routing: Mutex<Usage>,
}

impl Cast {
    /// Makes an instance of everybody; nobody is started.
    pub(crate) fn new(
        flow: &FlowInner,
        chat: &str,
        context: ExecutionContext,
        token: CancelToken,
        steps: Option<Steps>,
    ) -> Self {
        let context = Arc::new(context);
        // Agents that register find those of their own chat, and no others.
        let registry = OnceCell::new();
        let instance = |member: &FlowMember| {
            let agent = match member.blueprint.registers() {
                true => member
                    .blueprint
                    .instance_in(registry.get_or_init(|| Arc::new(AgentRegistry::new())).clone()),
                false => member.blueprint.instance(),
            };
            // It has none yet: it was made on the line above.
            let _ = agent.set_context(context.clone());
            if let Some(steps) = &steps {
                // Nor is it recorded elsewhere, for the same reason.
                let _ = agent.record(steps);
            }
            if let Some(prepare) = &flow.prepare {
                prepare(&agent, chat);
            }
            agent
        };
        let host = instance(&flow.host);
        Self {
            status: Arc::new(StatusLine { host: host.clone(), now: Mutex::new(None) }),
            host,
            speakers: flow.speakers.iter().map(instance).collect(),
            user: flow.user.as_ref().map(instance),
            helpers: flow.helpers.iter().map(instance).collect(),
            names: flow.names.clone(),
            context,
            token,
            steps: steps.clone(),
            consults: AtomicUsize::new(0),
            person_turns: AtomicUsize::new(0),
            started: AtomicUsize::new(0),
            consulted: AtomicUsize::new(0),
            spent: Mutex::default(),
            spent_on_routing: Mutex::default(),
        }
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &Agent> {
        std::iter::once(&self.host).chain(&self.helpers).chain(&self.speakers).chain(&self.user)
    }

    /// Those whose own `before_chat` and `after_chat` take part, the flow's own first.
    pub(crate) fn members(&self) -> Vec<Agent> {
        let members = std::iter::once(&self.host).chain(&self.speakers).chain(&self.user);
        members.cloned().collect()
    }

    /// Starts everybody, one after the other. Dropping the future leaves those started who are;
    /// [`Cast::stop`] stops them.
    pub(crate) async fn start(&self, flow: &FlowInner) -> Result<(), Error> {
        for (agent, member) in self.speakers.iter().zip(&flow.speakers) {
            if let Some(history) = &member.history {
                agent.set_history(history.clone())?;
            }
        }
        for agent in self.all() {
            if self.token.is_cancelled() {
                return Err(Error::cancelled());
            }
            self.started.fetch_add(1, Ordering::Relaxed);
            agent.startup().await.map_err(|error| {
                let name = agent.name();
                Error::orchestration(format!("agent `{name}` did not start: {error}"))
                    .because(error)
            })?;
        }
        Ok(())
    }

    /// Stops everybody who was started, last to first.
    pub(crate) async fn stop(&self) {
        let started: Vec<_> = self.all().take(self.started.load(Ordering::Relaxed)).collect();
        for agent in started.into_iter().rev() {
            agent.shutdown().await;
        }
    }

    /// Cancels whatever turn goes on.
    pub(crate) fn interrupt(&self) {
        for agent in self.all() {
            agent.cancel_for(self.cause());
        }
    }

    /// Cancels the chat itself.
    pub(crate) fn cancel(&self, chat: &Chat) {
        chat.cancel_for(self.cause());
    }

    fn cause(&self) -> CancelCause {
        self.token.cause().unwrap_or_default()
    }

    /// An error of the chat: one whose time was up was not cancelled by anybody.
    pub(crate) fn error(&self, error: Error) -> Error {
        let is_late = error.is_cancelled() && self.cause() == CancelCause::TimeIsUp;
        if is_late { Error::chat_timed_out() } else { error }
    }

    /// Whether a helper is being asked, and has to come to the end of its turn.
    pub(crate) fn is_consulting(&self) -> bool {
        self.consulted.load(Ordering::Acquire) > 0
    }

    /// What helpers cost so far.
    pub(crate) fn spent(&self) -> Usage {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what helpers cost, also those that were asked in an earlier life of the run.
    pub(crate) fn spend(&self, usage: Usage) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += usage;
        *self.spent_on_routing.lock().unwrap_or_else(PoisonError::into_inner) += usage;
    }

    /// A decision is about to be made.
    pub(crate) fn begin_routing(&self) {
        *self.spent_on_routing.lock().unwrap_or_else(PoisonError::into_inner) = Usage::default();
    }

    /// What helpers cost since then.
    pub(crate) fn spent_on_routing(&self) -> Usage {
        *self.spent_on_routing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of the person's next turn in the record.
    pub(crate) fn place_of_person(&self) -> String {
        format!("u{}", self.person_turns.load(Ordering::Relaxed) + 1)
    }

    /// A turn of the person's that is about to begin, recorded at its place if the chat is.
    pub(crate) fn of_person<'a>(&self, request: Request<'a>) -> Request<'a> {
        let place = self.place_of_person();
        self.person_turns.fetch_add(1, Ordering::Relaxed);
        match &self.steps {
            Some(steps) => request.recorded(&steps.at(place)),
            None => request,
        }
    }

    /// Announces an event of the chat; if the chat is recorded, once over all lives of its run. No other
    /// event of this name is at this place of the chat.
    pub(crate) fn announce(
        &self,
        place: impl fmt::Display,
        name: &'static str,
        data: impl FnOnce() -> Value,
    ) {
        self.announce_of(&self.host, place, name, data);
    }

    /// Announces an event of one of its agents as [`Cast::announce`] does.
    pub(crate) fn announce_of(
        &self,
        agent: &Agent,
        place: impl fmt::Display,
        name: &'static str,
        data: impl FnOnce() -> Value,
    ) {
        match &self.steps {
            Some(steps) => agent.announce_once(&steps.at(place), name, data),
            None => agent.announce(name, data),
        }
    }

    /// Asks a helper.
    pub(crate) async fn consult(
        &self,
        helper: &str,
        question: String,
        chat: &Chat,
        limit: Option<Duration>,
    ) -> Result<String, Error> {
        let Some(agent) = self.helpers.iter().find(|agent| agent.name() == helper) else {
            return Err(Error::orchestration(format!("the flow has no helper `{helper}`")));
        };
        if self.token.is_cancelled() {
            return Err(Error::cancelled());
        }
        let _consulting = Consulting::begin(&self.consulted);
        let number = self.consults.fetch_add(1, Ordering::Relaxed) + 1;
        let mut request = agent.request(question).in_chat(chat);
        if let Some(steps) = &self.steps {
            request = request.recorded(&steps.at(format_args!("route:{number}")));
        }
        if let Some(limit) = limit {
            request = request.limit(limit);
        }
        let result = request.run().await;
        let usage = match &result {
            Ok(report) => Some(report.usage),
            Err(error) => error.report().map(|report| report.usage),
        };
        self.spend(usage.unwrap_or_default());
        Ok(result?.output().to_owned())
    }
}

/// A helper is being asked for as long as this lives.
struct Consulting<'a>(&'a AtomicUsize);

impl<'a> Consulting<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Consulting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Announces what state a chat is in, whenever that changes.
pub(crate) struct StatusLine {
    host: Agent,
    now: Mutex<Option<ChatStatus>>,
}

impl StatusLine {
    pub(crate) fn say(&self, status: ChatStatus) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.replace(status) != Some(status) {
            self.host.announce("chat.status", || json!({ "status": status }));
        }
    }
}
