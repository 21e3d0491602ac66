//! A conversation: several turns in one chat.
//!
//! Each agent that takes part has a scope of its own, opened when it is first spoken to and closed
//! with the conversation. A scope is a task: it holds the chat open, takes one message after the
//! other, and calls the ends in the end, whoever ends it and however.

use super::life::{HeldChat, Runs};
use super::run::fresh_id;
use super::{Run, Stage, Team, TeamError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::chat::Chat;
use tenure_core::drive::{Input, Piece, TurnReport};
use tenure_core::hook::HookFailure;
use tenure_core::message::History;
use tenure_core::{CancelToken, Error};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// A conversation with the agents of a team: many turns, one chat.
///
/// `before_chat` of an agent is called once, when it [joins](Conversation::join) or is first spoken
/// to; `after_chat` is called once, when the conversation ends: by [`end`](Conversation::end), by
/// the team's shutdown, by [`Team::cancel`], or by dropping it, which cancels it. Context variables
/// live as long as the conversation, and are shared by all who take part. The agents keep what was
/// said.
#[must_use = "dropping a conversation cancels it"]
pub struct Conversation {
    /// The id and the variables. Nobody takes part in it; the scopes are beside it.
    chat: Chat,
    members: Vec<Member>,
    runs: Arc<Runs>,
    /// In the order in which they joined.
    scopes: Vec<Scope>,
}

/// An agent that can be spoken to.
struct Member {
    name: Arc<str>,
    agent: Agent,
    /// What its card gives it to begin with.
    history: History,
}

/// The chat of one agent while it lasts.
struct Scope {
    name: Arc<str>,
    token: CancelToken,
    messages: UnboundedSender<Message>,
    /// The failures at the end of the chat.
    ended: oneshot::Receiver<Vec<HookFailure>>,
}

/// What a scope is asked to do.
struct Message {
    input: Input,
    limit: Option<Duration>,
    token: CancelToken,
    text: UnboundedSender<Piece>,
    done: oneshot::Sender<Result<Run, TeamError>>,
}

/// How the chat of an agent begins.
enum Begin {
    Open,
    /// A `before_chat` hook gave the answer, and the chat is over again.
    Finished(Box<Run>),
}

impl Team {
    /// Begins a conversation. Nothing is called before somebody is spoken to.
    pub fn conversation(&self) -> Result<Conversation, TeamError> {
        self.converse(Chat::new(fresh_id(), []))
    }

    /// Goes on with a conversation that another team began, under the same id and with the same
    /// variables. For this team's agents it is a new chat.
    pub fn conversation_after(&self, before: &Conversation) -> Result<Conversation, TeamError> {
        self.converse(before.chat.beside([]))
    }

    fn converse(&self, chat: Chat) -> Result<Conversation, TeamError> {
        let (members, runs) = match &*self.stage() {
            Stage::Running(life) => (life.members(), life.runs()),
            Stage::Over => return Err(TeamError::not_running("the team has been stopped")),
            Stage::Built | Stage::Starting => {
                let message = "the team has not been started; start it first";
                return Err(TeamError::not_running(message));
            }
        };
        let Some(runs) = runs else {
            return Err(TeamError::not_running("the team has been stopped"));
        };
        let members = members.into_iter().map(|(name, agent, history)| {
            let history = history.unwrap_or_default();
            Member { name, agent, history }
        });
        Ok(Conversation { chat, members: members.collect(), runs, scopes: Vec::new() })
    }
}

impl Conversation {
    /// The id of the chat.
    pub fn id(&self) -> &str {
        self.chat.id()
    }

    /// The context variables.
    pub fn variables(&self) -> BTreeMap<String, Value> {
        self.chat.variables()
    }

    /// The agents that take part so far, in the order in which they joined.
    pub fn joined(&self) -> Vec<&str> {
        self.scopes.iter().map(|scope| &*scope.name).collect()
    }

    /// Lets an agent take part: its `before_chat` hooks are called, unless it takes part already.
    /// If one of them finishes the chat its answer is returned, and the agent does not take part.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the chat that is being opened; its ends run in the background.
    pub async fn join(&mut self, agent: &str) -> Result<Option<Run>, TeamError> {
        match self.open(agent).await? {
            Begin::Open => Ok(None),
            Begin::Finished(run) => Ok(Some(*run)),
        }
    }

    /// Says something to an agent, which joins if it has not. What it answers comes by the
    /// [`Saying`]; one message is answered after the other.
    pub async fn say(
        &mut self,
        agent: &str,
        message: impl Into<Input>,
    ) -> Result<Saying, TeamError> {
        self.put(agent, message.into(), None).await
    }

    /// The same within another limit than the cards' for the turn. One of zero is refused.
    pub async fn say_within(
        &mut self,
        agent: &str,
        message: impl Into<Input>,
        limit: Duration,
    ) -> Result<Saying, TeamError> {
        self.put(agent, message.into(), Some(limit)).await
    }

    async fn put(
        &mut self,
        agent: &str,
        input: Input,
        limit: Option<Duration>,
    ) -> Result<Saying, TeamError> {
        let (text, pieces) = unbounded_channel();
        let (done, result) = oneshot::channel();
        let token = CancelToken::new();
        let saying = Saying { pieces, result: Some(result), token: token.clone() };
        match self.open(agent).await? {
            Begin::Finished(run) => drop(done.send(Ok(*run))),
            Begin::Open => {
                let scope = self.scopes.iter().find(|scope| *scope.name == *agent);
                let message = Message { input, limit, token, text, done };
                // If the scope is over, the message is dropped, and whoever waits is told.
                if let Some(scope) = scope {
                    drop(scope.messages.send(message));
                }
            }
        }
        Ok(saying)
    }

    /// Forgets what was said: every agent has the history again that its card gives it. The chat
    /// goes on. Fails while one of them is in a turn, and then some may have forgotten already.
    pub fn forget(&self) -> Result<(), TeamError> {
        for member in &self.members {
            let set = member.agent.set_history(member.history.clone());
            set.map_err(TeamError::run)?;
        }
        Ok(())
    }

    /// Ends the conversation: `after_chat` of everybody who took part, last to first, after what is
    /// being said. Returns the hooks of those ends that failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels what is left of the conversation; its ends run in the background.
    pub async fn end(mut self) -> Vec<HookFailure> {
        let mut failures = Vec::new();
        while let Some(scope) = self.scopes.pop() {
            let Scope { messages, ended, .. } = scope;
            drop(messages);
            failures.extend(ended.await.unwrap_or_default());
        }
        failures
    }

    async fn open(&mut self, name: &str) -> Result<Begin, TeamError> {
        if self.runs.is_over() {
            return Err(TeamError::not_running("the team has been stopped"));
        }
        // A scope may have been ended from outside, by a cancel of all runs.
        self.scopes.retain(|scope| *scope.name != *name || !scope.messages.is_closed());
        if self.scopes.iter().any(|scope| *scope.name == *name) {
            return Ok(Begin::Open);
        }
        let Some(member) = self.members.iter().find(|member| *member.name == *name) else {
            let names: Vec<_> = self.members.iter().map(|member| &*member.name).collect();
            return Err(TeamError::choice(format!(
                "there is no agent `{name}`; there are: {}",
                names.join(", ")
            )));
        };
        let held = self.runs.hold();
        let (begun, begin) = oneshot::channel();
        let (messages, incoming) = unbounded_channel();
        let (over, ended) = oneshot::channel();
        let token = held.token.clone();
        let scope = Scope { name: member.name.clone(), token, messages, ended };
        let opening = CancelOnDrop(Some(&scope.token));
        let chat = self.chat.beside([member.agent.clone()]);
        let place = Place { name: member.name.clone(), agent: member.agent.clone(), chat, held };
        let task = attend(place, self.runs.clone(), incoming, begun);
        self.runs.spawn(async move {
            let failures = task.await;
            // Nobody may be there any more to hear of them.
            let _ = over.send(failures);
        });
        let begin = begin.await.unwrap_or_else(|_| Err(over_already()));
        opening.opened();
        let begin = begin?;
        if matches!(begin, Begin::Open) {
            self.scopes.push(scope);
        }
        Ok(begin)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        for scope in &self.scopes {
            scope.token.cancel();
        }
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("id", &self.id())
            .field("joined", &self.joined())
            .finish_non_exhaustive()
    }
}

struct CancelOnDrop<'a>(Option<&'a CancelToken>);

