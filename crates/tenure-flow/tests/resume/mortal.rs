//! Logs that a process dies on, and logs that keep questions.

use serde_json::Value;
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::event::Event;
use tenure_core::step::{MemoryStepLog, ScopeEnd, ScopeRecord, StepKey, StepLog};
use tenure_core::{BoxFuture, Error, RunId};
use tokio::sync::Notify;

/// When a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Before the effect of the next step.
    Before,
    /// After its effect, and before its record.
    After,
}

/// A log whose process dies after so many new steps. Nothing is recorded after that.
#[derive(Clone)]
pub(crate) struct Mortal {
    pub(crate) inner: MemoryStepLog,
    left: Arc<AtomicUsize>,
    death: Death,
    is_dead: Arc<AtomicBool>,
    died: Arc<Notify>,
}

impl Mortal {
    pub(crate) fn new(inner: MemoryStepLog, steps: usize, death: Death) -> Self {
        let left = Arc::new(AtomicUsize::new(steps));
        Self { inner, left, death, is_dead: Arc::default(), died: Arc::default() }
    }

    /// Waits until the process is dead.
    pub(crate) async fn died(&self) {
        self.died.notified().await;
    }

    fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    fn die(&self) {
        self.is_dead.store(true, Ordering::SeqCst);
        self.died.notify_one();
    }
}

impl StepLog for Mortal {
    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        Box::pin(async move {
            if self.is_dead() {
                return pending().await;
            }
            let effect = Box::pin(async {
                let is_last = self.left.load(Ordering::SeqCst) == 0;
                if is_last && self.death == Death::Before {
                    self.die();
                    return pending().await;
                }
                let value = effect.await?;
                if self.is_dead() {
                    return pending().await;
                }
                // What is left may have been used up by others meanwhile.
                let less = |left: usize| left.checked_sub(1);
                if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_err() {
                    self.die();
                    return pending().await;
                }
                Ok(value)
            });
            self.inner.step(key, effect).await
        })
    }

    fn run_id(&self) -> RunId {
        self.inner.run_id()
    }

    fn is_resumed(&self) -> bool {
        self.inner.is_resumed()
    }

    fn life(&self) -> u32 {
        self.inner.life()
    }

    fn trouble(&self) -> Option<Error> {
        self.inner.trouble()
    }

    fn begin<'a>(&'a self, scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        match self.is_dead() {
            true => Box::pin(pending()),
            false => self.inner.begin(scope),
        }
    }

    fn end<'a>(
        &'a self,
        scope: &'a ScopeRecord,
        end: ScopeEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        match self.is_dead() {
            true => Box::pin(pending()),
            false => self.inner.end(scope, end),
        }
    }

    fn unended(&self, path: &str) -> Vec<ScopeRecord> {
        self.inner.unended(path)
    }

    fn announce(&self, place: &str, event: Event) -> bool {
        !self.is_dead() && self.inner.announce(place, event)
    }
}

/// A log that keeps questions: they stand until somebody answers, in whatever life of the run.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) inner: MemoryStepLog,
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    /// The prompts of the questions that were put, each as often as it was.
    pub(crate) put: Arc<Mutex<Vec<String>>>,
    answered: Arc<Notify>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self {
            inner: MemoryStepLog::new(),
            answers: Arc::default(),
            put: Arc::default(),
            answered: Arc::default(),
        }
    }

    /// The log of the next life.
    pub(crate) fn resumed(&self) -> Self {
        Self { inner: self.inner.resumed(), ..self.clone() }
    }

    /// Answers every question whose prompt has this in it.
    pub(crate) fn answer(&self, prompt: &str, answer: &str) {
        let answer = Answer::Respond(answer.to_owned());
        self.answers.lock().expect("no test panics under it").insert(prompt.to_owned(), answer);
        self.answered.notify_waiters();
    }

    fn answer_to(&self, prompt: &str) -> Option<Answer> {
        let answers = self.answers.lock().expect("no test panics under it");
        answers.iter().find(|(part, _)| prompt.contains(part.as_str())).map(|(_, it)| it.clone())
    }
}

impl StepLog for Desk {
    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        self.inner.step(key, effect)
    }

    fn run_id(&self) -> RunId {
        self.inner.run_id()
    }

    fn is_resumed(&self) -> bool {
        self.inner.is_resumed()
    }

    fn life(&self) -> u32 {
        self.inner.life()
    }

    fn trouble(&self) -> Option<Error> {
        self.inner.trouble()
    }

    fn ask<'a>(
        &'a self,
        key: StepKey,
        question: &'a PendingAsk,
        here: BoxFuture<'a, Result<Answer, Error>>,
    ) -> BoxFuture<'a, Result<Answer, Error>> {
        let effect = Box::pin(async move {
            self.put.lock().expect("no test panics under it").push(question.ask.prompt.clone());
            let elsewhere = Box::pin(async {
                loop {
                    let answered = self.answered.notified();
                    if let Some(answer) = self.answer_to(&question.ask.prompt) {
                        return Ok(answer);
                    }
                    answered.await;
                }
            });
            let (answer, _) = futures_util::future::select(here, elsewhere).await.factor_first();
            answer.map(|answer| serde_json::to_value(answer).expect("it is JSON"))
        });
        Box::pin(async move {
            let record = self.inner.step(key, effect).await?;
            Ok(serde_json::from_value(record).expect("it is an answer"))
        })
    }

    fn keeps_asks(&self) -> bool {
        true
    }

    fn begin<'a>(&'a self, scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.begin(scope)
    }

    fn end<'a>(
        &'a self,
        scope: &'a ScopeRecord,
        end: ScopeEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.end(scope, end)
    }

    fn unended(&self, path: &str) -> Vec<ScopeRecord> {
        self.inner.unended(path)
    }

    fn announce(&self, place: &str, event: Event) -> bool {
        self.inner.announce(place, event)
    }
}

/// A log of a run that is given up: what is on record is served, what is not is not done, unless it
/// is an end.
#[derive(Clone)]
pub(crate) struct GivenUp(pub(crate) MemoryStepLog);

impl StepLog for GivenUp {
    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        if key.is_end() {
            return self.0.step(key, effect);
        }
        self.0.step(key, Box::pin(async { Err(Error::abandoned()) }))
    }

    fn run_id(&self) -> RunId {
        self.0.run_id()
    }

    fn is_resumed(&self) -> bool {
        true
    }

    fn life(&self) -> u32 {
        self.0.life()
    }

    fn trouble(&self) -> Option<Error> {
        self.0.trouble()
    }

    fn begin<'a>(&'a self, scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        self.0.begin(scope)
    }

    fn end<'a>(
        &'a self,
        scope: &'a ScopeRecord,
        end: ScopeEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.0.end(scope, end)
    }

    fn unended(&self, path: &str) -> Vec<ScopeRecord> {
        self.0.unended(path)
    }

    fn announce(&self, place: &str, event: Event) -> bool {
        self.0.announce(place, event)
    }
}
