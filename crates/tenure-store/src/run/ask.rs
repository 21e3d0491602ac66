//! A question of a run: it stands on record until somebody answers, here or elsewhere, now or while
//! nothing runs.

use super::activity::Frame;
use super::difference::{Difference, Now};
use super::log::{Running, Todo};
use super::{Inner, Resume, rows};
use crate::ask::{self, AskStatus, Decided, NewAsk, Opened};
use crate::error::StoreError;
use crate::fail;
use crate::store::lock;
use serde_json::Value;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::step::StepKey;
use tenure_core::{BoxFuture, Error};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Who answers in the process that asks.
const HERE: &str = "here";

/// A clock that is set, and a machine that sleeps, are noticed within this time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Inner {
    pub(super) async fn ask(
        &self,
        key: StepKey,
        question: &PendingAsk,
        here: BoxFuture<'_, Result<Answer, Error>>,
    ) -> Result<Answer, Error> {
        let within = Frame::current();
        if let Todo::Serve(value) = self.look_up(&key, within.as_ref())? {
            return self.read_answer(&key, value);
        }
        let mut running = Running { log: self, key: Some(key) };
        let key = running.key();
        if matches!(self.way(), Resume::Abandon | Resume::Cancel) {
            // Nobody is asked any more, not even by an end.
            return Err(self.stop(key));
        }
        self.room().await?;
        let waiting = Waiting::new(self, key.id(self.run()));
        let opened = self.open(key, question).await?;
        // Only a question that is on record is one to wait for.
        let standing = self.activity.asks(within.clone());
        if let Some(drive) = &self.drive {
            drive.look_now();
        }
        let answer = match opened {
            Opened::Decided(answer) => answer,
            Opened::Other(then) => {
                let recorded = serde_json::to_value(&then).unwrap_or_default();
                let question = serde_json::to_value(&question.ask).unwrap_or_default();
                let (run, now) = (self.run(), Now::OtherQuestion { question });
                let step = key.clone();
                return Err(self.differs(Difference::new(run, step, 0, recorded, now)));
            }
            Opened::Open { expires, .. } => {
                fail::point(fail::ASK_OPENED);
                self.wait(&waiting, expires, here).await?
            }
        };
        drop(standing);
        let value = serde_json::to_value(&answer).unwrap_or_default();
        let (run, row) =
            (self.shared.name(), rows::step(self.run(), key, &value, within.as_deref()));
        let goes_on = !self.activity.is_waiting() && self.shared.says_waiting(false);
        let seq = self.commit(move |tx| {
            if goes_on {
                rows::goes_on(tx, &run)?;
            }
            tx.append(&run, row)
        });
        let seq = seq.await?;
        running.recorded(seq);
        fail::point(fail::ASK_ANSWERED);
        Ok(answer)
    }

    fn read_answer(&self, key: &StepKey, value: Value) -> Result<Answer, Error> {
        serde_json::from_value(value).map_err(|error| {
            self.shared
                .park(Error::replay(format!("the answer of step {key} cannot be read: {error}")))
        })
    }

    /// Puts the question on record.
    async fn open(&self, key: &StepKey, question: &PendingAsk) -> Result<Opened, Error> {
        let parked = |error: StoreError| self.shared.park(error.into());
        let ask = NewAsk::new(&self.store, self.run(), key, question).map_err(parked)?;
        self.commit(move |tx| ask::open(tx, &ask)).await
    }

    /// Waits for the first answer.
    async fn wait(
        &self,
        waiting: &Waiting<'_>,
        expires: Option<SystemTime>,
        mut here: BoxFuture<'_, Result<Answer, Error>>,
    ) -> Result<Answer, Error> {
        loop {
            let mut decided = pin!(waiting.decided.notified());
            let mut time_is_up = pin!(async {
                match expires {
                    Some(expires) => {
                        let left = expires.duration_since(SystemTime::now()).unwrap_or_default();
                        sleep(left.min(LOOK_AGAIN)).await;
                    }
                    None => pending().await,
                }
            });
            let first = poll_fn(|task| {
                if decided.as_mut().poll(task).is_ready() {
                    return Poll::Ready(First::Elsewhere);
                }
                if let Poll::Ready(answer) = here.as_mut().poll(task) {
                    return Poll::Ready(First::Here(answer));
                }
                time_is_up.as_mut().poll(task).map(|()| First::Time)
            });
            let id = waiting.id.clone();
            match first.await {
                First::Here(Ok(answer)) => return self.decide(id, answer).await,
                First::Here(Err(error)) => return Err(self.not_answered(id, error).await),
                First::Elsewhere => {
                    let path = self.store.file();
                    let found = self.store.read(|conn| ask::decision(conn, path, &id));
                    match found.map_err(|error| self.shared.park(error.into()))? {
                        Some(answer) => return Ok(answer),
                        None => self.check()?,
                    }
                }
                First::Time if expires.is_some_and(|expires| expires <= SystemTime::now()) => {
                    if let Some(answer) = self.commit(move |tx| ask::expire(tx, &id)).await? {
                        return Ok(answer);
                    }
                }
                First::Time => {}
            }
        }
    }

    /// The answer of whoever is here. Another one may have come first, and counts then.
    async fn decide(&self, id: String, answer: Answer) -> Result<Answer, Error> {
        let answer =
            ask::redacted(&self.store, answer).map_err(|error| self.shared.park(error.into()))?;
        let given = answer.clone();
        let decided =
            self.commit(move |tx| ask::decide(tx, &id, AskStatus::Answered, &given, HERE)).await?;
        match decided {
            Decided::Now => Ok(answer),
            Decided::Before(first) => Ok(first),
            Decided::Unknown => Err(self.shared.park(Error::store(
                "a question that was put on record is gone; check the file with `tenure db verify`",
            ))),
        }
    }

    /// Nobody here can answer. Unless the run only stops here, the question is taken back: an answer
    /// to it would reach nobody.
    async fn not_answered(&self, id: String, error: Error) -> Error {
        if error.parks() {
            return error;
        }
        let why = Answer::Reject(error.to_string());
        let taken_back =
            self.commit(move |tx| ask::decide(tx, &id, AskStatus::Cancelled, &why, HERE));
        match taken_back.await {
            Ok(_) => error,
            Err(trouble) => trouble,
        }
    }
}

enum First {
    Here(Result<Answer, Error>),
    Elsewhere,
    Time,
}

/// A question that is waited for here.
struct Waiting<'a> {
    log: &'a Inner,
    id: String,
    decided: Arc<Notify>,
}

impl<'a> Waiting<'a> {
    fn new(log: &'a Inner, id: String) -> Self {
        let decided = Arc::new(Notify::new());
        lock(&log.asks).insert(id.clone(), decided.clone());
        if let Some(drive) = &log.drive {
            drive.look_now();
        }
        Self { log, id, decided }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.log.asks).remove(&self.id);
    }
}