impl CancelOnDrop<'_> {
    fn opened(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.0 {
            token.cancel();
        }
    }
}

/// A message that is being answered. Dropping it cancels the turn, whose ends run all the same,
/// before the next message is taken.
#[must_use = "dropping it cancels the turn"]
#[derive(Debug)]
pub struct Saying {
    pieces: UnboundedReceiver<Piece>,
    result: Option<oneshot::Receiver<Result<Run, TeamError>>>,
    token: CancelToken,
}

impl Saying {
    /// The next piece of the answer while it is made, or `None` when there are no more.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Piece> {
        self.pieces.recv().await
    }

    /// The next piece, if it is there already.
    pub fn ready(&mut self) -> Option<Piece> {
        self.pieces.try_recv().ok()
    }

    /// Cancels the turn. [`finish`](Saying::finish) tells when its ends have run.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Waits for the end of the turn.
    pub async fn finish(mut self) -> Result<Run, TeamError> {
        let Some(result) = self.result.take() else { return Err(over_already()) };
        // The turn goes on until there is a result, so that one is always there to be cancelled.
        result.await.unwrap_or_else(|_| Err(over_already()))
    }
}

impl Drop for Saying {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

fn over_already() -> TeamError {
    TeamError::not_running("the conversation is over")
}

/// Where a scope takes place.
struct Place {
    name: Arc<str>,
    agent: Agent,
    chat: Chat,
    held: HeldChat,
}

/// Holds the chat of one agent open, and has it answer what comes in. Returns the hooks that failed
/// at its end.
async fn attend(
    place: Place,
    runs: Arc<Runs>,
    mut incoming: UnboundedReceiver<Message>,
    begun: oneshot::Sender<Result<Begin, TeamError>>,
) -> Vec<HookFailure> {
    let Place { name, agent, chat, held } = place;
    let mut begun = Some(begun);
    let mut told = 0;
    let is_open = AtomicBool::new(false);
    let result = {
        let (begun, told, all) = (&mut begun, &mut told, &held.token);
        let running = chat.run(async |chat| {
            is_open.store(true, Ordering::Release);
            if let Some(begun) = begun.take() {
                let _ = begun.send(Ok(Begin::Open));
            }
            while let Some(message) = next(&mut incoming, all).await {
                let Message { input, limit, token, text, done } = message;
                let one = runs.begin();
                let turn = turn(&agent, chat, (input, limit), (&token, all), &text).await;
                drop(one);
                let failures = chat.failures();
                let new = failures.get(*told..).unwrap_or_default().to_vec();
                *told = failures.len();
                let run = turn.map_err(TeamError::run).map(|turn| Run {
                    agent: name.clone(),
                    chat: chat.id().into(),
                    output: turn.output().to_owned(),
                    turn: Some(turn),
                    failures: new,
                });
                let _ = done.send(run);
            }
            incoming.close();
            if all.is_cancelled() {
                // It is noticed as soon as the body waits.
                chat.cancel();
                std::future::pending::<()>().await;
            }
            Ok(())
        });
        // A turn is cancelled by its token and ends in its own good order. What comes before it
        // knows only the chat.
        with_cancel(running, all, || {
            if !is_open.load(Ordering::Acquire) {
                chat.cancel();
            }
        })
        .await
    };
    drop(held);
    if let Some(begun) = begun.take() {
        let begin = match result.end.error {
            Some(error) => Err(TeamError::run(error)),
            None => Ok(Begin::Finished(Box::new(Run {
                agent: name,
                chat: chat.id().into(),
                output: result.end.output.unwrap_or_default().into_text(),
                turn: None,
                failures: chat.failures(),
            }))),
        };
        let _ = begun.send(begin);
    }
    chat.failures().get(told..).unwrap_or_default().to_vec()
}

/// The next message; none if nobody can send one any more, or everything is cancelled.
async fn next(incoming: &mut UnboundedReceiver<Message>, all: &CancelToken) -> Option<Message> {
    let mut cancelled = pin!(all.cancelled());
    poll_fn(|task| match cancelled.as_mut().poll(task) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => incoming.poll_recv(task),
    })
    .await
}

