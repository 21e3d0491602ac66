//! What a turn keeps: what hooks may look at, and what the loop works on.

use super::OutputCheck;
use super::input::Input;
use super::stream::Sink;
use crate::BoxFuture;
use crate::agent::{Arrow, Inner, Telling, ToolSet};
use crate::cancel::{CancelToken, TokenLink};
use crate::chat::ChatRun;
use crate::content::Content;
use crate::context::ExecutionContext;
use crate::error::Error;
use crate::event::EventKind;
use crate::id::RunId;
use crate::kernel::{ScopeData, Site, later};
use crate::message::{Message, ToolResult};
use crate::model::{Cost, ModelRequest, Usage};
use crate::outcome::Outcome;
use crate::phase::{IllegalTransition, Phase};
use crate::step::{ScopeRecord, StepScope};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// What a request may bring along.
#[derive(Default)]
pub(crate) struct TurnOptions {
    pub(crate) context: Option<Arc<ExecutionContext>>,
    pub(crate) token: Option<CancelToken>,
    pub(crate) limit: Option<Duration>,
    pub(crate) steps: Option<StepScope>,
    pub(crate) chat: Option<Arc<ChatRun>>,
    pub(crate) schema: Option<Arc<Value>>,
    pub(crate) check: Option<OutputCheck>,
    pub(crate) sink: Option<Arc<Sink>>,
    /// Cancels the turn with the request's token, for as long as the turn lives.
    pub(crate) link: Option<TokenLink>,
}

/// What hooks, models and tools may look at while the turn runs. Shared, so it changes only by
/// atomics and locks.
pub(crate) struct Turn {
    pub(crate) inner: Arc<Inner>,
    pub(crate) run: RunId,
    pub(crate) chat: Option<Arc<ChatRun>>,
    pub(crate) data: ScopeData,
    pub(crate) options: Option<Box<TurnOptions>>,
    pub(crate) started: Instant,
    /// How many entries of the chain the turn's scope has passed.
    pub(crate) entered: AtomicUsize,
    pub(crate) transitions: AtomicU32,
    steps_made: AtomicUsize,
    usage: [AtomicU64; 7],
    rare: OnceLock<Box<Rare>>,
    released: AtomicBool,
}

/// What only some turns need: those with parallel tools, clones, asks or a step log.
#[derive(Default)]
pub(crate) struct Rare {
    /// The turn's first transition, until it is told.
    pub(crate) begun: Mutex<Option<Telling>>,
    waiting: Mutex<WaitedFor>,
    /// Results of the current batch, kept in case the turn is dropped in the middle of it.
    pub(crate) finished: Mutex<Vec<(usize, ToolResult)>>,
    /// What clones add to the conversation behind the results of the batch.
    pub(crate) appended: Mutex<Vec<(usize, Vec<Message>)>>,
    children: Mutex<Children>,
}

/// The clones that work for a turn.
#[derive(Default)]
struct Children {
    /// What those cost that are over.
    usage: Usage,
    living: Vec<Arc<Inner>>,
}

/// Time spent waiting for people; the waits of parallel calls count once.
#[derive(Clone, Copy, Default)]
struct WaitedFor {
    people: u32,
    /// Since when, and from which phase.
    since: Option<(Instant, Phase)>,
    over: Duration,
}

/// What only the loop works on.
pub(crate) struct Work {
    pub(crate) input: Input,
    /// Holds the conversation: what is committed so far.
    pub(crate) request: ModelRequest,
    /// The tools that the model was shown last, where they come and go.
    pub(crate) tools: Option<Arc<ToolSet>>,
    pub(crate) output: Option<Content>,
    pub(crate) error: Option<Error>,
    /// A jump may happen once in a turn.
    pub(crate) jumped: bool,
    /// An end may ask to go on once in a turn.
    pub(crate) continued: Continued,
    pub(crate) corrections: u32,
}

/// Whether an end has asked to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Continued {
    No,
    /// With this message, and the entries from this place on have ended.
    Asked(Content, usize),
    Yes(usize),
}

