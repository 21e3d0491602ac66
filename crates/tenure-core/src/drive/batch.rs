//! The state that the tool calls of one response share, and the phase that follows from it.

use super::turn::Turn;
use crate::agent::ToolSet;
use crate::context::{Batch, Cx};
use crate::kernel::Site;
use crate::phase::Phase;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, Ordering};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What one write of a call wants written, all or none.
type Patch = Vec<(String, Value)>;

/// What the calls of one batch share.
#[derive(Debug)]
pub struct BatchState {
    /// Which model call of the turn asked for them.
    pub(crate) step: usize,
    /// The tools that the model was shown, where they come and go.
    pub(crate) tools: Option<Arc<ToolSet>>,
    pub(crate) approved: bool,
    /// Bodies that run.
    running: AtomicU32,
    /// Calls that wait for a person.
    waiting: AtomicU32,
    /// Only where more calls were asked for than may run at once.
    pub(crate) permits: Option<Semaphore>,
    /// What the calls want written, by position.
    pub(crate) patches: Mutex<Vec<(usize, Patch)>>,
}

impl BatchState {
    #[inline]
    pub(super) fn new(step: usize, approved: bool, calls: usize, cap: usize) -> Self {
        Self {
            step,
            tools: None,
            approved,
            running: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            permits: (calls > cap).then(|| Semaphore::new(cap)),
            patches: Mutex::new(Vec::new()),
        }
    }

    /// What the call at this position wants written so far.
    pub(super) fn writes_of(&self, index: usize) -> Vec<Patch> {
        let patches = self.patches.lock();
        patches.iter().filter(|(at, _)| *at == index).map(|(_, patch)| patch.clone()).collect()
    }

    /// The phase that follows from who runs and who waits, if it follows at all.
    fn phase(&self) -> Option<Phase> {
        if self.running.load(Ordering::Relaxed) > 0 {
            Some(Phase::ExecutingTool)
        } else if self.waiting.load(Ordering::Relaxed) > 0 {
            Some(Phase::AwaitingToolApproval)
        } else {
            None
        }
    }

    /// Takes the turn to where it belongs, without hooks.
    #[inline]
    fn fold_quietly(&self, turn: &Turn) {
        if let Some(to) = self.phase() {
            turn.shift_now(to);
        }
    }

    async fn fold(&self, turn: &Turn, site: &Site<'_>) {
        if let Some(to) = self.phase() {
            let _ = turn.shift_and_tell(site, to).await;
        }
    }
}

/// A tool's body is running while this lives.
pub struct Body<'a> {
    state: &'a BatchState,
    turn: Option<&'a Turn>,
}

impl<'a> Body<'a> {
    /// The body starts; nobody watches.
    #[inline]
    pub(super) fn begin_quietly(state: &'a BatchState, turn: Option<&'a Turn>) -> Self {
        let body = Self::counted(state, turn);
        if let Some(turn) = turn {
            state.fold_quietly(turn);
        }
        body
    }

    /// The body starts, with hooks and events.
    pub(super) async fn begin(state: &'a BatchState, site: &Site<'a>) -> Self {
        let body = Self::counted(state, site.turn);
        if let Some(turn) = site.turn {
            state.fold(turn, site).await;
        }
        body
    }

    #[inline]
    fn counted(state: &'a BatchState, turn: Option<&'a Turn>) -> Self {
        state.running.fetch_add(1, Ordering::Relaxed);
        Self { state, turn }
    }

    /// The body is over, with hooks and events.
    pub(super) async fn end(mut self, site: &Site<'_>) {
        self.state.running.fetch_sub(1, Ordering::Relaxed);
        if let Some(turn) = self.turn.take() {
            self.state.fold(turn, site).await;
        }
    }
}

impl Drop for Body<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.state.running.fetch_sub(1, Ordering::Relaxed);
            if self.state.waiting.load(Ordering::Relaxed) > 0 {
                self.state.fold_quietly(turn);
            }
        }
    }
}

/// Somebody waits for a person while this lives. The phase is restored however the wait ends.
pub(crate) struct Waiting<'a> {
    site: &'a Site<'a>,
    turn: Option<&'a Turn>,
    batch: Option<Batch<'a>>,
    in_body: bool,
}

impl<'a> Waiting<'a> {
    pub(crate) async fn begin(cx: Cx<'a>, batch: Option<Batch<'a>>) -> Self {
        let site = cx.site;
        let in_body = batch.is_some() && cx.is_effect();
        let this = Self { site, turn: site.turn, batch, in_body };
        if let Some(turn) = site.turn {
            turn.begin_waiting();
            match batch {
                Some(Batch { state, .. }) => {
                    state.waiting.fetch_add(1, Ordering::Relaxed);
                    if in_body {
                        state.running.fetch_sub(1, Ordering::Relaxed);
                    }
                    state.fold(turn, site).await;
                }
                None => {
                    let _ = turn.shift_and_tell(site, Phase::AwaitingUserInput).await;
                }
            }
        }
        this
    }

    /// The phase to go back to, unless somebody else still waits.
    fn leave(&self, turn: &Turn) -> Option<Phase> {
        let back_to = turn.end_waiting();
        if let Some(Batch { state, .. }) = self.batch {
            state.waiting.fetch_sub(1, Ordering::Relaxed);
            if self.in_body {
                state.running.fetch_add(1, Ordering::Relaxed);
            }
        }
        back_to
    }

    pub(crate) async fn end(mut self) {
        if let Some(turn) = self.turn.take() {
            match (self.leave(turn), self.batch) {
                (_, Some(Batch { state, .. })) => state.fold(turn, self.site).await,
                (Some(back_to), None) => {
                    let _ = turn.shift_and_tell(self.site, back_to).await;
                }
                (None, None) => {}
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take() {
            match (self.leave(turn), self.batch) {
                (_, Some(Batch { state, .. })) => state.fold_quietly(turn),
                (Some(back_to), None) => turn.shift_now(back_to),
                (None, None) => {}
            }
        }
    }
}
