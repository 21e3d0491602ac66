//! One chat, from the start of the first agent to the end of the last.

use super::super::ground::{After, Ground};
use super::super::recorded::{Kept, Life};
use super::super::session::of_team;
use super::clock::Clock;
use crate::exit::Exit;
use crate::kill::kill_descendants;
use crate::signal::Stopper;
use crate::terminal::Screen;
use serde_json::Value;
use tenure_cards::diagnostic::Report;
use tenure_cards::team::TeamError;
use tenure_core::ask::Asker;
use tenure_core::event::EventBus;
use tenure_core::hook::Limit;
use tenure_core::{CancelCause, CancelToken, Error};
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
    fn request(&self, flow: &Flow, life: Option<&Life>) -> ChatRequest {
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
        if let Some(life) = life {
            chat = chat.recorded(&life.steps()).when_waiting(life.when_waiting());
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
    /// The same workflow again, in a run that is on record.
    pub(super) fn on_record(
        self,
        life: &Life,
        asker: impl Asker,
        model: Option<&str>,
    ) -> Result<Self, Report> {
        let Self { workflow, bus, screen, stopper, clock } = self;
        let loaded = workflow.loaded().clone();
        let asker = clock.stopped_by(asker);
        let mut builder = Workflow::builder(loaded).events(&bus).on_ask(asker);
        builder = builder.memory(life.memory()).cache(life.cache()).now(life.date());
        if let Some(model) = model {
            builder = builder.model_override(model);
        }
        screen.shows(life.run());
        Ok(Self { workflow: builder.build()?, bus, screen, stopper, clock })
    }

    /// Runs the chat and shows it: everything that was started is over when this returns, also if it
    /// failed, took too long, or was stopped by a signal. `life` is the life of the run that this is,
    /// if it is on record.
    pub(super) fn run(
        &self,
        ground: &Ground,
        after: After,
        plan: &Plan,
        life: Option<&Life>,
    ) -> (Went, Option<Kept>) {
        let watch = self.screen.watch(&self.bus, ground.handle());
        ground.show(&self.screen);
        let ended = ground.drive(&self.stopper, life.map(Life::cancel), async {
            match life {
                Some(life) => {
                    let (went, kept) = self.live(plan, life).await;
                    (went, Some(kept))
                }
                None => (self.drive(plan, None).await, None),
            }
        });
        ground.run_ended(after);
        watch.end();
        ended
    }

    /// Drives one life of a recorded chat, and puts on record what came of it.
    async fn live(&self, plan: &Plan, life: &Life) -> (Went, Kept) {
        let went = tokio::select! {
            biased;
            () = life.killed() => {
                kill_descendants();
                return (None, life.finish(Err(Error::abandoned())).await);
            }
            went = self.drive(plan, Some(life)) => went,
        };
        let result = match (life.trouble(), &went) {
            (Some(trouble), _) => Err(trouble),
            (None, None) => Err(Error::cancelled()),
            (None, Some(Err(error))) => Err(of_team(error)),
            (None, Some(Ok(report))) => match &report.error {
                Some(error) => Err(error.clone()),
                None => Ok(Value::from(&*report.output)),
            },
        };
        let kept = life.finish(result).await;
        (went, kept)
    }

    async fn drive(&self, plan: &Plan, life: Option<&Life>) -> Went {
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
                () = self.stopper.stopped() => token.cancel(),
                () = time => token.cancel_for(CancelCause::TimeIsUp),
            }
            std::future::pending().await
        };
        let went = tokio::select! {
            // In this order: what is stopped before it begins does not begin.
            biased;
            never = cancels => never,
            went = self.chat(plan, &token, life) => went,
        };
        self.workflow.shutdown().await;
        went
    }

    async fn chat(&self, plan: &Plan, token: &CancelToken, life: Option<&Life>) -> Went {
        let opened = tokio::select! {
            biased;
            () = token.cancelled() => return None,
            opened = self.workflow.open() => opened,
        };
        match opened {
            Ok(flow) => Some(Ok(plan.request(&flow, life).cancel_on(token).run().await)),
            Err(error) => Some(Err(error)),
        }
    }
}
