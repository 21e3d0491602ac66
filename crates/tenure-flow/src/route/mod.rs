//! Who speaks next.
//!
//! A [`Router`] is given where a chat stands and answers with a [`RoutingDecision`]: the target, the
//! reason, which is recorded, and a fallback. For the same chat, at the same turn, with the same
//! seed it decides the same.

mod auto;
pub mod handoff;
mod limits;
mod order;
mod pattern;
mod plan;
mod random;
mod round_robin;
mod selector;

pub use auto::Auto;
pub use limits::ReplyLimits;
pub use pattern::Pattern;
pub use plan::Routing;
pub use random::Random;
pub use round_robin::RoundRobin;
pub(crate) use selector::INSTRUCTION;
pub use selector::Selector;

use crate::chat::{Cast, ChatMessage, Speaker};
use async_trait::async_trait;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::Error;
use tenure_core::chat::Chat;

/// What files call the person.
pub const USER_ALIASES: &[&str] = &[
    "user",
    "user_proxy",
    "userproxy",
    "user_agent",
    "user_proxy_agent",
    "userproxyagent",
    "human",
];

/// What files call the end of a chat.
pub const END_ALIASES: &[&str] =
    &["terminate", "terminate_target", "terminated", "end", "stop", "exit", "finish"];

/// Where a chat goes next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// This agent speaks.
    Agent(Arc<str>),
    /// The person is asked.
    User,
    /// The chat is complete.
    End,
}

impl Target {
    /// The target's name, as files and events spell it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Agent(name) => name,
            Self::User => "user",
            Self::End => "terminate",
        }
    }

    /// The person or the end, if that is what files mean by this name: `user` and `terminate`, and
    /// their aliases, in any case.
    pub fn of_alias(name: &str) -> Option<Self> {
        let is_one_of = |aliases: &[&str]| aliases.iter().any(|it| it.eq_ignore_ascii_case(name));
        match name {
            _ if is_one_of(USER_ALIASES) => Some(Self::User),
            _ if is_one_of(END_ALIASES) => Some(Self::End),
            _ => None,
        }
    }

    /// The target that a file means by this name, where these agents are known. A name of an agent
    /// is that agent, also if it is an alias.
    pub fn of_name<'a>(name: &str, agents: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let agent = agents.into_iter().find(|agent| *agent == name);
        agent.map(|agent| Self::Agent(agent.into())).or_else(|| Self::of_alias(name))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Who does the next part, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
#[doc(alias = "SelectSpeakerEvent")]
pub struct RoutingDecision {
    /// Who does it.
    pub target: Target,
    /// Why. Never empty.
    pub reason: Cow<'static, str>,
    /// Who does it if the target fails, and failures fall back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Arc<str>>,
    /// Whatever else there is to say of it.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
}

impl RoutingDecision {
    /// A decision.
    pub fn new(target: Target, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { target, reason: reason.into(), fallback: None, metadata: Value::Null }
    }

    /// The decision that this agent speaks.
    pub fn agent(name: impl Into<Arc<str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Target::Agent(name.into()), reason)
    }

    /// The decision that the chat is complete.
    pub fn end(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Target::End, reason)
    }

    /// The same with somebody who steps in.
    #[must_use]
    pub fn fallback(mut self, agent: impl Into<Arc<str>>) -> Self {
        self.fallback = Some(agent.into());
        self
    }
}

/// Decides who speaks next.
#[async_trait]
pub trait Router: Send + Sync + 'static {
    /// Who speaks next. An error ends the chat as failed.
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error>;

    /// What it is called in events.
    fn name(&self) -> &str;

    /// Whether what it decides follows from where the chat stands alone. What others decide is put on
    /// record in a [recorded](crate::ChatRequest::recorded) chat, and is not asked for again.
    fn is_determined(&self) -> bool {
        false
    }
}

#[async_trait]
impl<R: Router + ?Sized> Router for Arc<R> {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        (**self).route(cx).await
    }

    fn name(&self) -> &str {
        (**self).name()
    }

    fn is_determined(&self) -> bool {
        (**self).is_determined()
    }
}

/// Where a chat stands when somebody has to be chosen.
#[non_exhaustive]
pub struct RouteCx<'a> {
    /// The chat, with its variables.
    pub chat: &'a Chat,
    /// Those who may be chosen, in the order of their declaration.
    pub agents: &'a [Arc<str>],
    /// What was said so far.
    pub messages: &'a [ChatMessage],
    /// How many turns there were: the cursor.
    pub turn: usize,
    /// The agent that spoke last, if one did; not the person.
    pub last_agent: Option<&'a Arc<str>>,
    /// Whether the person had the last turn, also if they said nothing.
    pub after_user: bool,
    /// Who the flow says begins.
    pub initial: Option<&'a Arc<str>>,
    /// What chance is made of.
    pub seed: u64,
    pub(crate) cast: &'a Cast,
    /// The place of the decision in the chat, and how many events it has announced.
    pub(crate) place: &'a str,
    pub(crate) announced: AtomicUsize,
}

impl RouteCx<'_> {
    /// Who spoke last.
    pub fn last(&self) -> Option<&Speaker> {
        self.messages.last().map(|message| &message.speaker)
    }

    /// Whether there is an agent of this name to choose.
    pub fn has_agent(&self, name: &str) -> bool {
        self.agents.iter().any(|agent| &**agent == name)
    }

    /// Whether a person takes part.
    pub fn has_user(&self) -> bool {
        self.cast.user.is_some()
    }

    /// Emits an event of the chat. What it carries is made only if somebody listens.
    pub fn announce(&self, name: &'static str, data: impl FnOnce() -> Value) {
        let number = self.announced.fetch_add(1, Ordering::Relaxed) + 1;
        self.cast.announce(format_args!("{}/{number}", self.place), name, data);
    }

    /// Asks a helper of the flow: an agent that is no speaker, such as the one that picks them. It
    /// knows nothing of the chat but what it is told here.
    pub async fn consult(&self, helper: &str, question: String) -> Result<String, Error> {
        self.cast.consult(helper, question, self.chat, None).await
    }

    /// The same, and the answer has to be there in this time.
    pub async fn consult_within(
        &self,
        helper: &str,
        question: String,
        limit: Duration,
    ) -> Result<String, Error> {
        self.cast.consult(helper, question, self.chat, Some(limit)).await
    }
}

impl fmt::Debug for RouteCx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteCx")
            .field("agents", &self.agents)
            .field("turn", &self.turn)
            .field("last", &self.last())
            .finish_non_exhaustive()
    }
}
