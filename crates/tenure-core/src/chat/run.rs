//! What a chat keeps while it runs, and its end.

use super::ChatEnd;
use super::points::AfterChat;
use super::variables::{Declarations, Values};
use crate::BoxFuture;
use crate::agent::Agent;
use crate::cancel::Signal;
use crate::error::Error;
use crate::event::{EventKind, emit_once};
use crate::hook::Point;
use crate::kernel::{Ends, ScopeData, Shared, Site, sequence};
use crate::outcome::Outcome;
use crate::step::{Baseline, Delta, ScopeEnd, ScopeRecord, StepScope};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What a chat keeps while it runs.
pub(crate) struct ChatRun {
    pub(crate) id: Arc<str>,
    /// Shared with the chats beside it.
    pub(crate) variables: Arc<Values>,
    /// What is declared of them.
    pub(crate) declarations: Option<Arc<dyn Declarations>>,
    pub(crate) signal: Signal,
    /// A chat runs once at a time.
    pub(super) running: AtomicBool,
    /// Whether its driver leaves it as it is: what goes on in it has no end in this life of its run.
    pub(super) left: AtomicBool,
    /// How many of its agents' questions wait for an answer.
    pub(super) questions: AtomicUsize,
    /// Who is told that it waits for a person, and that it goes on.
    pub(super) watcher: OnceLock<Watcher>,
    pub(super) members: Vec<Member>,
    /// Where it is recorded, if it is.
    pub(crate) steps: OnceLock<StepScope>,
    /// What is on record of its variables.
    pub(super) recorded: Mutex<Baseline>,
}

pub(super) type Watcher = Box<dyn Fn(Waits) + Send + Sync>;

/// Whether a chat waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// The first question was put.
    ForPerson,
    /// The last one is settled.
    NoLonger,
}

impl ChatRun {
    /// What has changed of its variables since the last record.
    pub(crate) fn changes(&self, life: u32) -> Delta {
        let mut recorded = self.recorded.lock();
        recorded.differs(life, self.variables.writes(), || self.variables.lock().clone())
    }

    /// What the variables are now comes with whoever made the chat.
    pub(crate) fn compare_from_here(&self) {
        let mut recorded = self.recorded.lock();
        recorded.begin(self.variables.writes(), || self.variables.lock().clone());
    }

    /// Puts back what was written in an earlier life of the run.
    pub(crate) fn restore(&self, delta: Delta) {
        let Delta { set, gone, .. } = self.recorded.lock().restores(delta);
        if !set.is_empty() || !gone.is_empty() {
            let mut variables = self.variables.write();
            variables.retain(|key, _| !gone.contains(key));
            variables.extend(set);
        }
    }

    /// The names of those who take part.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.agent.name())
    }
}

/// One agent that takes part.
pub(super) struct Member {
    pub(super) agent: Agent,
    pub(super) data: ScopeData,
    /// How many entries of its chain the chat's scope has passed.
    pub(super) entered: AtomicUsize,
}

impl ChatRun {
    pub(super) fn record(&self, scope: &StepScope) -> ScopeRecord {
        ScopeRecord::chat(&scope.steps, &self.id)
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.steps.get().is_some()
    }

    /// Leaves the chat as it is, for its run to go on later. Its ends wait for that.
    pub(super) fn park(&self) {
        for member in &self.members {
            member.entered.store(0, Ordering::Release);
        }
        self.running.store(false, Ordering::Release);
    }

    pub(crate) fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// A question stands for as long as this lives.
    pub(crate) fn question(&self) -> Question<'_> {
        if self.questions.fetch_add(1, Ordering::AcqRel) == 0 {
            self.tell(Waits::ForPerson);
        }
        Question(self)
    }

    fn tell(&self, waits: Waits) {
        if let Some(watcher) = self.watcher.get() {
            watcher(waits);
        }
    }

    /// Announces the begin or the end of the chat. Of a recorded one each is announced once: it goes
    /// on in the next life of its run, and does not begin there.
    pub(super) fn emit(&self, kind: impl FnOnce(&Arc<str>) -> EventKind) {
        let Some(first) = self.members.first() else { return };
        let inner = first.agent.inner();
        if let Some(scope) = self.steps.get() {
            emit_once(&scope.steps, inner, None, kind(&self.id));
        } else if let Some(bus) = inner.listening() {
            bus.emit(inner, None, kind(&self.id));
        }
    }
}

/// A question of a chat that waits for an answer, for as long as this lives.
#[must_use = "the question is settled when this is dropped"]
pub struct Question<'a>(&'a ChatRun);

impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("chat", &self.0.id).finish_non_exhaustive()
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let is_last = self.0.questions.fetch_sub(1, Ordering::AcqRel) == 1;
        // A chat that is left waits on.
        if is_last && !self.0.is_left() {
            self.0.tell(Waits::NoLonger);
        }
    }
}

impl Member {
    pub(super) fn site<'a>(&'a self, run: &'a ChatRun, signal: Option<&'a Signal>) -> Site<'a> {
        Site {
            inner: self.agent.inner(),
            turn: None,
            chat: Some(run),
            signal,
            data: &self.data,
            attempt: 1,
            shared: Shared::default(),
        }
    }
}

/// Runs the ends of everything that was passed or has no begin, last to first.
pub(super) async fn finish(run: Arc<ChatRun>, end: ChatEnd) {
    for member in run.members.iter().rev() {
        let entered = member.entered.swap(0, Ordering::AcqRel);
        let chain = &member.agent.inner().blueprint.chain;
        if chain.has(Point::AfterChat) {
            let site = member.site(&run, None);
            let mut after = AfterChat { end: &end, entered };
            // Ends are always continued; there is nothing to fail with (G5).
            let ends = Ends::Within(member.agent.config().limits.ends);
            let _ = sequence(&site, chain, ends, &mut after).await;
        }
    }
    if let Some(scope) = run.steps.get()
        && let Err(error) = scope.log().end(&run.record(scope), ScopeEnd::of(end.outcome)).await
    {
        // The next life of the run ends it again.
        tracing::error!(chat = &*run.id, "an end was not recorded: {error}");
    }
    run.running.store(false, Ordering::Release);
    run.emit(|id| EventKind::ChatEnded { chat: id.clone(), outcome: end.outcome });
}

/// Ends a chat whose future is dropped.
pub(super) struct Guard {
    pub(super) run: Option<Arc<ChatRun>>,
    pub(super) ends: Option<(Arc<ChatRun>, BoxFuture<'static, ()>)>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (run, ends) = match (self.run.take(), self.ends.take()) {
            (_, Some(ends)) => ends,
            // With a log, whoever drops the future parks the run.
            (Some(run), None) if run.is_recorded() && !run.signal.is_set() => {
                run.park();
                return;
            }
            (Some(run), None) => {
                let error = Some(Error::cancelled());
                let end = ChatEnd { outcome: Outcome::Cancelled, error, output: None };
                (run.clone(), Box::pin(finish(run, end)) as BoxFuture<'static, ()>)
            }
            (None, None) => return,
        };
        if let Some(first) = run.members.first() {
            first.agent.inner().blueprint.run_detached(ends);
        }
    }
}
