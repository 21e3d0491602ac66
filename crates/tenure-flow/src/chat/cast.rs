//! The agents of one chat while they live.

use crate::flow::{FlowInner, FlowMember};
use std::sync::Arc;
use tenure_core::agent::Agent;
use tenure_core::chat::Chat;
use tenure_core::context::ExecutionContext;
use tenure_core::{CancelToken, Error};

/// The agents of one chat, in the order in which they were started.
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
}

impl Cast {
    /// Makes an instance of everybody; nobody is started.
    pub(crate) fn new(
        flow: &FlowInner,
        chat: &str,
        context: ExecutionContext,
        token: CancelToken,
    ) -> Self {
        let instance = |member: &FlowMember| {
            let agent = member.blueprint.instance();
            if let Some(prepare) = &flow.prepare {
                prepare(&agent, chat);
            }
            agent
        };
        Self {
            host: instance(&flow.host),
            speakers: flow.speakers.iter().map(instance).collect(),
            user: flow.user.as_ref().map(instance),
            helpers: flow.helpers.iter().map(instance).collect(),
            names: flow.names.clone(),
            context: Arc::new(context),
            token,
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

    /// Starts everybody, one after the other.
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
            agent.startup().await.map_err(|error| {
                let name = agent.name();
                Error::orchestration(format!("agent `{name}` did not start: {error}"))
                    .because(error)
            })?;
        }
        Ok(())
    }

    /// Stops everybody, last to first. Who was not started is over at once.
    pub(crate) async fn stop(&self) {
        for agent in self.all().rev() {
            agent.shutdown().await;
        }
    }

    /// Cancels whatever turn goes on.
    pub(crate) fn interrupt(&self) {
        for agent in self.all() {
            agent.cancel();
        }
    }

    /// Asks a helper.
    pub(crate) async fn consult(
        &self,
        helper: &str,
        question: String,
        chat: &Chat,
    ) -> Result<String, Error> {
        let Some(agent) = self.helpers.iter().find(|agent| agent.name() == helper) else {
            return Err(Error::orchestration(format!("the flow has no helper `{helper}`")));
        };
        let request = agent.request(question).in_chat(chat).context(self.context.clone());
        let report = request.cancel_on(&self.token).run().await?;
        Ok(report.output().to_owned())
    }
}