/// One turn. It is cancelled by its own token, or by the one of the whole chat.
async fn turn(
    agent: &Agent,
    chat: &Chat,
    (input, limit): (Input, Option<Duration>),
    (own, all): (&CancelToken, &CancelToken),
    text: &UnboundedSender<Piece>,
) -> Result<TurnReport, Error> {
    let mut request = agent.request(input).in_chat(chat).cancel_on(own);
    if let Some(limit) = limit {
        request = request.limit(limit);
    }
    let answer = async {
        let mut stream = request.stream();
        while let Some(piece) = stream.next_piece().await {
            // Who does not listen gets the answer in the end.
            let _ = text.send(piece);
        }
        stream.finish().await
    };
    with_cancel(answer, all, || own.cancel()).await
}

/// Runs `work` to its end, and calls `cancel` once as soon as `token` is cancelled.
async fn with_cancel<T>(
    work: impl Future<Output = T>,
    token: &CancelToken,
    cancel: impl FnOnce(),
) -> T {
    let (mut work, mut cancelled) = (pin!(work), pin!(token.cancelled()));
    let mut cancel = Some(cancel);
    poll_fn(|task| {
        if cancel.is_some()
            && cancelled.as_mut().poll(task).is_ready()
            && let Some(cancel) = cancel.take()
        {
            cancel();
        }
        work.as_mut().poll(task)
    })
    .await
}