impl Turn {
    #[inline]
    pub(crate) fn new(inner: Arc<Inner>, mut options: Option<Box<TurnOptions>>) -> Self {
        let chat = options.as_ref().and_then(|options| options.chat.clone());
        // A run that goes on with its record is the same run. The turns of its clones are their own.
        let recorded = options.as_ref().and_then(|options| options.steps.as_ref());
        let run = match recorded {
            Some(scope) if scope.path().is_empty() => scope.log().run_id(),
            _ => RunId::unique(),
        };
        if let Some(options) = &mut options
            && let Some(token) = &options.token
        {
            let weak = Arc::downgrade(&inner);
            options.link = Some(token.link(move |cause| {
                if let Some(inner) = weak.upgrade() {
                    inner.signal.set_for(cause);
                }
            }));
        }
        Self {
            inner,
            run,
            chat,
            data: ScopeData::default(),
            options,
            started: Instant::now(),
            entered: AtomicUsize::new(0),
            transitions: AtomicU32::new(1),
            steps_made: AtomicUsize::new(0),
            usage: Default::default(),
            rare: OnceLock::new(),
            released: AtomicBool::new(false),
        }
    }

    pub(crate) fn rare(&self) -> &Rare {
        self.rare.get_or_init(Default::default)
    }

    /// What only some turns need, if this one ever did.
    #[inline]
    pub(crate) fn if_rare(&self) -> Option<&Rare> {
        self.rare.get().map(|rare| &**rare)
    }

