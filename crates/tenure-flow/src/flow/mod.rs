//! What a flow is, shared by all of its chats.

mod builder;

pub use builder::{FlowBuilder, StartupMode};

use crate::chat::{Cast, ChatReport, ChatRequest};
use crate::contract::ErrorStrategy;
use crate::route::Router;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::chat::{Chat, Declarations};
use tenure_core::message::History;
use tokio_util::task::TaskTracker;

/// Several agents, and who speaks when. It is a handle: clones are the same flow.
#[derive(Clone)]
pub struct Flow {
    pub(crate) inner: Arc<FlowInner>,
}

/// Called with every instance that a chat makes, before it is started, and the chat's id.
pub(crate) type Prepare = Arc<dyn Fn(&Agent, &str) + Send + Sync>;

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
    pub(crate) startup: StartupMode,
    pub(crate) initial_message: Option<String>,
    pub(crate) greeting: Option<String>,
    pub(crate) strategy: ErrorStrategy,
    pub(crate) declarations: Option<Arc<dyn Declarations>>,
    /// Agents whose words people do not get to see.
    pub(crate) hidden: BTreeSet<Arc<str>>,
    pub(crate) prepare: Option<Prepare>,
    /// Where its chats run.
    pub(crate) tracker: TaskTracker,
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
    pub async fn run(&self, message: impl Into<String>) -> ChatReport {
        self.chat().message(message).run().await
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

    pub(crate) fn announce_status(&self, cast: &Cast, status: &str) {
        cast.host.announce("chat.status", || json!({ "status": status }));
    }
}
