//! A team whose run is recorded: it can stop at any moment and go on from its record.

use super::{Stage, Team, TeamError};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Error;
use tenure_core::agent::Agent;
use tenure_core::chat::{Chat, ChatResult, Waits};
use tenure_core::message::History;
use tenure_core::step::{Steps, WhenWaiting};
use tokio::sync::Notify;
use tokio::time::sleep;

/// How often it is looked whether everybody waits, while questions stand.
const LOOK: Duration = Duration::from_millis(50);
/// How much of a question a message shows.
const MOST_WORDS: usize = 200;

/// Where the run of a team is recorded. See [`TeamBuilder::recorded`](super::TeamBuilder::recorded).
#[derive(Clone, Debug)]
pub struct Recording {
    /// The place in a log: of a run that is new, or of one that goes on.
    pub steps: Steps,
    /// What becomes of the run when it waits for a person.
    pub when_waiting: WhenWaiting,
}

impl Recording {
    /// A run that is recorded here, and that stays in its process while it waits for a person.
    pub fn new(steps: Steps) -> Self {
        Self { steps, when_waiting: WhenWaiting::Stay }
    }

    /// What becomes of the run when it waits for a person.
    #[must_use]
    pub fn when_waiting(mut self, when_waiting: WhenWaiting) -> Self {
        self.when_waiting = when_waiting;
        self
    }

    /// The place of the run's turn.
    pub(super) fn turn(&self) -> Steps {
        self.steps.at("turn")
    }

    /// The id of the run's chat, the same in every life of the run.
    pub(super) fn chat_id(&self) -> String {
        format!("chat-{}", self.steps.log().run_id())
    }

    fn parks(&self) -> bool {
        self.when_waiting == WhenWaiting::Park && self.steps.log().keeps_asks()
    }

    /// Drives a chat that is recorded. An error that says what it waits for means that the chat was
    /// parked: its future is dropped, and nothing of it has ended.
    pub(super) async fn drive<T>(
        &self,
        chat: &Chat,
        agent: &Agent,
        running: impl Future<Output = ChatResult<T>>,
    ) -> Result<ChatResult<T>, Error> {
        if !self.parks() {
            return Ok(running.await);
        }
        let asked = Arc::new(Notify::new());
        let told = asked.clone();
        chat.on_wait(move |waits| {
            if waits == Waits::ForPerson {
                told.notify_one();
            }
        });
        let mut running = pin!(running);
        loop {
            tokio::select! {
                biased;
                result = &mut running => return Ok(result),
                () = asked.notified() => {}
            }
            // Others may be at work beside whoever asks; they are let come as far as they can.
            while !agent.pending_asks().is_empty() {
                tokio::select! {
                    biased;
                    result = &mut running => return Ok(result),
                    () = sleep(LOOK) => {}
                }
                let waits_for = waits_for(agent);
                if let Some(waits_for) = waits_for.filter(|_| chat.is_waiting()) {
                    return Err(Error::waiting(waits_for));
                }
            }
        }
    }
}

/// What an agent and its clones wait for, in words.
fn waits_for(agent: &Agent) -> Option<String> {
    let asks = agent.pending_asks();
    let first = asks.first()?;
    let prompt = match first.ask.prompt.char_indices().nth(MOST_WORDS) {
        Some((end, _)) => format!("{}…", &first.ask.prompt[..end]),
        None => first.ask.prompt.clone(),
    };
    let more = match asks.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    Some(format!(
        "the run waits for a person: `{}` asks (question {}): {prompt}{more}",
        first.agent, first.id
    ))
}

impl Team {
    /// What an agent has said and heard, if the team is running and has the agent.
    pub fn history(&self, agent: &str) -> Option<History> {
        self.agent(agent).map(|agent| agent.history())
    }

    /// Has an agent go on with an earlier conversation. The team has to be running, and the agent at
    /// rest; one that keeps no history does not see it.
    ///
    /// A recorded run needs the same history in each of its lives.
    pub fn set_history(&self, agent: &str, history: History) -> Result<(), TeamError> {
        let name = self.entry(Some(agent))?;
        if !matches!(&*self.stage(), Stage::Running(_)) {
            let message = "the team is not running; start it first";
            return Err(TeamError::not_running(message));
        }
        let Some(agent) = self.agent(name) else {
            return Err(TeamError::choice(format!("there is no agent `{name}`")));
        };
        agent.set_history(history).map_err(TeamError::run)
    }
}
