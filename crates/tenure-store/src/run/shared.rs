//! What the jobs of a run share with it. They run on the writer's thread, and must not keep the
//! writer itself alive.

use crate::error::{StoreError, StoreErrorKind};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tenure_core::{Error, RunId};

/// How many jobs that nobody waits for may be on their way before the next step waits.
const MOST_QUEUED: usize = 1024;

pub(crate) struct Shared {
    run: RunId,
    name: Arc<str>,
    life: u32,
    /// The newest life of the run, for all logs of it in this process. Written on the writer's
    /// thread only, so that no job of an older life comes after it.
    newest: Arc<AtomicU32>,
    /// Whether the right to drive was given back.
    closed: Arc<AtomicBool>,
    trouble: OnceLock<Error>,
    queued: AtomicUsize,
    /// Whether the run's row says that it waits.
    waiting: AtomicBool,
    over: AtomicBool,
    /// Whether its end is on record. Written on the writer's thread only, so that nothing comes
    /// behind it.
    ended: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        run: RunId,
        life: u32,
        newest: Arc<AtomicU32>,
        closed: Arc<AtomicBool>,
    ) -> Self {
        Self {
            run,
            name: run.to_string().into(),
            life,
            newest,
            closed,
            trouble: OnceLock::new(),
            queued: AtomicUsize::new(0),
            waiting: AtomicBool::new(false),
            over: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn newest(&self) -> Arc<AtomicU32> {
        self.newest.clone()
    }

    /// The run's id as the file has it.
    pub(crate) fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    pub(crate) fn life(&self) -> u32 {
        self.life
    }

    /// The run's end is on record.
    pub(crate) fn set_ended(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Refuses what a life wants to record that is not the run's newest, and what comes behind the
    /// end of the run.
    pub(crate) fn fence(&self) -> Result<(), StoreError> {
        if self.ended.load(Ordering::Acquire) {
            return Err(self.left(format_args!("its end is on record")));
        }
        match self.newest.load(Ordering::Acquire) {
            newest if newest == self.life => Ok(()),
            newest => {
                let life = self.life;
                Err(self.left(format_args!("its life {newest} has taken over from life {life}")))
            }
        }
    }

    #[cold]
    fn left(&self, found: fmt::Arguments<'_>) -> StoreError {
        let message = format!(
            "nothing more is recorded of run {} here: {found}. Drop what is left of this life",
            self.run
        );
        StoreError::new(StoreErrorKind::Driven, message)
    }

    /// Why nothing can be recorded any more.
    pub(crate) fn trouble(&self) -> Option<Error> {
        if let Some(error) = self.trouble.get() {
            return Some(error.clone());
        }
        // A life that has been taken over must not begin anything either.
        let closed = || match self.closed.load(Ordering::Acquire) {
            true => {
                Err(self.left(format_args!("the driver was dropped that it was taken up with")))
            }
            false => Ok(()),
        };
        self.fence().and_then(|()| closed()).err().map(|error| self.park(error.into()))
    }

    /// The first trouble is the one that is told.
    pub(crate) fn park(&self, error: Error) -> Error {
        self.trouble.get_or_init(|| error).clone()
    }

    pub(crate) fn queued_one(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn done_one(&self) {
        self.queued.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > MOST_QUEUED
    }

    /// Notes whether the run's row says that it waits. Whether that is news.
    pub(crate) fn says_waiting(&self, waiting: bool) -> bool {
        self.waiting.swap(waiting, Ordering::Relaxed) != waiting
    }

    /// Whether the run is over, or parked: nothing more is said of where it stands.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn set_over(&self) -> bool {
        !self.over.swap(true, Ordering::AcqRel)
    }
}
