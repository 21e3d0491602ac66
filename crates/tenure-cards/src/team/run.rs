//! One run of a team.

use super::life::OneRun;
use super::{Stage, Team, TeamError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::chat::Chat;
use tenure_core::drive::{Input, TurnReport};
use tenure_core::hook::HookFailure;

/// What a run did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// The agent that was asked.
    pub agent: Arc<str>,
    /// The id of the chat.
    pub chat: Arc<str>,
    /// The answer.
    pub output: String,
    /// The turn; none if a `before_chat` hook gave the answer.
    pub turn: Option<TurnReport>,
    /// Hooks of the chat that failed without changing the outcome.
    pub failures: Vec<HookFailure>,
}

impl Team {
    /// Asks an agent: the one that is named, else the one that [`entry`](Team::entry) finds.
    ///
    /// Runs may follow one another, and may go on at the same time: one whose agent is busy runs on
    /// a fork of it. A team that is [recorded](super::TeamBuilder::recorded) runs once; if the run
    /// cannot go on here and now, the error [says so](TeamError::is_parked).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the run; its ends run in the background. A recorded run is parked
    /// instead: it goes on from its record, and its ends wait for that.
    pub async fn run(
        &self,
        agent: Option<&str>,
        message: impl Into<Input>,
    ) -> Result<Run, TeamError> {
        self.ask(agent, message.into(), None).await
    }

    /// The same within another limit than the cards' for the turn. One of zero is refused.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the run; its ends run in the background.
    pub async fn run_within(
        &self,
        agent: Option<&str>,
        message: impl Into<Input>,
        limit: Duration,
    ) -> Result<Run, TeamError> {
        self.ask(agent, message.into(), Some(limit)).await
    }

    async fn ask(
        &self,
        agent: Option<&str>,
        input: Input,
        limit: Option<Duration>,
    ) -> Result<Run, TeamError> {
        let name: Arc<str> = self.entry(agent)?.into();
        let (agent, one) = self.begin(&name)?;
        let recording = self.recording.as_ref();
        let chat = match recording {
            Some(recording) => {
                let chat = Chat::new(recording.chat_id(), [agent.clone()]);
                chat.record(&recording.steps);
                chat
            }
            None => Chat::new(fresh_id(), [agent.clone()]),
        };
        let begun = AtomicBool::new(false);
        let token = one.token.clone();
        let result = {
            let running = chat.run(async |chat| {
                begun.store(true, Ordering::Release);
                let mut request = agent.request(input).in_chat(chat).cancel_on(&token);
                if let Some(recording) = recording {
                    request = request.recorded(&recording.turn());
                }
                match limit {
                    Some(limit) => request.limit(limit).handle().await,
                    None => request.handle().await,
                }
            });
            let mut running = std::pin::pin!(async {
                match recording {
                    Some(recording) => recording.drive(&chat, &agent, running).await,
                    None => Ok(running.await),
                }
            });
            let mut cancelled = std::pin::pin!(token.cancelled());
            let mut told = false;
            std::future::poll_fn(|task| {
                if !told && cancelled.as_mut().poll(task).is_ready() {
                    told = true;
                    // A turn is cancelled by its token and ends in its own good order. What comes
                    // before it knows only the chat.
                    if !begun.load(Ordering::Acquire) {
                        chat.cancel();
                    }
                }
                running.as_mut().poll(task)
            })
            .await
        };
        drop(one);
        let result = result.map_err(TeamError::run)?;
        let chat_id: Arc<str> = chat.id().into();
        match (result.value, result.end.error) {
            (_, Some(error)) => Err(TeamError::run(error)),
            (Some(turn), None) => Ok(Run {
                agent: name,
                chat: chat_id,
                output: turn.output().to_owned(),
                turn: Some(turn),
                failures: chat.failures(),
            }),
            (None, None) => Ok(Run {
                agent: name,
                chat: chat_id,
                output: result.end.output.unwrap_or_default().into_text(),
                turn: None,
                failures: chat.failures(),
            }),
        }
    }

    fn begin(&self, name: &str) -> Result<(Agent, OneRun), TeamError> {
        match &*self.stage() {
            Stage::Running(life) => match (life.agent(name), life.runs()) {
                (Some(_), Some(runs)) if self.recording.is_some() && !runs.begin_recorded() => {
                    Err(TeamError::not_running(
                        "the team has had its recorded run; build another team for another run",
                    ))
                }
                (Some(agent), Some(runs)) => Ok((agent, runs.begin())),
                _ => Err(TeamError::choice(format!("there is no agent `{name}`"))),
            },
            Stage::Over => Err(TeamError::not_running("the team has been stopped")),
            Stage::Built | Stage::Starting => {
                Err(TeamError::not_running("the team has not been started; start it first"))
            }
        }
    }
}

/// An id that no other chat of this machine has.
pub(super) fn fresh_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = now.map_or(0, |now| now.as_millis());
    format!("chat-{millis:x}-{:x}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