    /// Makes the agent ready again.
    #[inline]
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::Relaxed);
        if let Some(link) = self.options.as_ref().and_then(|options| options.link.as_ref()) {
            link.sever();
        }
        self.inner.cell.release_turn();
    }

    /// Leaves the turn as it is, for another process or another future to go on with.
    pub(crate) fn park(&self) {
        drop(self.settle());
        self.count(self.started.elapsed(), true);
        self.release();
    }

    /// Takes the agent out of the turn, unless it is stopping or that was done: whoever looks sees an
    /// idle agent, but the turn is not free yet. Dropping the result tells it where no hook can be
    /// run any more.
    pub(crate) fn settle(&self) -> Option<Telling> {
        // A turn that came to nothing may not have told its begin.
        if let Some(rare) = self.if_rare() {
            drop(rare.begun.lock().take());
        }
        let made = self.inner.transition(Some(self), |cell| {
            let last = cell.turn();
            if cell.life() != Phase::Idle || last == Phase::Idle {
                return Err(());
            }
            cell.settle_turn();
            Ok(Arrow::new(last, Phase::Idle))
        });
        made.ok().flatten()
    }

    /// Counts the turn, which is over.
    #[inline]
    pub(crate) fn count(&self, took: Duration, is_ok: bool) {
        let cell = &self.inner.cell;
        // An agent that is stopping, or broken, does not go back to idle.
        let to_idle = cell.life() == Phase::Idle || cell.is_settling();
        let transitions = self.transitions.load(Ordering::Relaxed) + u32::from(to_idle);
        self.inner.metrics.request(took, is_ok, u64::from(transitions));
    }

    pub(crate) fn context(&self) -> Option<&ExecutionContext> {
        self.options.as_ref()?.context.as_deref()
    }

    pub(crate) fn trace(&self) -> Arc<str> {
        match self.context() {
            Some(context) => context.shared_trace_id(),
            None => self.inner.trace().unwrap_or_else(|| self.run.to_string().into()),
        }
    }

    pub(crate) fn resumed(&self) -> bool {
        self.steps().is_some_and(|scope| scope.log().is_resumed())
    }

    /// Returns `true` if it was asked for without options: nothing is recorded, and no reader reads along.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.options.is_none()
    }

    pub(crate) fn is_streaming(&self) -> bool {
        self.sink().is_some()
    }

    pub(crate) fn sink(&self) -> Option<&Arc<Sink>> {
        self.options.as_ref()?.sink.as_ref()
    }

    pub(crate) fn model_delta(&self, text: &str) {
        if let Some(sink) = self.sink() {
            sink.delta(text, &self.inner.blueprint.chain);
        }
    }

    #[inline]
    pub(crate) fn steps(&self) -> Option<&StepScope> {
        self.options.as_ref()?.steps.as_ref()
    }

    /// What is recorded of the turn as a whole.
    pub(crate) fn record(&self, scope: &StepScope) -> ScopeRecord {
        ScopeRecord::turn(&scope.steps, self.inner.name(), self.inner.id)
    }

    /// Why nothing can be recorded any more: the turn is parked, whatever its body made of that.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.steps()?.log().trouble()
    }

    /// When the turn's time is up. Waiting for a person does not count, not even while it lasts.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let own = self.options.as_ref().and_then(|options| options.limit);
        let limit = own.or(self.inner.config().limits.turn)?;
        let waiting = self.if_rare().map(|rare| *rare.waiting.lock()).unwrap_or_default();
        let ongoing = waiting.since.map_or(Duration::ZERO, |(since, _)| since.elapsed());
        let waited = waiting.over.saturating_add(ongoing);
        Some(later(self.started, limit.saturating_add(waited)))
    }

    /// Somebody begins to wait for a person.
    pub(crate) fn begin_waiting(&self) {
        let mut waiting = self.rare().waiting.lock();
        waiting.people += 1;
        let phase = self.inner.cell.turn();
        waiting.since.get_or_insert_with(|| (Instant::now(), phase));
    }

    /// Somebody has an answer, or gave up. The last one takes the turn back to this phase.
    pub(crate) fn end_waiting(&self) -> Option<Phase> {
        let mut waiting = self.rare().waiting.lock();
        waiting.people -= 1;
        if waiting.people > 0 {
            return None;
        }
        let (since, phase) = waiting.since.take()?;
        waiting.over += since.elapsed();
        Some(phase)
    }

    pub(crate) fn steps_made(&self) -> usize {
        self.steps_made.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn count_step(&self) -> usize {
        let step = self.steps_made.load(Ordering::Relaxed) + 1;
        self.steps_made.store(step, Ordering::Relaxed);
        step
    }

    pub(crate) fn usage(&self) -> Usage {
        let [input, output, cached, reasoning, calls, cost, unpriced] =
            [0, 1, 2, 3, 4, 5, 6].map(|at| self.usage[at].load(Ordering::Relaxed));
        let cost = Cost::from_nano_usd(cost);
        Usage { input, output, cached, reasoning, calls, cost, unpriced }
    }

    pub(crate) fn charge(&self, usage: Usage) {
        let Usage { input, output, cached, reasoning, calls, cost, unpriced } = usage;
        let more = [input, output, cached, reasoning, calls, cost.nano_usd(), unpriced];
        for (cell, more) in self.usage.iter().zip(more) {
            // Only the loop writes here.
            cell.store(cell.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
        }
    }

    /// A clone works for the turn. The turn does not end before it (G2).
    pub(crate) fn adopt(&self, child: &Arc<Inner>) {
        self.rare().children.lock().living.push(child.clone());
    }

    /// A clone is over. What it cost is part of the report; the instance was charged by the clone
    /// itself.
    pub(crate) fn child_ended(&self, child: &Inner) {
        let mut children = self.rare().children.lock();
        children.living.retain(|living| living.id != child.id);
        children.usage += *child.usage.lock();
    }

    /// Something was spent for the turn that is part of its report, and that the instance was
    /// charged already.
    pub(crate) fn charge_beside(&self, usage: Usage) {
        self.rare().children.lock().usage += usage;
    }

    /// What was spent for the turn beside its own calls.
    pub(crate) fn spent_beside(&self) -> Usage {
        self.if_rare().map(|rare| rare.children.lock().usage).unwrap_or_default()
    }

    /// Whether clones may be left that nobody waits for any more.
    #[inline]
    pub(crate) fn has_children(&self) -> bool {
        self.if_rare().is_some_and(|rare| !rare.children.lock().living.is_empty())
    }

    /// Waits for clones whose calls were dropped: their ends and their shutdown are on the way.
    pub(crate) async fn children_ended(&self) {
        loop {
            let Some(child) = self.rare().children.lock().living.last().cloned() else { return };
            let limit =
                child.config().limits.ends + child.with_lifecycle_config(|config| config.timeout);
            let over = child.cell.wait(|life, _| life == Phase::Terminated);
            // A clone that takes longer than it may was reported where it was cut off.
            let _ = tokio::time::timeout(limit, over).await;
            self.child_ended(&child);
        }
    }

    /// What the turn cost, its clones included.
    pub(crate) fn total_usage(&self) -> Usage {
        let mut usage = self.usage();
        if let Some(rare) = self.if_rare() {
            usage += rare.children.lock().usage;
        }
        usage
    }

    /// Tells the turn's first transition, if that is to be done still.
    #[inline]
    pub(crate) fn tell_begun<'a>(&'a self, site: &'a Site<'_>) -> Option<BoxFuture<'a, ()>> {
        let begun = self.if_rare()?.begun.lock().take()?;
        Some(self.tell(site, begun))
    }

    /// Moves the turn to another phase. `Some` is the telling of it, to be waited for.
    #[inline(always)]
    pub(crate) fn shift<'a>(
        &'a self,
        site: &'a Site<'_>,
        to: Phase,
    ) -> Result<Option<BoxFuture<'a, ()>>, Error> {
        if self.inner.tells_transitions() {
            let telling = self.shift_aloud(to)?;
            return Ok(telling.map(|telling| self.tell(site, telling)));
        }
        self.shift_quietly(to)?;
        Ok(None)
    }

    /// Moves the turn to another phase where no hook can be run: only listeners are told.
    #[inline]
    pub(crate) fn shift_now(&self, to: Phase) {
        // Where it cannot go there it stays: a person may be asked beside running tools.
        if self.inner.tells_transitions() {
            let _ = self.shift_aloud(to);
        } else {
            let _ = self.shift_quietly(to);
        }
    }

    #[cold]
    fn shift_aloud(&self, to: Phase) -> Result<Option<Telling>, Error> {
        if self.inner.cell.turn() == to {
            return Ok(None);
        }
        self.inner.transition(Some(self), |_| Ok(Arrow::new(self.shift_quietly(to)?, to)))
    }

    /// Moves the turn to another phase, and tells.
    pub(crate) async fn shift_and_tell(&self, site: &Site<'_>, to: Phase) -> Result<(), Error> {
        if let Some(told) = self.shift(site, to)? {
            told.await;
        }
        Ok(())
    }

    /// The same without hooks and events; says where the turn came from.
    #[inline(always)]
    pub(crate) fn shift_quietly(&self, to: Phase) -> Result<Phase, Error> {
        let from = self.inner.cell.turn();
        if from != to {
            if !from.may_go_to(to) {
                return Err(IllegalTransition { from, to }.into());
            }
            // Shutdown posts, the turn obeys: an agent that is stopping goes nowhere else.
            if matches!(self.inner.cell.life(), Phase::ShuttingDown | Phase::Terminated) {
                return Err(Error::cancelled());
            }
            self.inner.cell.turn_to(to);
            let count = self.transitions.load(Ordering::Relaxed);
            self.transitions.store(count + 1, Ordering::Relaxed);
        }
        Ok(from)
    }

    /// Runs the hooks of a shift that has happened, and tells whoever listens.
    #[cold]
    fn tell<'a>(&'a self, site: &'a Site<'_>, telling: Telling) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let left = self.deadline().map(|deadline| {
                deadline.into_std().saturating_duration_since(Instant::now().into_std())
            });
            telling.tell(site, left).await;
            if self.inner.stop_requested() {
                self.inner.signal.set();
            }
        })
    }
}

