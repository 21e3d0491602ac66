//! What a flow is, shared by all of its chats.

mod builder;

pub use builder::{FlowBuilder, StartupMode};

use crate::chat::{ChatReport, ChatRequest};
use crate::contract::ErrorStrategy;
use crate::journey::Journey;
use crate::output::Outputs;
use crate::route::Router;
use crate::variables::Variables;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::chat::{Chat, Declarations};
use tenure_core::message::History;
use tenure_core::{CancelToken, Error};
use tokio_util::task::TaskTracker;

/// Several agents, and who speaks when. It is a handle: clones are the same flow.
#[derive(Clone)]
pub struct Flow {
    pub(crate) inner: Arc<FlowInner>,
}

/// Called with every instance that a chat makes, before it is started, and the chat's id.
pub(crate) type Prepare = Arc<dyn Fn(&Agent, &str) + Send + Sync>;

/// Called with the id of a chat that is over, after its agents have stopped.
pub(crate) type Farewell = Arc<dyn Fn(&str) -> BoxFuture<'static, ()> + Send + Sync>;

pub(crate) struct FlowInner {
    pub(crate) name: Arc<str>,
    /// Stands for the chat itself: its hooks are the flow's own.
    pub(crate) host: FlowMember,
    pub(crate) speakers: Vec<FlowMember>,
    pub(crate) names: Arc<[Arc<str>]>,
    pub(crate) user: Option<FlowMember>,
    pub(crate) helpers: Vec<FlowMember>,
    pub(crate) router: Arc<dyn Router>,
    pub(crate) initial: Option<Arc<str>>,
    pub(crate) max_turns: usize,
    /// What chance is made of, for chats that do not say themselves.
    pub(crate) seed: u64,
    pub(crate) startup: StartupMode,
    pub(crate) initial_message: Option<String>,
    pub(crate) greeting: Option<String>,
    pub(crate) strategy: ErrorStrategy,
    pub(crate) declarations: Option<Arc<dyn Declarations>>,
    /// Where the values of declared variables come from.
    pub(crate) variables: Option<Arc<Variables>>,
    /// Which agent answers in which form.
    pub(crate) outputs: Arc<Outputs>,
    /// Agents whose words people do not get to see.
    pub(crate) hidden: BTreeSet<Arc<str>>,
    pub(crate) prepare: Option<Prepare>,
    pub(crate) farewell: Option<Farewell>,
    pub(crate) journeys: Vec<Journey>,
    /// The flows that its journeys name.
    pub(crate) workflows: BTreeMap<Arc<str>, Flow>,
    /// Where its chats run.
    pub(crate) tracker: TaskTracker,
    /// Those that run, by their ids, and what cancels them.
    pub(crate) open: Mutex<BTreeMap<Arc<str>, CancelToken>>,
}

/// Somebody who takes part in the chats of a flow.
pub(crate) struct FlowMember {
    pub(crate) blueprint: Blueprint,
    pub(crate) history: Option<History>,
}

impl Flow {
    /// Starts building a flow of this name.
    pub fn builder(name: impl Into<Arc<str>>) -> FlowBuilder {
        FlowBuilder::new(name.into())
    }

    /// The flow's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The names of those who may speak.
    pub fn agents(&self) -> &[Arc<str>] {
        &self.inner.names
    }

    /// A chat, to be given options and then run.
    pub fn chat(&self) -> ChatRequest {
        ChatRequest::new(self.clone())
    }

    /// Runs a chat that begins with this message of the user's.
    #[doc(alias = "run_workflow_orchestration")]
    pub async fn run(&self, message: impl Into<String>) -> ChatReport {
        self.chat().message(message).run().await
    }

    /// Cancels every chat that runs. Those of others that run inside of theirs are cancelled with
    /// them.
    pub fn cancel(&self) {
        let open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens: Vec<_> = open.values().cloned().collect();
        drop(open);
        for token in tokens {
            token.cancel();
        }
    }

    /// Remembers what cancels a chat, for as long as it is there. What a chat has beside its agents
    /// goes by its id, so there is one at a time of each.
    pub(crate) fn open(&self, id: &Arc<str>, token: &CancelToken) -> Result<OpenChat, Error> {
        let mut open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.contains_key(id) {
            return Err(Error::invalid(format!(
                "the chat `{id}` of the workflow `{}` runs already; wait for its end, or give \
                 this one another id",
                self.name()
            )));
        }
        open.insert(id.clone(), token.clone());
        Ok(OpenChat { flow: self.inner.clone(), id: id.clone() })
    }

    /// How long the agents of a chat may take to end it, one after the other.
    pub(crate) fn longest_end(&self) -> Duration {
        let inner = &self.inner;
        let members =
            inner.speakers.iter().chain(&inner.helpers).chain(&inner.user).chain([&inner.host]);
        members
            .map(|member| member.blueprint.config())
            .map(|config| 2 * config.limits.ends + config.lifecycle.timeout)
            .sum()
    }

    /// Waits until every chat is over, those that nobody waits for too.
    pub async fn settled(&self) {
        self.inner.tracker.close();
        self.inner.tracker.wait().await;
        self.inner.tracker.reopen();
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow")
            .field("name", &self.name())
            .field("agents", &self.agents())
            .finish_non_exhaustive()
    }
}

impl FlowInner {
    pub(crate) fn chat(&self, id: &Arc<str>, members: Vec<Agent>) -> Chat {
        match &self.declarations {
            Some(declarations) => Chat::declared(id.clone(), declarations.clone(), members),
            None => Chat::new(id.clone(), members),
        }
    }

    pub(crate) fn hides(&self, agent: &str) -> bool {
        self.hidden.contains(agent)
    }
}

/// A chat that runs.
pub(crate) struct OpenChat {
    flow: Arc<FlowInner>,
    id: Arc<str>,
}

impl Drop for OpenChat {
    fn drop(&mut self) {
        self.flow.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
