//! What a turn keeps: what hooks may look at, and what the loop works on.

use super::OutputCheck;
use super::input::Input;
use super::stream::Sink;
use crate::agent::Inner;
use crate::cancel::{CancelToken, TokenLink};
use crate::chat::ChatRun;
use crate::context::ExecutionContext;
use crate::error::Error;
use crate::event::EventKind;
use crate::hook::Point;
use crate::id::RunId;
use crate::kernel::{ScopeData, Site};
use crate::message::{Message, ToolResult};
use crate::model::{ModelRequest, Usage};
use crate::outcome::Outcome;
use crate::phase::{IllegalTransition, Phase};
use crate::step::{StepKey, StepLog, Steps};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What a request may bring along.
#[derive(Default)]
pub(crate) struct TurnOptions {
    pub(crate) context: Option<Arc<ExecutionContext>>,
    pub(crate) token: Option<CancelToken>,
    pub(crate) limit: Option<Duration>,
    pub(crate) steps: Option<Steps>,
    pub(crate) chat: Option<Arc<ChatRun>>,
    pub(crate) schema: Option<Arc<Value>>,
    pub(crate) check: Option<OutputCheck>,
    pub(crate) sink: Option<Arc<Sink>>,
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
    usage: [AtomicU64; 5],
    /// Nanoseconds spent waiting for people.
    waited: AtomicU64,
    ordinals: Mutex<Option<Ordinals>>,
    /// Results of the current batch, kept in case the turn is dropped in the middle of it.
    pub(crate) finished: Mutex<Vec<(usize, ToolResult)>>,
    /// What clones add to the conversation behind the results of the batch.
    pub(crate) appended: Mutex<Vec<Message>>,
    children: Mutex<Usage>,
    /// Cancels the turn with the request's token, for as long as the turn lives.
    _link: Option<TokenLink>,
    released: AtomicBool,
}

type Ordinals = HashMap<(Arc<str>, Arc<str>), u32>;

/// What only the loop works on.
pub(crate) struct Work {
    pub(crate) input: Input,
    /// Holds the conversation: what is committed so far.
    pub(crate) request: ModelRequest,
    pub(crate) output: Option<String>,
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
    Asked(String, usize),
    Yes(usize),
}

impl Turn {
    #[inline]
    pub(crate) fn new(inner: Arc<Inner>, options: Option<Box<TurnOptions>>) -> Self {
        let chat = options.as_ref().and_then(|options| options.chat.clone());
        let link = options
            .as_ref()
            .and_then(|options| options.token.as_ref())
            .map(|token| {
                let weak = Arc::downgrade(&inner);
                token.link(move || {
                    if let Some(inner) = weak.upgrade() {
                        inner.signal.set();
                    }
                })
            });
        Self {
            inner,
            run: RunId::unique(),
            chat,
            data: ScopeData::default(),
            options,
            started: Instant::now(),
            entered: AtomicUsize::new(0),
            transitions: AtomicU32::new(1),
            steps_made: AtomicUsize::new(0),
            usage: Default::default(),
            waited: AtomicU64::new(0),
            ordinals: Mutex::new(None),
            finished: Mutex::new(Vec::new()),
            appended: Mutex::new(Vec::new()),
            children: Mutex::new(Usage::default()),
            _link: link,
            released: AtomicBool::new(false),
        }
    }

