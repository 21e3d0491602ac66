//! One orchestration: its options, its life on a task of its own, and what it says meanwhile.

use super::run::{Run, Stopped};
use super::{
    ErrorStrategy, OrchestrationError, OrchestrationReport, Orchestrator, OrchestratorMetrics,
    PartialResult, Stage, StageEvent,
};
use futures_util::Stream;
use std::collections::BTreeMap;
use std::fmt;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tenure_core::context::ExecutionContext;
use tenure_core::model::Usage;
use tenure_core::{CancelToken, Outcome};
use tokio::sync::{mpsc, oneshot, watch};

/// An orchestration, to be given options and then run.
#[must_use = "an orchestration does nothing until it is run"]
pub struct Orchestration {
    pub(crate) orchestrator: Orchestrator,
    pub(crate) goal: String,
    pub(crate) context: Arc<ExecutionContext>,
    pub(crate) strategy: ErrorStrategy,
    pub(crate) cursor: u64,
    pub(crate) kept: BTreeMap<Arc<str>, String>,
    pub(crate) token: Option<CancelToken>,
    pub(crate) limit: Option<Duration>,
}

impl Orchestration {
    pub(super) fn new(
        orchestrator: Orchestrator,
        goal: String,
        context: Arc<ExecutionContext>,
    ) -> Self {
        Self {
            orchestrator,
            goal,
            context,
            strategy: ErrorStrategy::default(),
            cursor: 0,
            kept: BTreeMap::new(),
            token: None,
            limit: None,
        }
    }

    /// What the failure of a step means for the whole. By default it fails.
    pub fn error_strategy(mut self, strategy: ErrorStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Where the decisions on who does what begin: 0 by default. To go on where another
    /// orchestration stopped, give it that one's [`OrchestrationReport::cursor`].
    pub fn cursor(mut self, cursor: u64) -> Self {
        self.cursor = cursor;
        self
    }

    /// Keeps what an earlier orchestration of the same plan has done: those tasks are not done
    /// again, and their results are used.
    pub fn keeping(mut self, earlier: &PartialResult) -> Self {
        self.kept.extend(earlier.step_results.clone());
        self
    }

    /// Cancels the orchestration when `token` is cancelled.
    pub fn cancel_on(mut self, token: &CancelToken) -> Self {
        self.token = Some(token.clone());
        self
    }

    /// The most time that it may take up to its last stage. Exceeding it ends it as failed, with the
    /// outcome timed out. The agents have their own time to end.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Runs it to its end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the orchestration; what it has begun ends in the background, and
    /// so do its agents. [`Orchestrator::settled`] waits for that.
    pub async fn run(self) -> OrchestrationReport {
        self.spawn(None).finish().await
    }

    /// Begins it, and hands out what it says.
    ///
    /// Panics outside of a runtime.
    pub fn stream(self) -> OrchestrationStream {
        let (sender, events) = mpsc::unbounded_channel();
        let mut stream = self.spawn(Some(sender));
        stream.events = Some(events);
        stream
    }

    /// Runs it on a task of its own, so that it comes to its end also if nobody waits for it.
    fn spawn(self, events: Option<mpsc::UnboundedSender<StageEvent>>) -> OrchestrationStream {
        let tracker = self.orchestrator.inner.tracker.clone();
        let dropped = CancelToken::new();
        let (current, stage) = watch::channel(None);
        let (done, report) = oneshot::channel();
        let lost = Lost {
            goal: self.goal.clone(),
            context: self.context.clone(),
            strategy: self.strategy,
        };
        let (left, token, limit) = (dropped.clone(), self.token.clone(), self.limit);
        let run = Run::new(self, current, events);
        tracker.spawn(async move {
            // Nobody may be there any more to hear of it.
            let _ = done.send(live(run, &left, token.as_ref(), limit).await);
        });
        OrchestrationStream { events: None, report, stage, left: CancelOnDrop(dropped), lost }
    }
}

impl fmt::Debug for Orchestration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orchestration")
            .field("goal", &self.goal)
            .field("strategy", &self.strategy)
            .finish_non_exhaustive()
    }
}

