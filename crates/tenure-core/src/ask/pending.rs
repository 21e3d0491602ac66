//! Questions that wait for an answer.

use super::{Answer, Ask, Misfit, check_text};
use crate::context::{Batch, Cx};
use crate::drive::Waiting;
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::id::InstanceId;
use crate::kernel::caught;
use crate::step::{StepKey, StepScope};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use serde::Serialize;
use serde_json::Value;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::oneshot;
use tokio::time::sleep;

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
    /// The hook that asks; none if a tool itself does.
    pub hook: Option<Arc<str>>,
    /// The tool whose call it is about, where a hook around a tool call or a tool asks.
    pub tool: Option<Arc<str>>,
    /// The id of that call.
    pub call_id: Option<Arc<str>>,
    /// The JSON Schema of that tool's arguments.
    pub parameters: Option<Arc<Value>>,
    /// What it asks.
    pub ask: Ask,
}

impl PendingAsk {
    /// A question of `agent`, as an [`Asker`](super::Asker) is given one. For tests of askers: no
    /// agent waits for the answer.
    pub fn new(agent: impl Into<Arc<str>>, ask: Ask) -> Self {
        let instance = InstanceId::unique();
        Self {
            id: format!("{instance}/1").into(),
            agent: agent.into(),
            instance,
            hook: None,
            tool: None,
            call_id: None,
            parameters: None,
            ask,
        }
    }

    /// A question that is about to be put.
    fn of(cx: Cx<'_>, batch: Option<Batch<'_>>, ask: Ask, id: Arc<str>) -> Self {
        let inner = cx.site.inner;
        let entry = inner.blueprint.chain.entries.get(cx.place());
        let call = batch.map(|batch| &batch.calls[batch.index]);
        let spec = batch.zip(call).and_then(|(batch, call)| batch.tools(cx.site).spec(&call.name));
        Self {
            id,
            agent: inner.name().into(),
            instance: inner.id,
            hook: entry.map(|entry| entry.name.clone()),
            tool: call.map(|call| call.name.clone()),
            call_id: call.map(|call| call.id.clone()),
            parameters: spec.map(|spec| Arc::new(spec.parameters.clone())),
            ask,
        }
    }

    /// Whether the answer has the form that was asked for.
    pub fn check(&self, answer: &Answer) -> Result<(), Misfit> {
        match (answer, &self.ask.schema) {
            (Answer::Respond(text), Some(schema)) if !self.ask.is_approval() => {
                check_text(schema, text)
            }
            _ => Ok(()),
        }
    }
}

/// What became of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answered {
    /// It counts.
    Accepted,
    /// Another answer came first.
    AlreadyDecided,
    /// There is no such question.
    Unknown,
    /// It does not have the form that was asked for, and the question stays open.
    Unfit(Misfit),
}

/// The questions of one instance and of those that it spawned: whoever answers for it answers for
/// them, and holds no handle of them.
#[derive(Default)]
pub(crate) struct Asks {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    open: Vec<Open>,
    decided: Vec<Arc<str>>,
}

struct Open {
    ask: PendingAsk,
    /// Who asks, and everybody that it was spawned by.
    lineage: Vec<InstanceId>,
    answer: oneshot::Sender<Answer>,
}

/// How many decided questions are remembered, so that a second answer is told so.
const REMEMBERED: usize = 1024;

impl Asks {
    fn next_id(&self, instance: InstanceId) -> Arc<str> {
        let mut state = self.state.lock();
        state.last += 1;
        format!("{instance}/{}", state.last).into()
    }

    fn open(&self, cx: Cx<'_>, ask: PendingAsk) -> oneshot::Receiver<Answer> {
        let (answer, wait) = oneshot::channel();
        let lineage = cx.site.inner.lineage().map(|ancestor| ancestor.id).collect();
        self.state.lock().open.push(Open { ask, lineage, answer });
        wait
    }

    fn close(&self, id: &str) {
        let mut state = self.state.lock();
        if let Some(at) = state.open.iter().position(|open| &*open.ask.id == id) {
            let open = state.open.remove(at);
            state.remember(open.ask.id);
        }
    }

    /// What `instance` asks, and what those ask that it spawned.
    pub(crate) fn pending(&self, instance: InstanceId) -> Vec<PendingAsk> {
        let state = self.state.lock();
        let of = state.open.iter().filter(|open| open.lineage.contains(&instance));
        of.map(|open| open.ask.clone()).collect()
    }

