//! The protocol between whoever starts, uses and stops an agent.
//!
//! Two cells with one writer each. *Life* is moved by compare-and-swap, by whoever starts, pauses
//! or stops. *Turn* is moved by plain stores, by the one who claimed the turn. A claim sets the
//! turn and then looks at life; a stop sets life and then looks at the turn; so at least one of
//! them sees the other, and a turn never begins in an agent that is being stopped.
//!
//! This file depends on nothing but phases and `sync`, so that its schedules can be explored.

use crate::phase::Phase;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// The turn is over and its last transition is being told; nobody may claim the next one yet.
const SETTLING: u8 = u8::MAX;

/// The agent is up and the hooks of `bootstrapping -> idle` run; nobody may claim a turn yet.
const SETTING_UP: u8 = u8::MAX - 1;

/// What one move adds to the count that life keeps above its phase.
const ONE_MOVE: u32 = 1 << 8;

pub(crate) struct LifeCell {
    /// The phase in the lowest byte, and above it how often life has moved: both change at once.
    life: AtomicU32,
    turn: AtomicU8,
    waiting: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl LifeCell {
    pub(crate) fn new() -> Self {
        Self {
            life: AtomicU32::new(Phase::Uninitialized as u32),
            turn: AtomicU8::new(Phase::Idle as u8),
            waiting: AtomicBool::new(false),
            wakers: Mutex::new(Vec::new()),
        }
    }

    /// Where the agent is. Life counts first: while it is stopping, that is what it is.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        match self.life() {
            Phase::Idle => phase(self.turn.load(Ordering::Acquire)),
            life => life,
        }
    }

    #[inline]
    pub(crate) fn life(&self) -> Phase {
        life_phase(self.life.load(Ordering::SeqCst))
    }

    /// How often life has moved.
    pub(crate) fn moves(&self) -> u64 {
        u64::from(self.life.load(Ordering::Relaxed) / ONE_MOVE)
    }

    /// The phase of the turn; `Idle` if there is none.
    #[inline]
    pub(crate) fn turn(&self) -> Phase {
        phase(self.turn.load(Ordering::SeqCst))
    }

    /// Whether somebody holds the turn, if only to tell that it is over.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.turn.load(Ordering::SeqCst) != Phase::Idle as u8
    }

    /// Moves life, if it is where it is thought to be. The loser learns where it is. Those who wait
    /// have to be woken: [`LifeCell::notify`].
    #[inline]
    pub(crate) fn go(&self, from: Phase, to: Phase) -> Result<(), Phase> {
        let mut now = self.life.load(Ordering::SeqCst);
        loop {
            if life_phase(now) != from {
                return Err(life_phase(now));
            }
            let next = (now & !0xff).wrapping_add(ONE_MOVE) | to as u32;
            match self.life.compare_exchange(now, next, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Ok(()),
                Err(other) => now = other,
            }
        }
    }

    /// Claims the turn of a ready agent. On failure, the phase that stood in the way. `claimed` is called in
    /// between: a stop that came before it is seen, and one that comes later sees the turn. Those
    /// who wait have to be woken if it fails: [`LifeCell::notify`].
    #[inline]
    pub(crate) fn claim_turn(&self, claimed: impl FnOnce()) -> Result<(), Phase> {
        self.take_turn(Phase::ProcessingUserInput as u8, claimed)
    }

    /// Takes the turn of an agent that is up, and looks at life before and after it: before, so that
    /// the turn of an agent that starts is the starter's alone; after, so that a stop is seen. Those
    /// who wait have to be woken, also if it fails: [`LifeCell::notify`].
    #[inline]
    fn take_turn(&self, value: u8, taken: impl FnOnce()) -> Result<(), Phase> {
        match self.life() {
            Phase::Idle => {}
            other => return Err(other),
        }
        self.turn
            .compare_exchange(Phase::Idle as u8, value, Ordering::SeqCst, Ordering::SeqCst)
            .map_err(|_| self.in_the_way())?;
        taken();
        match self.life() {
            Phase::Idle => Ok(()),
            other => {
                self.turn.store(Phase::Idle as u8, Ordering::SeqCst);
                Err(other)
            }
        }
    }

    /// Pauses a ready agent. It takes the turn for a moment, so that nobody else is in one. Those who
    /// wait have to be woken: [`LifeCell::notify`].
    pub(crate) fn pause(&self) -> Result<(), Phase> {
        self.take_turn(SETTLING, || {})?;
        let paused = self.go(Phase::Idle, Phase::Paused);
        self.turn.store(Phase::Idle as u8, Ordering::SeqCst);
        paused
    }

    /// Holds the turn of an agent that is about to be up, until its setup is done. Only the starter
    /// may, while life is still bootstrapping.
    pub(crate) fn hold_for_setup(&self) {
        self.turn.store(SETTING_UP, Ordering::SeqCst);
    }

    /// Whether the hooks of `bootstrapping -> idle` run.
    #[inline]
    pub(crate) fn is_setting_up(&self) -> bool {
        self.turn.load(Ordering::SeqCst) == SETTING_UP
    }

    /// What stands in the way of whoever wanted the turn.
    fn in_the_way(&self) -> Phase {
        match self.phase() {
            Phase::Idle if self.is_setting_up() => Phase::Bootstrapping,
            // Somebody is about to leave it.
            Phase::Idle => Phase::ProcessingToolResult,
            phase => phase,
        }
    }

    /// Moves the turn. Only the one who claimed it may.
    #[inline]
    pub(crate) fn turn_to(&self, to: Phase) {
        self.turn.store(to as u8, Ordering::Release);
    }

    /// The turn is over; whoever looks sees an idle agent, but the turn is not free yet.
    #[inline]
    pub(crate) fn settle_turn(&self) {
        self.turn.store(SETTLING, Ordering::Release);
    }

    /// Whether the turn is over, and only told still.
    #[inline]
    pub(crate) fn is_settling(&self) -> bool {
        self.turn.load(Ordering::Relaxed) == SETTLING
    }

    #[inline]
    pub(crate) fn release_turn(&self) {
        self.turn.store(Phase::Idle as u8, Ordering::SeqCst);
        self.notify();
    }

    /// Wakes those who wait, after a move. Not part of the move, because whoever is woken may run
    /// at once, and moves are made under a lock.
    #[inline]
    pub(crate) fn notify(&self) {
        if self.waiting.load(Ordering::SeqCst) {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        let wakers = {
            let mut wakers = self.wakers.lock();
            self.waiting.store(false, Ordering::SeqCst);
            std::mem::take(&mut *wakers)
        };
        for waker in wakers {
            waker.wake();
        }
    }

    /// Waits until `until` holds of life, and of whether somebody holds the turn. Says where the
    /// agent is then.
    pub(crate) async fn wait(&self, until: impl Fn(Phase, bool) -> bool) -> Phase {
        poll_fn(|cx| {
            if until(self.life(), self.is_held()) {
                return Poll::Ready(self.phase());
            }
            {
                let mut wakers = self.wakers.lock();
                if !wakers.iter().any(|known| known.will_wake(cx.waker())) {
                    wakers.push(cx.waker().clone());
                }
                self.waiting.store(true, Ordering::SeqCst);
            }
            // A change between the look and the registration has woken nobody.
            if until(self.life(), self.is_held()) {
                Poll::Ready(self.phase())
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

#[inline]
fn phase(value: u8) -> Phase {
    match value {
        SETTLING | SETTING_UP => Phase::Idle,
        value => Phase::ALL[value as usize],
    }
}

#[inline]
fn life_phase(value: u32) -> Phase {
    Phase::ALL[(value & 0xff) as usize]
}