/// The whole life: what is to be done, the last stage, the end of the agents, the report.
async fn live(
    mut run: Run,
    left: &CancelToken,
    token: Option<&CancelToken>,
    limit: Option<Duration>,
) -> OrchestrationReport {
    let work = run.work();
    let why = run.stopped_by();
    let stop = async {
        let (mut cancelled, mut left) = (pin!(when(token)), pin!(left.cancelled()));
        let mut late = pin!(after(limit));
        poll_fn(|task| {
            if cancelled.as_mut().poll(task).is_ready() || left.as_mut().poll(task).is_ready() {
                return Poll::Ready(Stopped::Cancelled);
            }
            late.as_mut().poll(task).map(Stopped::TimedOut)
        })
        .await
    };
    let result = {
        let body = pin!(run.body());
        both(body, pin!(stop), |stopped| set(&why, stopped, &work)).await
    };
    run.conclude(result);
    run.stop().await;
    run.report()
}

/// Waits for the token; for ever, if there is none.
async fn when(token: Option<&CancelToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => pending().await,
    }
}

/// Waits so long; for ever, if there is no limit.
async fn after(limit: Option<Duration>) -> Duration {
    match limit {
        Some(limit) => {
            tokio::time::sleep(limit).await;
            limit
        }
        None => pending().await,
    }
}

fn set(why: &OnceLock<Stopped>, stopped: Stopped, work: &CancelToken) {
    // The first reason counts.
    let _ = why.set(stopped);
    work.cancel();
}

/// Runs `work` to its end, and calls `on_stop` once when `stop` is ready before.
async fn both<T, S>(
    mut work: Pin<&mut impl Future<Output = T>>,
    mut stop: Pin<&mut impl Future<Output = S>>,
    on_stop: impl FnOnce(S),
) -> T {
    let mut on_stop = Some(on_stop);
    poll_fn(|task| {
        if on_stop.is_some()
            && let Poll::Ready(reason) = stop.as_mut().poll(task)
            && let Some(on_stop) = on_stop.take()
        {
            on_stop(reason);
        }
        work.as_mut().poll(task)
    })
    .await
}

/// Cancels an orchestration that nobody waits for any more.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What is known of an orchestration whose task is gone.
struct Lost {
    goal: String,
    context: Arc<ExecutionContext>,
    strategy: ErrorStrategy,
}

impl Lost {
    /// The runtime was shut down under it.
    fn report(self, stage: Option<Stage>) -> OrchestrationReport {
        let stage = stage.unwrap_or(Stage::Initialize);
        let message = "the runtime was shut down before the orchestration was over";
        let error = OrchestrationError::new(stage, message, self.context.clone());
        let error = error.ending(Outcome::Abandoned);
        OrchestrationReport {
            goal: self.goal,
            context: self.context,
            strategy: self.strategy,
            stage: Stage::Failed,
            partial: PartialResult::of(&[], Some(&error)),
            result: Err(error),
            steps: Vec::new(),
            routing: Vec::new(),
            metrics: OrchestratorMetrics::default(),
            usage: Usage::default(),
            cursor: 0,
            duration: Duration::ZERO,
        }
    }
}

/// An orchestration in flight: what it says, and its report at the end.
///
/// It goes on whether it is read or not. Dropping it cancels the orchestration, as dropping the
/// future of [`Orchestration::run`] does.
///
/// It is a [`Stream`] of events; [`OrchestrationStream::next`] needs no other crate.
#[must_use = "dropping it cancels the orchestration"]
pub struct OrchestrationStream {
    events: Option<mpsc::UnboundedReceiver<StageEvent>>,
    report: oneshot::Receiver<OrchestrationReport>,
    stage: watch::Receiver<Option<Stage>>,
    left: CancelOnDrop,
    lost: Lost,
}

impl OrchestrationStream {
    /// What it says next. The last event is that of a terminal stage; `None` comes after the agents
    /// were shut down.
    pub async fn next(&mut self) -> Option<StageEvent> {
        match &mut self.events {
            Some(events) => events.recv().await,
            None => None,
        }
    }

    /// The stage that it is in as of now; `None` before it has begun.
    pub fn stage(&self) -> Option<Stage> {
        *self.stage.borrow()
    }

    /// Cancels it. Its last stage will be `cancelled`, unless it is over.
    pub fn cancel(&self) {
        self.left.0.cancel();
    }

    /// Waits for the end, and returns the report.
    pub async fn finish(mut self) -> OrchestrationReport {
        match (&mut self.report).await {
            Ok(report) => report,
            Err(_) => {
                let stage = self.stage();
                self.lost.report(stage)
            }
        }
    }
}

impl Stream for OrchestrationStream {
    type Item = StageEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StageEvent>> {
        match &mut self.events {
            Some(events) => events.poll_recv(cx),
            None => Poll::Ready(None),
        }
    }
}

impl fmt::Debug for OrchestrationStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrchestrationStream").field("stage", &self.stage()).finish_non_exhaustive()
    }
}
