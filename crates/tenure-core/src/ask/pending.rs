//! Questions that wait for an answer.

use super::{Answer, Ask};
use crate::agent::Inner;
use crate::context::{Batch, Cx};
use crate::drive::Waiting;
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::Point;
use crate::id::InstanceId;
use crate::kernel::caught;
use crate::sync::Mutex;
use serde::Serialize;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// A question that waits for an answer.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PendingAsk {
    /// Its id, scoped to the instance, so that no two agents can be taken for one another.
    pub id: Arc<str>,
    /// The agent that asks.
    pub agent: Arc<str>,
    /// The instance that asks.
    pub instance: InstanceId,
    /// What it asks.
    pub ask: Ask,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It counts.
    Accepted,
    /// Another answer came first.
    AlreadyDecided,
    /// There is no such question.
    Unknown,
}

/// The questions of one instance.
#[derive(Default)]
pub(crate) struct Asks {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    open: Vec<(PendingAsk, oneshot::Sender<Answer>)>,
    decided: Vec<Arc<str>>,
}

/// How many decided questions are remembered, so that a second answer is told so.
const REMEMBERED: usize = 1024;

impl Asks {
    fn open(&self, inner: &Inner, ask: Ask) -> (PendingAsk, oneshot::Receiver<Answer>) {
        let mut state = self.state.lock();
        state.last += 1;
        let pending = PendingAsk {
            id: format!("{}/{}", inner.id, state.last).into(),
            agent: inner.name().into(),
            instance: inner.id,
            ask,
        };
        let (answer, wait) = oneshot::channel();
        state.open.push((pending.clone(), answer));
        (pending, wait)
    }

    fn close(&self, id: &str) {
        let mut state = self.state.lock();
        if let Some(at) = state.open.iter().position(|(ask, _)| &*ask.id == id) {
            let (ask, _) = state.open.remove(at);
            state.remember(ask.id);
        }
    }

    pub(crate) fn pending(&self) -> Vec<PendingAsk> {
        self.state
            .lock()
            .open
            .iter()
            .map(|(ask, _)| ask.clone())
            .collect()
    }

    pub(crate) fn answer(&self, id: &str, answer: Answer) -> Answered {
        let mut state = self.state.lock();
        match state.open.iter().position(|(ask, _)| &*ask.id == id) {
            Some(at) => {
                let (ask, waiting) = state.open.remove(at);
                state.remember(ask.id);
                match waiting.send(answer) {
                    Ok(()) => Answered::Accepted,
                    Err(_) => Answered::AlreadyDecided,
                }
            }
            None if state.decided.iter().any(|decided| &**decided == id) => {
                Answered::AlreadyDecided
            }
            None => Answered::Unknown,
        }
    }
}

impl State {
    fn remember(&mut self, id: Arc<str>) {
        if self.decided.len() >= REMEMBERED {
            self.decided.remove(0);
        }
        self.decided.push(id);
    }
}

/// Asks, and waits. The clock of whoever asks stands still, and so does the turn's.
pub(crate) async fn ask(cx: Cx<'_>, batch: Option<Batch<'_>>, ask: Ask) -> Result<Answer, Error> {
    // What an `after_model` hook approved is settled.
    if ask.is_approval() && batch.is_some_and(|batch| batch.state.approved) {
        return Ok(Answer::Approve);
    }
    let _paused = cx.clock.pause();
    let asked_at = Instant::now();
    let waiting = Waiting::begin(cx, batch).await;
    let result = match (cx.site.steps(), cx.site.turn) {
        (Some(log), Some(turn)) => {
            let fingerprint = crate::step::fingerprint(&ask);
            let key = turn.step_key("ask", &ask.prompt, fingerprint);
            let effect = async {
                let answer = wait_for_answer(cx, ask).await?;
                crate::step::encode(&answer)
            };
            match log.step(key, Box::pin(effect)).await {
                Ok(record) => crate::step::decode(record),
                Err(error) => Err(error),
            }
        }
        _ => wait_for_answer(cx, ask).await,
    };
    if let Some(turn) = cx.site.turn {
        turn.waited(asked_at.elapsed());
    }
    waiting.end().await;
    result
}

async fn wait_for_answer(cx: Cx<'_>, ask: Ask) -> Result<Answer, Error> {
    let inner = cx.site.inner;
    let asker = inner.blueprint.asker.as_ref();
    if asker.is_none() && !inner.is_watched() {
        return Err(Error::new(
            ErrorKind::Denied,
            format!(
                "nobody can be asked: {}; give the agent an asker (`on_ask`), or subscribe to its \
                 events and call `answer`",
                ask.prompt
            ),
        ));
    }
    let expires_after = ask.expires_after;
    let asks = &inner.extra().asks;
    let (pending_ask, answer) = asks.open(inner, ask);
    let _closes = Closes {
        asks,
        id: pending_ask.id.clone(),
    };
    cx.site.emit(|| EventKind::Asked {
        ask: pending_ask.id.clone(),
        prompt: pending_ask.ask.prompt.clone(),
    });

    let mut given = std::pin::pin!(answer);
    let mut asked = std::pin::pin!(async {
        match asker {
            Some(asker) => match asker.answer(&pending_ask).await {
                Some(answer) => answer,
                None => pending().await,
            },
            None => pending().await,
        }
    });
    let mut expiry = std::pin::pin!(async {
        match expires_after {
            Some(after) => sleep(after).await,
            None => pending().await,
        }
    });
    let result = poll_fn(|task| {
        if let Poll::Ready(Ok(answer)) = given.as_mut().poll(task) {
            return Poll::Ready(Ok(answer));
        }
        match caught(|| asked.as_mut().poll(task)) {
            Poll::Ready(Ok(answer)) => return Poll::Ready(Ok(answer)),
            Poll::Ready(Err(panic)) => {
                return Poll::Ready(Err(Error::new(
                    ErrorKind::Ask,
                    format!("the asker panicked: {panic}"),
                )));
            }
            Poll::Pending => {}
        }
        if expiry.as_mut().poll(task).is_ready() {
            let reason = "nobody answered in time".to_owned();
            return Poll::Ready(Ok(Answer::Reject(reason)));
        }
        // Ends are not cut off by a cancel, and neither is what they ask.
        let ends = cx.point == Point::AfterAgent || cx.point == Point::AfterChat;
        if !ends
            && cx
                .site
                .signal
                .is_some_and(|signal| signal.register(task.waker()))
        {
            return Poll::Ready(Err(Error::cancelled()));
        }
        Poll::Pending
    })
    .await;
    if let Ok(answer) = &result {
        let decision = answer.name();
        cx.site.emit(|| EventKind::Answered {
            ask: pending_ask.id.clone(),
            decision,
        });
    }
    result
}

/// A question is closed however the wait for it ends.
struct Closes<'a> {
    asks: &'a Asks,
    id: Arc<str>,
}

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        self.asks.close(&self.id);
    }
}
