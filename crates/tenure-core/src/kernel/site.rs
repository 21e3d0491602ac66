//! Where a call stands: whose instance, which turn, which chat.

use crate::agent::Inner;
use crate::cancel::Signal;
use crate::chat::ChatRun;
use crate::drive::Turn;
use crate::event::EventKind;
use crate::hook::HookFailure;
use crate::sync::Mutex;
use std::any::Any;
use std::sync::Arc;
use tokio::time::Instant;

/// What every hook call at one place has in common.
pub(crate) struct Site<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) turn: Option<&'a Turn>,
    pub(crate) chat: Option<&'a ChatRun>,
    /// What cancels the calls made here.
    pub(crate) signal: Option<&'a Signal>,
    pub(crate) data: &'a ScopeData,
    pub(crate) attempt: u32,
}

impl<'a> Site<'a> {
    pub(crate) fn of_turn(turn: &'a Turn) -> Self {
        Self {
            inner: &turn.inner,
            turn: Some(turn),
            chat: turn.chat.as_deref(),
            signal: Some(&turn.inner.signal),
            data: &turn.data,
            attempt: 1,
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.signal.is_some_and(Signal::is_set)
    }

    /// When the turn's time is up.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.turn?.deadline()
    }

    #[cold]
    pub(crate) fn failed(&self, failure: HookFailure) {
        tracing::warn!(
            agent = self.inner.name(),
            instance = %self.inner.id,
            hook = &*failure.hook,
            point = &*failure.point,
            "{failure}"
        );
        self.data.failures.lock().push(failure);
    }

    #[inline]
    pub(crate) fn emit(&self, kind: impl FnOnce() -> EventKind) {
        if let Some(bus) = self.inner.listening() {
            bus.emit(self.inner, self.turn, kind());
        }
    }
}

/// What a begin leaves for its own end.
pub(crate) enum Carried {
    Live(Arc<dyn Any + Send + Sync>),
    Recorded(serde_json::Value),
}

/// What a scope keeps beside its body.
#[derive(Default)]
pub(crate) struct ScopeData {
    /// By place of the entry.
    pub(crate) carried: Mutex<Vec<(usize, Carried)>>,
    pub(crate) failures: Mutex<Vec<HookFailure>>,
}
