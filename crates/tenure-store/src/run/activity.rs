//! What a run is at: effects that run, and questions that stand. A run waits for a person if it has
//! questions and nothing else that goes on.
//!
//! Effects are nested: a tool's body may ask, a hook may take steps of its own. Which effect a step
//! is taken in is known by the task that polls both; a step that an effect has another task take
//! for it counts as one of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::step::StepKey;
use tokio::sync::watch;

tokio::task_local! {
    static INSIDE: Arc<Frame>;
}

/// One effect that runs now.
pub(super) struct Frame {
    pub(super) key: StepKey,
    within: Option<Arc<Frame>>,
    /// How many effects and questions stand in it.
    inner: AtomicUsize,
}

impl Frame {
    /// The effect of whoever calls this.
    pub(super) fn current() -> Option<Arc<Frame>> {
        INSIDE.try_with(Arc::clone).ok()
    }

    pub(super) fn is_in_end(&self) -> bool {
        self.key.is_end() || self.within.as_ref().is_some_and(|outer| outer.is_in_end())
    }
}

pub(super) struct Activity {
    counts: Mutex<Counts>,
    waiting: watch::Sender<bool>,
}

#[derive(Default)]
struct Counts {
    /// Effects in which nothing else stands.
    busy: usize,
    asks: usize,
}

/// Something that stands, until this is dropped.
pub(super) struct Standing<'a> {
    activity: &'a Activity,
    within: Option<Arc<Frame>>,
    is_ask: bool,
}

impl Default for Activity {
    fn default() -> Self {
        Self { counts: Mutex::default(), waiting: watch::Sender::new(false) }
    }
}

impl Activity {
    /// Runs an effect as one that goes on.
    pub(super) async fn within<T>(
        &self,
        key: &StepKey,
        within: Option<Arc<Frame>>,
        effect: impl Future<Output = T>,
    ) -> T {
        let _standing = self.stand(within.clone(), false);
        let frame = Frame { key: key.clone(), within, inner: AtomicUsize::new(0) };
        INSIDE.scope(Arc::new(frame), effect).await
    }

    /// A question stands.
    pub(super) fn asks(&self, within: Option<Arc<Frame>>) -> Standing<'_> {
        self.stand(within, true)
    }

    pub(super) fn is_waiting(&self) -> bool {
        *self.waiting.borrow()
    }

    /// Waits until there are questions and nothing else.
    pub(super) async fn until_waiting(&self) {
        let mut waiting = self.waiting.subscribe();
        // The sender is part of this.
        let _ = waiting.wait_for(|waiting| *waiting).await;
    }

    fn stand(&self, within: Option<Arc<Frame>>, is_ask: bool) -> Standing<'_> {
        let mut counts = self.lock();
        if let Some(outer) = &within
            && outer.inner.fetch_add(1, Ordering::Relaxed) == 0
        {
            counts.busy = counts.busy.saturating_sub(1);
        }
        if is_ask {
            counts.asks += 1;
        } else {
            counts.busy += 1;
        }
        self.tell(&counts);
        drop(counts);
        Standing { activity: self, within, is_ask }
    }

    fn tell(&self, counts: &Counts) {
        let now = counts.asks > 0 && counts.busy == 0;
        self.waiting.send_if_modified(|waiting| std::mem::replace(waiting, now) != now);
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        let mut counts = self.activity.lock();
        if self.is_ask {
            counts.asks -= 1;
        } else {
            counts.busy = counts.busy.saturating_sub(1);
        }
        if let Some(outer) = &self.within
            && outer.inner.fetch_sub(1, Ordering::Relaxed) == 1
        {
            counts.busy += 1;
        }
        self.activity.tell(&counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;
    use tokio::task::yield_now;

    fn key(kind: &str) -> StepKey {
        StepKey::new("", kind, "it", 0, 0)
    }

    #[tokio::test]
    async fn a_tool_that_asks_waits_and_one_beside_it_does_not() {
        let activity = Activity::default();
        let (answer, answered) = oneshot::channel::<()>();
        let (done, finished) = oneshot::channel::<()>();
        let tool = key("tool");
        let asking = activity.within(&tool, None, async {
            let _asks = activity.asks(Frame::current());
            let _ = answered.await;
        });
        let working = activity.within(&tool, None, async {
            let _ = finished.await;
        });
        let watching = async {
            yield_now().await;
            assert!(!activity.is_waiting(), "one of the two works");
            let _ = done.send(());
            activity.until_waiting().await;
            let _ = answer.send(());
        };
        tokio::join!(asking, working, watching);
        assert!(!activity.is_waiting());
        let counts = activity.lock();
        assert_eq!((counts.busy, counts.asks), (0, 0));
    }

    #[tokio::test]
    async fn what_an_end_takes_is_in_the_end() {
        let activity = Activity::default();
        let end = key("after_agent");
        let inner = activity.within(&end, None, async {
            let outer = Frame::current();
            activity.within(&key("step"), outer, async { Frame::current() }).await
        });
        assert!(inner.await.is_some_and(|frame| frame.is_in_end()));
        let other = activity.within(&key("tool"), None, async { Frame::current() }).await;
        assert!(other.is_some_and(|frame| !frame.is_in_end()));
    }

    /// A run whose future is dropped leaves nothing behind.
    #[tokio::test]
    async fn a_dropped_effect_counts_no_more() {
        let activity = Activity::default();
        let tool = key("tool");
        let mut effect = Box::pin(activity.within(&tool, None, std::future::pending::<()>()));
        tokio::select! {
            biased;
            () = &mut effect => unreachable!("it never ends"),
            () = yield_now() => {}
        }
        assert_eq!(activity.lock().busy, 1);
        drop(effect);
        assert_eq!(activity.lock().busy, 0);
    }
}