    /// Makes the agent ready again.
    #[inline]
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::Relaxed);
        self.inner.cell.release_turn();
    }

    /// Leaves the turn as it is, for another process or another future to go on with.
    pub(crate) fn park(&self) {
        self.release();
    }

    pub(crate) fn context(&self) -> Option<&ExecutionContext> {
        self.options.as_ref()?.context.as_deref()
    }

    pub(crate) fn trace(&self) -> Arc<str> {
        match self.context() {
            Some(context) => context.trace_id().into(),
            None => self
                .inner
                .trace()
                .unwrap_or_else(|| self.run.to_string().into()),
        }
    }

    pub(crate) fn resumed(&self) -> bool {
        self.steps().is_some_and(|log| log.is_resumed())
    }

    pub(crate) fn is_streaming(&self) -> bool {
        self.sink().is_some()
    }

    pub(crate) fn sink(&self) -> Option<&Arc<Sink>> {
        self.options.as_ref()?.sink.as_ref()
    }

    pub(crate) fn model_delta(&self, text: &str) {
        if let Some(sink) = self.sink() {
            sink.delta(text, self.inner.blueprint.chain.hold);
        }
    }

    #[inline]
    pub(crate) fn steps(&self) -> Option<&dyn StepLog> {
        Some(&*self.options.as_ref()?.steps.as_ref()?.log)
    }

    pub(crate) fn step_path(&self) -> Option<&Steps> {
        self.options.as_ref()?.steps.as_ref()
    }

    /// The key of the next step of this kind and name.
    pub(crate) fn step_key(&self, kind: &str, name: &str, input: u64) -> StepKey {
        let path = self
            .step_path()
            .map(|steps| steps.path.clone())
            .unwrap_or_default();
        let (kind, name): (Arc<str>, Arc<str>) = (kind.into(), name.into());
        let mut ordinals = self.ordinals.lock();
        let next = ordinals
            .get_or_insert_default()
            .entry((kind.clone(), name.clone()))
            .or_insert(0);
        let ordinal = *next;
        *next += 1;
        StepKey {
            path,
            kind,
            name,
            ordinal,
            input,
        }
    }

    /// When the turn's time is up. Waiting for a person does not count.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let own = self.options.as_ref().and_then(|options| options.limit);
        let limit = own.or(self.inner.config().limits.turn)?;
        Some(self.started + limit + Duration::from_nanos(self.waited.load(Ordering::Relaxed)))
    }

    pub(crate) fn waited(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.waited.fetch_add(nanos, Ordering::Relaxed);
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
        let [input, output, cached, reasoning, calls] =
            [0, 1, 2, 3, 4].map(|at| self.usage[at].load(Ordering::Relaxed));
        Usage {
            input,
            output,
            cached,
            reasoning,
            calls,
        }
    }

    pub(crate) fn charge(&self, usage: Usage) {
        let Usage {
            input,
            output,
            cached,
            reasoning,
            calls,
        } = usage;
        for (cell, more) in self
            .usage
            .iter()
            .zip([input, output, cached, reasoning, calls])
        {
            if more > 0 {
                cell.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// What a clone cost. It is part of the report; the instance was charged by the clone itself.
    pub(crate) fn charge_child(&self, usage: Usage) {
        *self.children.lock() += usage;
    }

    /// What the turn cost, its clones included.
    pub(crate) fn total_usage(&self) -> Usage {
        let mut usage = self.usage();
        usage += *self.children.lock();
        usage
    }

    /// Moves the turn to another phase, runs the hooks of the transition and tells.
    #[inline]
    pub(crate) async fn shift(&self, site: &Site<'_>, to: Phase) -> Result<(), Error> {
        let from = self.shift_quietly(to)?;
        if from != to {
            self.shifted(site, from, to).await;
        }
        Ok(())
    }

    /// The same without hooks and events; says where the turn came from.
    #[inline]
    pub(crate) fn shift_quietly(&self, to: Phase) -> Result<Phase, Error> {
        let from = self.inner.cell.turn();
        if from != to {
            if !from.may_go_to(to) {
                return Err(IllegalTransition { from, to }.into());
            }
            self.inner.cell.turn_to(to);
            let count = self.transitions.load(Ordering::Relaxed);
            self.transitions.store(count + 1, Ordering::Relaxed);
        }
        Ok(from)
    }

    #[inline]
    pub(crate) async fn shifted(&self, site: &Site<'_>, from: Phase, to: Phase) {
        if self.inner.blueprint.chain.has(Point::OnTransition) || self.inner.is_watched() {
            Box::pin(self.inner.transitioned(site, from, to, None)).await;
            if self.inner.stop_requested() {
                self.inner.signal.set();
            }
        }
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
        inner.metrics.request(took, false, 1);
        if let Some(bus) = inner.listening() {
            let (outcome, usage) = (Outcome::Abandoned, self.usage());
            bus.emit(
                inner,
                Some(self),
                EventKind::TurnEnded {
                    outcome,
                    usage,
                    took,
                },
            );
        }
        inner.charge(self.usage());
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
        request.tools = blueprint.tools.specs.clone();
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
    pub(crate) fn steps(&self) -> Option<&'a dyn StepLog> {
        self.turn?.steps()
    }

    pub(crate) fn trace_id(&self) -> String {
        match self.turn {
            Some(turn) => turn.trace().to_string(),
            None => {
                let own = || self.inner.id.to_string();
                self.inner
                    .trace()
                    .map_or_else(own, |trace| trace.to_string())
            }
        }
    }
}