    pub(crate) fn answer(&self, id: &str, answer: Answer) -> Answered {
        let mut state = self.state.lock();
        match state.open.iter().position(|open| &*open.ask.id == id) {
            Some(at) => {
                if let Err(misfit) = state.open[at].ask.check(&answer) {
                    return Answered::Unfit(misfit);
                }
                let open = state.open.remove(at);
                state.remember(open.ask.id);
                match open.answer.send(answer) {
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
    let waiting = Waiting::begin(cx, batch).await;
    let result = match cx.site.steps() {
        Some(scope) => {
            // The words are part of the step's name, and that is written too.
            let mut prompt = Value::from(&*ask.prompt);
            scope.log().redact(&mut prompt);
            let name = crate::step::own_name(cx, batch, prompt.as_str().unwrap_or_default());
            let key = scope.key("ask", &name, crate::step::fingerprint(&ask));
            recorded_answer(cx, batch, ask, scope, key).await
        }
        None => wait_for_answer(cx, batch, ask).await,
    };
    waiting.end().await;
    result
}

/// Waits for a person whom somebody else asks, on behalf of whoever this is: the clocks stand still
/// as if it had asked itself.
pub(crate) async fn wait_on_behalf<T>(
    cx: Cx<'_>,
    batch: Option<Batch<'_>>,
    until: impl Future<Output = T>,
) -> T {
    let _paused = cx.clock.pause();
    let waiting = Waiting::begin(cx, batch).await;
    let question = cx.site.chat.map(|chat| chat.question());
    let result = until.await;
    drop(question);
    waiting.end().await;
    result
}

/// The answer on record, or that of whoever answers first: somebody here, or somebody elsewhere.
async fn recorded_answer(
    cx: Cx<'_>,
    batch: Option<Batch<'_>>,
    ask: Ask,
    scope: &StepScope,
    key: StepKey,
) -> Result<Answer, Error> {
    let log = scope.log();
    let id: Arc<str> = key.id(log.run_id()).into();
    let question = PendingAsk::of(cx, batch, ask, id);
    let standing = Standing::new(cx, question.id.clone(), log.keeps_asks());
    let here = wait_here(cx, question.clone(), &standing);
    let result = log.ask(key, &question, Box::pin(here)).await;
    // A question of a run that is parked stands, and ends in another life of it.
    if !result.as_ref().is_err_and(Error::parks) {
        standing.ended(&result);
    }
    result
}

async fn wait_for_answer(cx: Cx<'_>, batch: Option<Batch<'_>>, ask: Ask) -> Result<Answer, Error> {
    let id = cx.site.inner.eldest().extra().asks.next_id(cx.site.inner.id);
    let standing = Standing::new(cx, id.clone(), false);
    let result = wait_here(cx, PendingAsk::of(cx, batch, ask, id), &standing).await;
    standing.ended(&result);
    result
}

/// A question that was announced, until its end is (G1).
struct Standing<'a> {
    cx: Cx<'a>,
    id: Arc<str>,
    /// Whether it stands also if nobody is here.
    keeps: bool,
    is_open: AtomicBool,
}

impl<'a> Standing<'a> {
    fn new(cx: Cx<'a>, id: Arc<str>, keeps: bool) -> Self {
        Self { cx, id, keeps, is_open: AtomicBool::new(false) }
    }

    fn asked(&self, question: &PendingAsk) {
        self.is_open.store(true, Ordering::Relaxed);
        self.cx.site.emit(|| EventKind::Asked {
            ask: self.id.clone(),
            prompt: question.ask.prompt.clone(),
            hook: question.hook.clone(),
            tool: question.tool.clone(),
            approval: question.ask.is_approval(),
        });
    }

    fn ended(&self, result: &Result<Answer, Error>) {
        if self.is_open.swap(false, Ordering::Relaxed) {
            let ask = self.id.clone();
            self.cx.site.emit(|| match result {
                Ok(answer) => EventKind::Answered { ask, decision: answer.name() },
                Err(error) => EventKind::AskEnded { ask, outcome: error.outcome() },
            });
        }
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        // Whoever drops a recorded run without having cancelled it parks it.
        if !self.keeps || self.cx.site.inner.signal.is_set() {
            self.ended(&Err(Error::cancelled()));
        }
    }
}

/// Waits for an answer of somebody in this process.
async fn wait_here(
    cx: Cx<'_>,
    question: PendingAsk,
    standing: &Standing<'_>,
) -> Result<Answer, Error> {
    let keeps = standing.keeps;
    let inner = cx.site.inner;
    let asker = inner.blueprint.asker.as_ref();
    if asker.is_none() && !inner.is_heard() && !keeps {
        return Err(Error::new(
            ErrorKind::Denied,
            format!(
                "nobody can be asked: {}; give the agent an asker (`on_ask`), or subscribe to its \
                 events and call `answer`",
                question.ask.prompt
            ),
        ));
    }
    // A log that keeps questions knows since when they stand.
    let expires_after = question.ask.expires_after.filter(|_| !keeps);
    let _question = cx.site.chat.map(|chat| chat.question());
    let asks = &inner.eldest().extra().asks;
    let pending_ask = question;
    let answer = asks.open(cx, pending_ask.clone());
    let _closes = Closes { asks, id: pending_ask.id.clone() };
    standing.asked(&pending_ask);

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
            Poll::Ready(Ok(answer)) => {
                return Poll::Ready(match pending_ask.check(&answer) {
                    Ok(()) => Ok(answer),
                    Err(misfit) => Err(Error::new(
                        ErrorKind::Ask,
                        format!("the answer does not have the form that was asked for: {misfit}"),
                    )
                    .caused_by(misfit)),
                });
            }
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
        // Ends are not cut off by a cancel, but nobody is kept waiting for their questions then.
        let ends = cx.point.is_end();
        let signal = match cx.site.chat {
            _ if !ends => cx.site.signal,
            Some(chat) if cx.site.turn.is_none() => Some(&chat.signal),
            _ => Some(&inner.signal),
        };
        match signal {
            Some(signal) if signal.register(task.waker()) && ends => {
                Poll::Ready(Ok(Answer::Reject("it is over, and nobody waits any more".into())))
            }
            Some(signal) if signal.is_set() => Poll::Ready(Err(Error::cancelled())),
            _ => Poll::Pending,
        }
    })
    .await;
    // Told before the chat goes on. What is kept may still be answered elsewhere.
    if result.is_ok() || !keeps {
        standing.ended(&result);
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
