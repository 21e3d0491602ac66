//! A chat, to be given options and then run.

use super::{ChatReport, Questions, begin};
use crate::flow::Flow;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::CancelToken;
use tenure_core::context::ExecutionContext;
use tenure_core::step::{Steps, WhenWaiting};

/// A chat of a flow, to be given options and then run.
#[must_use = "a chat does nothing until it is run"]
#[derive(Clone, Debug)]
pub struct ChatRequest {
    pub(crate) flow: Flow,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) app: String,
    pub(crate) user: String,
    pub(crate) message: Option<String>,
    pub(crate) initial: Option<Arc<str>>,
    pub(crate) seed: u64,
    pub(crate) variables: BTreeMap<String, Value>,
    pub(crate) context: Option<ExecutionContext>,
    pub(crate) token: Option<CancelToken>,
    pub(crate) questions: Option<Questions>,
    pub(crate) steps: Option<Steps>,
    pub(crate) when_waiting: WhenWaiting,
}

impl ChatRequest {
    pub(crate) fn new(flow: Flow) -> Self {
        Self {
            seed: flow.inner.seed,
            flow,
            id: None,
            app: String::new(),
            user: String::new(),
            message: None,
            initial: None,
            variables: BTreeMap::new(),
            context: None,
            token: None,
            questions: None,
            steps: None,
            when_waiting: WhenWaiting::default(),
        }
    }

    /// The chat's id; by default a new one, and of a recorded chat one that follows from its run. Of
    /// two chats of a flow that have the same id at the same
    /// time, the second one fails before anything of it begins.
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The app that it belongs to: the variable `app_id`.
    pub fn app(mut self, app: impl Into<String>) -> Self {
        self.app = app.into();
        self
    }

    /// Who the user is: the variable `user_id`.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = user.into();
        self
    }

    /// What the user says first.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Who begins, in place of the flow's initial agent: a chat that names somebody else fails.
    pub fn initial_agent(mut self, agent: impl Into<Arc<str>>) -> Self {
        self.initial = Some(agent.into());
        self
    }

    /// What chance is made of. The same script and the same seed give the same chat.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets a context variable before the chat begins. What the platform says of a chat is not to
    /// be given, nor is a declared variable whose value comes from somewhere else: the chat fails
    /// then.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// What the orchestrator says about it. By default it is a new trace.
    pub fn context(mut self, context: ExecutionContext) -> Self {
        self.context = Some(context);
        self
    }

    /// Cancels the chat when `token` is cancelled. A chat that is given up does not cancel it.
    pub fn cancel_on(mut self, token: &CancelToken) -> Self {
        self.token = Some(token.clone());
        self
    }

    /// Makes the chat part of a recorded run (G7): what its agents, its hooks and its tools do, what
    /// its variables are and who speaks next is recorded, and what is on record already is not done
    /// again. In another life of the run the same flow has to be given the same: message, variables,
    /// seed, app and user.
    ///
    /// A recorded chat whose future is dropped is parked, not cancelled, and so is one that ends with
    /// an error that [parks](tenure_core::Error::parks): its agents are stopped, and its own ends
    /// wait for the life of the run that goes on with it.
    pub fn recorded(mut self, steps: &Steps) -> Self {
        self.steps = Some(steps.clone());
        self
    }

    /// What becomes of the chat when everybody in it can only wait for a person. By default it stays.
    pub fn when_waiting(mut self, when_waiting: WhenWaiting) -> Self {
        self.when_waiting = when_waiting;
        self
    }

    /// Whom to tell that the chat waits for a person: whoever runs it as a part of its own work.
    pub(crate) fn questions(mut self, questions: &Questions) -> Self {
        self.questions = Some(questions.clone());
        self
    }

    /// Runs the chat: starts the agents, lets them talk, and stops them again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the chat; its ends run in the background, those of its agents
    /// too. [`Flow::settled`] waits for them. A [recorded](ChatRequest::recorded) chat is parked.
    pub async fn run(self) -> ChatReport {
        begin(self).await
    }
}
