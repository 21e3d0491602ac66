//! A recorded chat that is left alone: its run goes on with it later.

use super::board::{Board, OnBoard};
use crate::wait::unless;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::chat::Chat;
use tenure_core::step::{Steps, WhenWaiting};
use tenure_core::{CancelToken, Error};

tokio::task_local! {
    /// The chat that is running here: tools and journeys run their chats in its task.
    static AROUND: Arc<Parking>;
}

/// When a chat is parked.
pub(super) struct Parking {
    /// Where it is recorded; one that is not is never parked.
    steps: Option<Steps>,
    /// Nobody waits for the chat any more.
    left: CancelToken,
    /// Who waits for a person, in the chat or around it.
    board: Option<Board>,
    /// Whether it is this chat that is parked then.
    decides: bool,
    is_parked: AtomicBool,
    /// The chat inside of which it runs.
    outer: Option<Arc<Parking>>,
}

impl Parking {
    /// Of a chat that is about to run.
    pub(super) fn new(steps: Option<&Steps>, when_waiting: WhenWaiting) -> Arc<Self> {
        let outer = AROUND.try_with(Clone::clone).ok();
        let around = outer.as_ref().and_then(|outer| outer.board.clone());
        // Of a chat inside of another, that one decides what becomes of both.
        let decides = steps.is_some() && when_waiting == WhenWaiting::Park && around.is_none();
        Arc::new(Self {
            steps: steps.cloned(),
            left: CancelToken::new(),
            board: if decides { Some(Board::default()) } else { around },
            decides,
            is_parked: AtomicBool::new(false),
            outer,
        })
    }

    /// Runs the chat, and whatever runs inside of it.
    pub(super) async fn around<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        AROUND.scope(self, work).await
    }

    /// Counts the chat among those that run.
    pub(super) fn enter(&self, chat: &Chat) -> Option<OnBoard> {
        self.board.as_ref().map(|board| board.enter(chat))
    }

    /// Nobody waits for the chat any more: one that is recorded is left for another life of its run.
    /// One inside of another that goes on is cancelled: nobody would ever go on with it.
    pub(super) fn leave(&self, token: &CancelToken) {
        let is_left = |outer: &Parking| outer.is_parked.load(Ordering::Acquire);
        match &self.steps {
            Some(steps)
                if self.outer.as_deref().is_none_or(is_left) || steps.log().trouble().is_some() =>
            {
                self.left.cancel();
            }
            _ => token.cancel(),
        }
    }

    /// The chat is not driven any further.
    pub(super) fn park(&self) {
        self.is_parked.store(true, Ordering::Release);
    }

    /// Runs what comes before the chat itself, until it is cancelled or nobody waits for it any more.
    pub(super) async fn unless_left<T>(
        &self,
        token: &CancelToken,
        work: impl Future<Output = Result<T, Error>> + Unpin,
    ) -> Result<T, Error> {
        let stopped = async {
            match select(pin!(token.cancelled()), pin!(self.left.cancelled())).await {
                Either::Left(_) => Error::cancelled(),
                Either::Right(_) => left(),
            }
        };
        unless(work, stopped, || false).await?
    }

    /// Waits until the chat is to be parked, and says why. `waits` is called whenever everybody waits
    /// for a person.
    pub(super) async fn parked(&self, waits: impl Fn()) -> Error {
        let waiting = async {
            match &self.board {
                Some(board) if self.decides => {
                    let error = board.waiting().await;
                    waits();
                    error
                }
                _ => std::future::pending().await,
            }
        };
        match select(pin!(self.left.cancelled()), pin!(waiting)).await {
            Either::Left(_) => left(),
            Either::Right((error, _)) => error,
        }
    }
}

fn left() -> Error {
    Error::waiting("nobody waits for the chat any more; it goes on when its run is resumed")
}

/// Why a chat that goes on from its record does not: what it began in an earlier life has no end yet,
/// so it is parked, and goes on once that is put right.
pub(super) fn kept_back(error: Error, steps: Option<&Steps>) -> Error {
    match steps {
        Some(steps) if steps.log().is_resumed() && !super::is_final(&error) => {
            Error::replay(format!(
                "the run cannot go on here: {error}. It is parked; put that right, and resume it"
            ))
        }
        _ => error,
    }
}
