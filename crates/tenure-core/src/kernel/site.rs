//! Where a call stands: whose instance, which turn, which chat.

use super::Ends;
use crate::agent::Inner;
use crate::cancel::Signal;
use crate::chat::ChatRun;
use crate::drive::Turn;
use crate::event::{EventKind, reason_of};
use crate::hook::HookFailure;
use crate::sync::Mutex;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
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
    pub(crate) shared: Shared,
}

/// What is left of the time that the calls made at one place share, in milliseconds; 0 if they share none.
#[derive(Default)]
pub(crate) struct Shared(AtomicU32);

impl<'a> Site<'a> {
    pub(crate) fn of_turn(turn: &'a Turn) -> Self {
        Self {
            inner: &turn.inner,
            turn: Some(turn),
            chat: turn.chat.as_deref(),
            signal: Some(&turn.inner.signal),
            data: &turn.data,
            attempt: 1,
            shared: Shared::default(),
        }
    }

    pub(crate) fn of_instance(inner: &'a Arc<Inner>, attempt: u32) -> Self {
        let (signal, data) = (Some(&inner.signal), &inner.extra().data);
        let shared = Shared::default();
        Self { inner, turn: None, chat: None, signal, data, attempt, shared }
    }

    /// Notes what is left of the time that the calls made here share.
    #[inline]
    pub(crate) fn shares(&self, ends: Ends, left: Duration) {
        let millis = match ends {
            Ends::No => 0,
            Ends::Within(_) | Ends::Transition(_) => {
                u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1)
            }
        };
        self.shared.0.store(millis, Ordering::Relaxed);
    }

    /// Returns what is left of the time that the calls made here share, if they share any.
    pub(crate) fn shared_left(&self) -> Option<Duration> {
        let millis = self.shared.0.load(Ordering::Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis.into()))
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.signal.is_some_and(Signal::is_set)
    }

    /// Whether the chat around it was left as it is: nothing in it has come to an end.
    pub(crate) fn is_left(&self) -> bool {
        self.chat.is_some_and(ChatRun::is_left)
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
        if let Some(transition) = failure.transition {
            self.emit(|| EventKind::TransitionHookFailed {
                hook: failure.hook.clone(),
                transition,
                fault: failure.kind,
                reason: reason_of(&failure.message).unwrap_or_default(),
            });
        }
        self.data.failures.lock().push(failure);
    }

    #[inline]
    pub(crate) fn emit(&self, kind: impl FnOnce() -> EventKind) {
        if let Some(bus) = self.inner.listening() {
            bus.emit(self.inner, self.turn, kind());
        }
    }

    /// Announces a begin, if anybody listens. Its end is announced too, whatever happens: by
    /// [`Begun::ended`], or as `dropped` if the call is dropped half way (G1).
    #[inline]
    pub(crate) fn begun<F>(&'a self, begin: impl FnOnce() -> EventKind, dropped: F) -> Begun<'a, F>
    where
        F: FnOnce() -> EventKind,
    {
        let watched = self.inner.is_watched();
        if watched {
            self.emit(begin);
        }
        Begun { site: self, dropped: watched.then_some(dropped) }
    }
}

/// Something that was announced as begun, if anybody listened then.
pub(crate) struct Begun<'a, F: FnOnce() -> EventKind> {
    site: &'a Site<'a>,
    dropped: Option<F>,
}

impl<F: FnOnce() -> EventKind> Begun<'_, F> {
    #[inline]
    pub(crate) fn ended(mut self, end: impl FnOnce() -> EventKind) {
        if self.dropped.take().is_some() {
            self.site.emit(end);
        }
    }
}

impl<F: FnOnce() -> EventKind> Drop for Begun<'_, F> {
    #[inline]
    fn drop(&mut self) {
        if let Some(dropped) = self.dropped.take()
            && !self.site.is_left()
        {
            self.site.emit(dropped);
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

impl ScopeData {
    /// What the entry at this place left to be recorded with its decision.
    pub(crate) fn carried_at(&self, place: usize) -> Option<serde_json::Value> {
        self.carried.lock().iter().rev().find_map(|(at, value)| match value {
            Carried::Recorded(value) if *at == place => Some(value.clone()),
            _ => None,
        })
    }
}
