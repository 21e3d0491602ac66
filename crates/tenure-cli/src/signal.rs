//! Signals: the first one stops the run in an orderly way, the second one kills.
//!
//! In a chat Ctrl-C is about the turn: it reaches the run only if the turn does not end.

use crate::exit::Exit;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tenure_core::CancelToken;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Stops a run from outside. Clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stopper {
    token: CancelToken,
    /// Cancelled once everything has ended and only words are left.
    ended: CancelToken,
    cause: Arc<OnceLock<Exit>>,
    interrupts: Interrupts,
}

impl Stopper {
    /// Stops the run. The first cause counts.
    pub(crate) fn stop(&self, cause: Exit) {
        // Somebody else may have been first, and then it is their code.
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    /// Why it was stopped, if it was.
    pub(crate) fn cause(&self) -> Option<Exit> {
        self.cause.get().copied()
    }

    /// Everything has ended, and what is left is to say how. A program that was told to end by a
    /// signal has a moment for that, whoever reads it.
    pub(crate) fn ended(&self) {
        self.ended.cancel();
    }

    /// What Ctrl-C means before it stops the run.
    pub(crate) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    /// Waits until it is stopped.
    pub(crate) async fn stopped(&self) {
        self.token.cancelled().await;
    }
}

/// What Ctrl-C means while a person talks to agents. Without this it stops the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts(Arc<Mutex<Talk>>);

#[derive(Debug, Default)]
struct Talk {
    is_on: bool,
    /// How often it was pressed since the turn, or the pause between two turns, began.
    pressed: usize,
    /// Cancels the turn, if there is one.
    turn: Option<CancelToken>,
}

/// What a Ctrl-C does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Press {
    /// The turn is cancelled.
    Cancelled,
    /// The turn is being cancelled already; the next one leaves.
    StillEnding,
    /// Nothing goes on.
    Ignored,
    /// The run is stopped.
    Stops,
}

impl Interrupts {
    /// From now on a person talks: the first Ctrl-C cancels the turn, the second one says that it
    /// takes its time, and the third one stops the run. Between turns the first one does nothing.
    pub(crate) fn talk(&self) {
        self.state().is_on = true;
    }

    /// Nobody talks any more: Ctrl-C stops the run.
    pub(crate) fn leave(&self) {
        self.state().is_on = false;
    }

    /// A turn begins, or anything else that a person waits for; the token is cancelled by Ctrl-C.
    pub(crate) fn turn_begins(&self) -> CancelToken {
        let token = CancelToken::new();
        let mut state = self.state();
        (state.pressed, state.turn) = (0, Some(token.clone()));
        token
    }

    /// The turn is over.
    pub(crate) fn turn_ends(&self) {
        let mut state = self.state();
        (state.pressed, state.turn) = (0, None);
    }

    fn press(&self) -> Press {
        let mut state = self.state();
        state.pressed += 1;
        match (state.is_on, state.pressed, &state.turn) {
            (true, 1, Some(turn)) => {
                turn.cancel();
                Press::Cancelled
            }
            (true, 2, Some(_)) => Press::StillEnding,
            (true, 1, None) => Press::Ignored,
            _ => Press::Stops,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Talk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long the last words may take after a signal.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Listens for SIGINT, SIGTERM and SIGHUP on a thread of its own, so that nothing a run does can
/// keep it from being stopped. The first one stops the run and calls `first`, which must not wait for
/// anything, unless it is a Ctrl-C that means something else; then `pressed` is called. The next one calls `kill` and ends the program at once, and so does the end of the
/// time for the last words.
pub(crate) fn watch(
    stopper: Stopper,
    pressed: impl Fn(Press) + Send + 'static,
    first: impl Fn(Exit) + Send + 'static,
    kill: impl Fn() + Send + 'static,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Registered before this returns: from here on no signal is lost.
    let mut signals = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            let exit = loop {
                let exit = signals.next().await;
                let press = match exit {
                    Exit::Interrupted => stopper.interrupts.press(),
                    _ => Press::Stops,
                };
                if press == Press::Stops {
                    break exit;
                }
                pressed(press);
            };
            stopper.stop(exit);
            first(exit);
            let overdue = async {
                stopper.ended.cancelled().await;
                tokio::time::sleep(LAST_WORDS).await;
            };
            let exit = tokio::select! {
                exit = signals.next() => exit,
                () = overdue => stopper.cause().unwrap_or(exit),
            };
            kill();
            tenure_hosts::end_supervisor();
            std::process::exit(exit.code().into());
        });
    })?;
    Ok(())
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` under `nohup`: then it is not to be noticed.
    hangup: Option<Signal>,
}

/// Whether SIGHUP was ignored when the program started, as `nohup` has it.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|it| it & 1 == 1)
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: match ignores_hangup() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
        })
    }

    async fn next(&mut self) -> Exit {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
            _ = hangup => Exit::Hangup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_talk_ctrl_c_stops_the_run() {
        assert_eq!(Interrupts::default().press(), Press::Stops);
    }

    #[test]
    fn in_a_talk_ctrl_c_is_about_the_turn_until_the_third() {
        let interrupts = Interrupts::default();
        interrupts.talk();
        assert_eq!(interrupts.press(), Press::Ignored);
        let turn = interrupts.turn_begins();
        assert!(!turn.is_cancelled(), "what was pressed before does not count");
        assert_eq!(interrupts.press(), Press::Cancelled);
        assert!(turn.is_cancelled());
        assert_eq!(interrupts.press(), Press::StillEnding);
        assert_eq!(interrupts.press(), Press::Stops);
        interrupts.turn_ends();
        assert_eq!(interrupts.press(), Press::Ignored);
        assert_eq!(interrupts.press(), Press::Stops);
    }

    #[test]
    fn after_the_talk_ctrl_c_stops_the_run_again() {
        let interrupts = Interrupts::default();
        interrupts.talk();
        interrupts.leave();
        assert_eq!(interrupts.press(), Press::Stops);
    }
}