/// A turn that nobody could end: no runtime is left to run its ends on.
impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        if !*self.released.get_mut() {
            self.abandoned();
        }
    }
}

impl Turn {
    #[cold]
    fn abandoned(&self) {
        let inner = &self.inner;
        tracing::error!(agent = inner.name(), run = %self.run, "the turn was abandoned");
        let took = self.started.elapsed();
        self.count(took, false);
        if let Some(bus) = inner.listening() {
            let (outcome, usage) = (Outcome::Abandoned, self.usage());
            let reason = Some("no runtime was left to end the turn".to_owned());
            bus.emit(inner, Some(self), EventKind::TurnEnded { outcome, usage, took, reason });
        }
        inner.charge(self.usage());
        drop(self.settle());
        self.release();
    }
}

impl Work {
    #[inline]
    pub(crate) fn new(inner: &Inner, input: Input, options: Option<&TurnOptions>) -> Self {
        let blueprint = &inner.blueprint;
        let config = &blueprint.config;
        let mut request = ModelRequest::default();
        request.instruction = config.instruction.clone();
        if blueprint.sources.is_none() {
            request.tools = blueprint.tools.specs.clone();
        }
        request.params = config.params.clone();
        if let Some(schema) = options.and_then(|options| options.schema.clone()) {
            request.params.output_schema = Some(schema);
        }
        if config.use_history {
            *request.messages.history_mut() = inner.history.lock().clone();
        }
        Self {
            input,
            request,
            tools: None,
            output: None,
            error: None,
            jumped: false,
            continued: Continued::No,
            corrections: 0,
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.error.as_ref().map_or(Outcome::Ok, Error::outcome)
    }
}

impl<'a> Site<'a> {
    #[inline]
    pub(crate) fn steps(&self) -> Option<&'a StepScope> {
        match self.turn {
            Some(turn) => turn.steps(),
            None => self.steps_beside_turns(),
        }
    }

    #[cold]
    fn steps_beside_turns(&self) -> Option<&'a StepScope> {
        match self.chat {
            Some(chat) => chat.steps.get(),
            None => self.inner.steps(),
        }
    }

    pub(crate) fn trace_id(&self) -> String {
        match self.turn {
            Some(turn) => turn.trace().to_string(),
            None => {
                let own = || self.inner.id.to_string();
                self.inner.trace().map_or_else(own, |trace| trace.to_string())
            }
        }
    }
}
