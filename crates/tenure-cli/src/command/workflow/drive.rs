//! One chat, from the start of the first agent to the end of the last.

use super::super::session::listen;
use super::clock::Clock;
use crate::exit::Exit;
use crate::signal::Stopper;
use crate::terminal::Screen;
use anyhow::{Context as _, Result};
use serde_json::Value;
use tenure_cards::team::TeamError;
use tenure_core::CancelToken;
use tenure_core::event::EventBus;
use tenure_core::hook::Limit;
use tenure_flow::{ChatReport, ChatRequest, Flow, Workflow};

/// What a chat is told beside the workflow's files.
pub(super) struct Plan {
    pub(super) message: Option<String>,
    pub(super) app: String,
    pub(super) user: String,
    pub(super) chat_id: Option<String>,
    pub(super) seed: u64,
    pub(super) initial: Option<String>,
    pub(super) variables: Vec<(String, Value)>,
    /// How long all of it may take; what a person takes to answer does not count.
    pub(super) timeout: Option<Limit>,
}

impl Plan {
    fn request(&self, flow: &Flow) -> ChatRequest {
        let mut chat = flow.chat().app(&*self.app).user(&*self.user).seed(self.seed);
        if let Some(message) = &self.message {
            chat = chat.message(&**message);
        }
        if let Some(id) = &self.chat_id {
            chat = chat.id(&**id);
        }
        if let Some(agent) = &self.initial {
            chat = chat.initial_agent(&**agent);
        }
        for (name, value) in &self.variables {
            chat = chat.variable(name, value.clone());
        }
        chat
    }
}

/// A workflow that can be run. Nothing has been executed yet.
pub(super) struct Stage {
    pub(super) workflow: Workflow,
    pub(super) bus: EventBus,
    pub(super) screen: Screen,
    pub(super) stopper: Stopper,
    pub(super) clock: Clock,
}

/// How it went: none if it was stopped before the chat began.
pub(super) type Went = Option<Result<ChatReport, TeamError>>;

impl Stage {
    /// Runs the chat and shows it: everything that was started is over when this returns, also if it
    /// failed, took too long, or was stopped by a signal.
    pub(super) fn run(&self, plan: &Plan) -> Result<Went> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the runtime cannot be started")?;
        let watch = self.screen.watch(&self.bus, runtime.handle());
        listen(&self.screen, &self.stopper)?;
        let went = runtime.block_on(self.drive(plan));
        self.stopper.ended();
        watch.end();
        // What is left belongs to nobody any more, and must not hold up the end of the program.
        runtime.shutdown_background();
        Ok(went)
    }

    async fn drive(&self, plan: &Plan) -> Went {
        let time = async {
            match plan.timeout {
                Some(limit) => self.clock.after(limit.duration()).await,
                None => std::future::pending().await,
            }
            self.stopper.stop(Exit::TimedOut);
        };
        let token = CancelToken::new();
        let cancels = async {
            tokio::select! {
                biased;
                () = self.stopper.stopped() => {}
                () = time => {}
            }
            token.cancel();
            std::future::pending().await
        };
        let went = tokio::select! {
            // In this order: what is stopped before it begins does not begin.
            biased;
            never = cancels => never,
            went = self.chat(plan, &token) => went,
        };
        self.workflow.shutdown().await;
        went
    }

    async fn chat(&self, plan: &Plan, token: &CancelToken) -> Went {
        let opened = tokio::select! {
            biased;
            () = token.cancelled() => return None,
            opened = self.workflow.open() => opened,
        };
        match opened {
            Ok(flow) => Some(Ok(plan.request(&flow).cancel_on(token).run().await)),
            Err(error) => Some(Err(error)),
        }
    }
}
