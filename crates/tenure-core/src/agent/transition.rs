//! Transitions of an instance, told in the order in which they happened: to hooks, then to listeners.
//!
//! A transition is made and queued under one lock ([`Inner::transition`]), so the order of the queue is the
//! order of the moves, by any mover: the turn, the starter, an operator, a stop. Telling waits
//! for those ahead. An instance without hooks on transitions and without listeners has no queue.
//!
//! Listeners are told outside of that lock, because a step log is foreign code: it may take its time,
//! and it may move the agent. One mover at a time announces, and goes on until nothing is left to
//! announce; what others have told by then is announced by it, in the order of the queue.

use super::Inner;
use crate::BoxFuture;
use crate::cancel::Signal;
use crate::context::{Cx, PhaseCx};
use crate::drive::Turn;
use crate::event::EventKind;
use crate::hook::{Entry, HookError, Point};
use crate::id::RunId;
use crate::kernel::{Ends, Sequence, Shared, Site, sequence};
use crate::life::LifeCell;
use crate::outcome::ExitReason;
use crate::phase::{Phase, Transition};
use crate::sync::Mutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A transition that is made, and the reason of the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrow {
    pub(crate) from: Phase,
    pub(crate) to: Phase,
    /// Why the instance is over, if it is.
    pub(crate) reason: Option<ExitReason>,
}

impl Arrow {
    pub(crate) fn new(from: Phase, to: Phase) -> Self {
        Self { from, to, reason: None }
    }
}

/// The transitions that have happened and are not told yet, oldest first.
#[derive(Default)]
pub(crate) struct Untold {
    queue: Mutex<Queue>,
    /// Set when a shutdown has no time left for the hooks of transitions.
    pub(crate) hurry: Signal,
}

#[derive(Default)]
struct Queue {
    last_number: u64,
    /// What is being announced stays at the front until it is.
    waiting: VecDeque<Queued>,
    is_announcing: bool,
    wakers: Vec<Waker>,
}

struct Queued {
    number: u64,
    arrow: Arrow,
    /// Whose event it is, if somebody listened when it happened.
    origin: Option<Origin>,
    /// Its hooks have run, or nobody is left to run them.
    is_told: bool,
}

/// The run and the trace that an event is part of.
type Origin = (Option<RunId>, Option<Arc<str>>);

impl Untold {
    /// Returns `true` if `until` holds of the queue. If not, `waker` is woken when that may have changed.
    fn holds(&self, until: impl Fn(&Queue) -> bool, waker: Option<&Waker>) -> bool {
        let mut queue = self.queue.lock();
        let holds = until(&queue);
        if !holds
            && let Some(waker) = waker
            && !queue.wakers.iter().any(|known| known.will_wake(waker))
        {
            queue.wakers.push(waker.clone());
        }
        holds
    }

    /// Waits until `until` holds of the queue, at most so long. Returns `true` if it does.
    async fn wait(&self, until: impl Fn(&Queue) -> bool, patience: Duration) -> bool {
        if self.holds(&until, None) {
            return true;
        }
        let holds = poll_fn(|cx| match self.holds(&until, Some(cx.waker())) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        timeout(patience, holds).await.is_ok()
    }

    /// Marks as told what `tells` picks, and announces all that is told and has nothing ahead of it,
    /// unless that is being done: then it is done there.
    fn settle(&self, inner: &Inner, tells: impl Fn(u64) -> bool) {
        {
            let mut queue = self.queue.lock();
            for queued in queue.waiting.iter_mut().filter(|it| tells(it.number)) {
                queued.is_told = true;
            }
            if std::mem::replace(&mut queue.is_announcing, true) {
                return;
            }
        }
        while let Some(announcing) = Announcing::next(self) {
            announcing.announce(inner);
        }
    }
}

impl Queue {
    /// Returns `true` if nothing is ahead of `number`: it is its turn to be told.
    fn is_first(&self, number: u64) -> bool {
        self.waiting.front().is_none_or(|first| first.number >= number)
    }

    /// Returns `true` if another mover is about to announce `number`. Not so if something ahead of it
    /// is still to be told: that may take long, and no mover waits for it.
    fn is_handed_over(&self, number: u64) -> bool {
        let up_to = || self.waiting.iter().take_while(|queued| queued.number <= number);
        self.is_announcing && up_to().next().is_some() && up_to().all(|queued| queued.is_told)
    }
}

/// The front of the queue on its way to listeners. Dropping it, also by a panic of a listener, takes it
/// off the queue and wakes those behind it.
struct Announcing<'a> {
    untold: &'a Untold,
    arrow: Arrow,
    origin: Option<Origin>,
    is_over: bool,
}

impl<'a> Announcing<'a> {
    /// Takes the next transition to announce. If there is none, the next one who settles announces;
    /// both are decided under one lock, so nothing that is told is left behind.
    fn next(untold: &'a Untold) -> Option<Self> {
        let mut queue = untold.queue.lock();
        let first = queue.waiting.front_mut().filter(|first| first.is_told);
        let Some(Queued { arrow, origin, .. }) = first else {
            queue.is_announcing = false;
            return None;
        };
        Some(Self { untold, arrow: *arrow, origin: origin.take(), is_over: false })
    }

    fn announce(mut self, inner: &Inner) {
        if let Some((run, trace)) = self.origin.take()
            && let Some(bus) = inner.listening()
        {
            let Arrow { from, to, reason } = self.arrow;
            bus.emit_of(inner, run, trace, EventKind::PhaseEntered { from, to, reason });
        }
        self.is_over = true;
    }
}

impl Drop for Announcing<'_> {
    fn drop(&mut self) {
        let wakers = {
            let mut queue = self.untold.queue.lock();
            queue.waiting.pop_front();
            if !self.is_over {
                // The listener has panicked; the rest is announced by the next one who settles.
                queue.is_announcing = false;
            }
            std::mem::take(&mut queue.wakers)
        };
        for waker in wakers {
            waker.wake();
        }
    }
}

