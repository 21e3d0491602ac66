//! What the runs of one command stand on: the runtime, and the signals that stop them.

use super::session::listen;
use crate::exit::Exit;
use crate::signal::Stopper;
use crate::terminal::Screen;
use anyhow::{Context as _, Result};
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::CancelToken;
use tokio::runtime::{Handle, Runtime};

/// What one command has once, however many runs it drives one after the other.
pub(super) struct Ground {
    runtime: Runtime,
    /// Stopped by signals.
    whole: Stopper,
    shown: Shown,
}

/// The screen of the run that goes on. Clones are one.
#[derive(Clone)]
pub(super) struct Shown(Arc<Mutex<Screen>>);

impl Shown {
    pub(super) fn new(screen: &Screen) -> Self {
        Self(Arc::new(Mutex::new(screen.clone())))
    }

    pub(super) fn now(&self) -> Screen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether more runs follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// This one is the last.
    Nothing,
    /// Others follow, unless the program is told to end.
    More,
}

impl Ground {
    /// From here on signals stop what runs: the first one in an orderly way, the second one at once.
    pub(super) fn new(screen: &Screen) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the runtime cannot be started")?;
        let (whole, shown) = (Stopper::default(), Shown::new(screen));
        listen(&shown, &whole)?;
        Ok(Self { runtime, whole, shown })
    }

    pub(super) fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// What signals have to say is said here from now on.
    pub(super) fn show(&self, screen: &Screen) {
        *self.shown.0.lock().unwrap_or_else(PoisonError::into_inner) = screen.clone();
    }

    /// Why the program is to end, if it is.
    pub(super) fn stopped(&self) -> Option<Exit> {
        self.whole.cause()
    }

    /// Drives one run. A signal stops it, and so does `cancel`.
    pub(super) fn drive<T>(
        &self,
        stopper: &Stopper,
        cancel: Option<CancelToken>,
        run: impl Future<Output = T>,
    ) -> T {
        let signals = async {
            self.whole.stopped().await;
            stopper.stop(self.whole.cause().unwrap_or(Exit::Cancelled));
            std::future::pending::<T>().await
        };
        let cancels = async {
            match cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
            stopper.stop(Exit::Cancelled);
            std::future::pending::<T>().await
        };
        self.runtime.block_on(async {
            tokio::select! {
                // In this order: what is stopped before it begins does not begin.
                biased;
                never = signals => never,
                never = cancels => never,
                done = run => done,
            }
        })
    }

    /// Waits for something beside the runs.
    pub(super) fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// A run has ended, and what is left is to say how. A program that is to end has a moment for
    /// that, whoever reads it.
    pub(super) fn run_ended(&self, after: After) {
        if after == After::Nothing || self.stopped().is_some() {
            self.whole.ended();
        }
    }

    /// What is left belongs to nobody any more, and must not hold up the end of the program.
    pub(super) fn leave(self) {
        self.whole.ended();
        self.runtime.shutdown_background();
    }
}
