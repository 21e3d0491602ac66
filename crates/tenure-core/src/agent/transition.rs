//! Transitions of an instance, told in the order in which they happened: to hooks, then to listeners.
//!
//! A transition is made and queued under one lock ([`Inner::transition`]), so the order of the queue is the
//! order of the moves, by any mover: the turn, the starter, an operator, a stop. Telling waits
//! for those ahead. An instance without hooks on transitions and without listeners has no queue.

use super::Inner;
use crate::BoxFuture;
use crate::cancel::Signal;
use crate::context::{Cx, PhaseCx};
use crate::drive::Turn;
use crate::event::EventKind;
use crate::hook::{Entry, HookError, Point};
use crate::id::RunId;
use crate::kernel::{Ends, Sequence, Site, sequence};
use crate::life::LifeCell;
use crate::outcome::ExitReason;
use crate::phase::Phase;
use crate::sync::Mutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A move from one phase to another.
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
    waiting: VecDeque<Queued>,
    wakers: Vec<Waker>,
}

struct Queued {
    number: u64,
    arrow: Arrow,
    /// Whose event it is, if somebody listened when it happened.
    origin: Option<(Option<RunId>, Option<Arc<str>>)>,
    /// Its hooks have run, or nobody is left to run them.
    is_told: bool,
}

impl Untold {
    /// The queue's place of `number`: zero once it is its turn to be told.
    fn place(&self, number: u64, waker: Option<&Waker>) -> usize {
        let mut queue = self.queue.lock();
        let place = queue.waiting.iter().position(|it| it.number == number).unwrap_or(0);
        if place > 0
            && let Some(waker) = waker
            && !queue.wakers.iter().any(|known| known.will_wake(waker))
        {
            queue.wakers.push(waker.clone());
        }
        place
    }

    /// Marks as told what `tells` picks, and announces all that is told and has nothing ahead of it.
    fn settle(&self, inner: &Inner, tells: impl Fn(u64) -> bool) {
        let wakers = {
            let mut queue = self.queue.lock();
            for queued in queue.waiting.iter_mut().filter(|it| tells(it.number)) {
                queued.is_told = true;
            }
            // Under the lock, so that events go out in the order of the queue.
            while let Some(Queued { arrow, origin, .. }) =
                queue.waiting.pop_front_if(|first| first.is_told)
            {
                if let Some((run, trace)) = origin
                    && let Some(bus) = inner.listening()
                {
                    let Arrow { from, to, reason } = arrow;
                    bus.emit_of(inner, run, trace, EventKind::PhaseEntered { from, to, reason });
                }
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
            cell.claim_turn().map(|()| Arrow::new(Phase::Idle, Phase::ProcessingUserInput))
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
    pub(crate) fn origin_of(&self, turn: Option<&Turn>) -> (Option<RunId>, Option<Arc<str>>) {
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
    /// there is one. What is ahead is not waited for longer than that.
    pub(crate) async fn tell(self, site: &Site<'_>, left: Option<Duration>) {
        let Arrow { from, to, .. } = self.arrow;
        let chain = &self.inner.blueprint.chain;
        let wanted = |place: &u16| chain.entries[*place as usize].wants_transition(from, to);
        if !chain.calls(Point::OnTransition).iter().any(wanted) {
            return;
        }
        let untold = &self.inner.extra().untold;
        let started = Instant::now();
        // What is ahead may have as many hooks as there are.
        let hooks = chain.calls(Point::OnTransition).len() as u32;
        let patience = left.unwrap_or(self.inner.config().limits.hook.saturating_mul(hooks));
        let first = poll_fn(|cx| match untold.place(self.number, Some(cx.waker())) {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        });
        if untold.place(self.number, None) > 0 && timeout(patience, first).await.is_err() {
            // Whoever tells them is not polled any more, or takes longer than this one has.
            untold.settle(&self.inner, |number| number < self.number);
        }
        let left = left.map_or(Duration::MAX, |left| left.saturating_sub(started.elapsed()));
        let site = Site { signal: Some(&untold.hurry), ..*site };
        // Transitions cannot fail: every policy there is `continue`.
        let _ = sequence(&site, chain, Ends::Transition(left), &mut Hooks { from, to }).await;
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.inner.extra().untold.settle(&self.inner, |number| number == self.number);
    }
}

/// The hooks of one transition.
struct Hooks {
    from: Phase,
    to: Phase,
}

impl Sequence for Hooks {
    const POINT: Point = Point::OnTransition;
    type Out = ();

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        entry.hook.on_transition(PhaseCx::new(cx, self.from, self.to))
    }

    fn skips(&self, _place: usize, entry: &Entry) -> bool {
        !entry.wants_transition(self.from, self.to)
    }
}