impl Inner {
    /// Whether transitions have hooks, or are watched.
    #[inline(always)]
    pub(crate) fn tells_transitions(&self) -> bool {
        self.blueprint.chain.has(Point::OnTransition) || self.is_watched()
    }

    /// Makes a transition. `Some` is to be told; dropping it announces the transition without its
    /// hooks.
    #[inline]
    pub(crate) fn transition<E>(
        self: &Arc<Self>,
        turn: Option<&Turn>,
        make: impl FnOnce(&LifeCell) -> Result<Arrow, E>,
    ) -> Result<Option<Telling>, E> {
        let made = if self.tells_transitions() {
            self.queued_transition(turn, make).map(Some)
        } else {
            make(&self.cell).map(|_| None)
        };
        self.cell.notify();
        made
    }

    /// Claims the turn of a ready agent, which somebody is told of.
    #[cold]
    pub(crate) fn claim_aloud(self: &Arc<Self>) -> Result<Option<Telling>, Phase> {
        self.transition(None, |cell| {
            cell.claim_turn(|| self.signal.clear())
                .map(|()| Arrow::new(Phase::Idle, Phase::ProcessingUserInput))
        })
    }

    #[cold]
    fn queued_transition<E>(
        self: &Arc<Self>,
        turn: Option<&Turn>,
        make: impl FnOnce(&LifeCell) -> Result<Arrow, E>,
    ) -> Result<Telling, E> {
        let origin = self.is_watched().then(|| self.origin_of(turn));
        let mut queue = self.extra().untold.queue.lock();
        let arrow = make(&self.cell)?;
        queue.last_number += 1;
        let number = queue.last_number;
        queue.waiting.push_back(Queued { number, arrow, origin, is_told: false });
        Ok(Telling { inner: self.clone(), number, arrow })
    }

    /// The run and the trace that an event of the instance is part of.
    pub(crate) fn origin_of(&self, turn: Option<&Turn>) -> Origin {
        (turn.map(|turn| turn.run), turn.map(Turn::trace).or_else(|| self.trace()))
    }

    /// Cuts off the hooks of transitions that still run, until [`Inner::take_time`].
    pub(crate) fn hurry(&self) {
        if let Some(extra) = self.if_extra() {
            extra.untold.hurry.set();
        }
    }

    /// Lets the hooks of transitions have what is left again.
    pub(crate) fn take_time(&self) {
        if let Some(extra) = self.if_extra() {
            extra.untold.hurry.clear();
        }
    }
}

/// A transition that has happened and is still to be told. Dropping it tells it to listeners only.
#[must_use = "dropping it leaves out its hooks"]
pub(crate) struct Telling {
    inner: Arc<Inner>,
    number: u64,
    arrow: Arrow,
}

impl Telling {
    /// Makes it the transition of a turn that did not exist yet when it was made.
    pub(crate) fn is_of(&self, turn: &Turn) {
        let mut queue = self.inner.extra().untold.queue.lock();
        if let Some(queued) = queue.waiting.iter_mut().find(|it| it.number == self.number)
            && queued.origin.is_some()
        {
            queued.origin = Some(self.inner.origin_of(Some(turn)));
        }
    }

    /// Runs its hooks, once those ahead of it are told, and then announces it.
    ///
    /// Each hook has its own limit, and all of them together what is `left` of a budget, if
    /// there is one. What is ahead is not waited for longer than that, nor is another mover that
    /// announces it.
    pub(crate) async fn tell(self, site: &Site<'_>, left: Option<Duration>) {
        let Arrow { from, to, .. } = self.arrow;
        let (inner, number) = (self.inner.clone(), self.number);
        let (chain, untold) = (&inner.blueprint.chain, &inner.extra().untold);
        let calls = chain.calls(Point::OnTransition);
        // What is ahead may have as many hooks as there are. A log takes no longer than a hook may.
        let hooks = calls.len().max(1) as u32;
        let patience = left.unwrap_or(inner.config().limits.hook.saturating_mul(hooks));
        let mut spent = Duration::ZERO;
        if calls.iter().any(|at| chain.entries[*at as usize].wants_transition(from, to)) {
            let started = Instant::now();
            if !untold.wait(|queue| queue.is_first(number), patience).await {
                // Whoever tells them is not polled any more, or takes longer than this one has.
                untold.settle(&inner, |ahead| ahead < number);
            }
            let left = left.map_or(Duration::MAX, |left| left.saturating_sub(started.elapsed()));
            let site = Site { signal: Some(&untold.hurry), shared: Shared::default(), ..*site };
            let mut hooks = Hooks(Transition { from, to });
            // Transitions cannot fail: every policy there is `continue`.
            let _ = sequence(&site, chain, Ends::Transition(left), &mut hooks).await;
            spent = started.elapsed();
        }
        drop(self);
        let patience = patience.saturating_sub(spent);
        // If another mover is slower than that, it is announced behind the caller's back.
        let _ = untold.wait(|queue| !queue.is_handed_over(number), patience).await;
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.inner.extra().untold.settle(&self.inner, |number| number == self.number);
    }
}

/// The hooks of one transition.
struct Hooks(Transition);

impl Sequence for Hooks {
    const POINT: Point = Point::OnTransition;
    type Out = ();

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        entry.hook.on_transition(PhaseCx::new(cx, self.0.from, self.0.to))
    }

    fn skips(&self, _place: usize, entry: &Entry) -> bool {
        !entry.wants_transition(self.0.from, self.0.to)
    }

    fn transition(&self) -> Option<Transition> {
        Some(self.0)
    }
}
