//! The time that a chat may take: what it waits for a person does not count.

use async_trait::async_trait;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tokio::time::Instant;

/// Measures time, except while questions are open. Clones are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Arc<Mutex<Waited>>);

#[derive(Debug, Default)]
struct Waited {
    open: usize,
    since: Option<Instant>,
    /// What was waited before that.
    before: Duration,
}

impl Clock {
    /// Returns once so much time has passed from now on.
    pub(super) async fn after(&self, limit: Duration) {
        let (began, waited) = (Instant::now(), self.waited());
        loop {
            let spent = began.elapsed().saturating_sub(self.waited().saturating_sub(waited));
            let left = limit.saturating_sub(spent);
            if left.is_zero() {
                return;
            }
            // While a question is open this comes round again with as much left.
            tokio::time::sleep(left.max(Duration::from_millis(1))).await;
        }
    }

    /// Puts the questions of `asker` outside of what is measured.
    pub(super) fn stopped_by<A: Asker>(&self, asker: A) -> impl Asker {
        StopsClock { asker, clock: self.clone() }
    }

    fn waited(&self) -> Duration {
        let state = self.state();
        state.before + state.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, Waited> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct StopsClock<A> {
    asker: A,
    clock: Clock,
}

#[async_trait]
impl<A: Asker> Asker for StopsClock<A> {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        let _open = Open::new(&self.clock);
        self.asker.answer(ask).await
    }

    fn is_there(&self) -> bool {
        self.asker.is_there()
    }
}

/// A question that is open.
struct Open<'a>(&'a Clock);

impl<'a> Open<'a> {
    fn new(clock: &'a Clock) -> Self {
        let mut state = clock.state();
        state.open += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        Self(clock)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open -= 1;
        if state.open == 0
            && let Some(since) = state.since.take()
        {
            state.before += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::ask::Ask;

    struct Slow(Duration);

    #[async_trait]
    impl Asker for Slow {
        async fn answer(&self, _: &PendingAsk) -> Option<Answer> {
            tokio::time::sleep(self.0).await;
            Some(Answer::Approve)
        }
    }

    #[test]
    fn what_a_person_takes_does_not_count() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let clock = Clock::default();
            let asker = clock.stopped_by(Slow(Duration::from_millis(300)));
            let began = Instant::now();
            let ask = PendingAsk::new("a", Ask::input("?"));
            let (_, answer) =
                tokio::join!(clock.after(Duration::from_millis(50)), asker.answer(&ask));
            assert_eq!(answer, Some(Answer::Approve));
            assert!(began.elapsed() >= Duration::from_millis(340), "{:?}", began.elapsed());
            let began = Instant::now();
            clock.after(Duration::from_millis(50)).await;
            assert!(began.elapsed() < Duration::from_millis(300), "{:?}", began.elapsed());
        });
    }
}
