//! Signals: the first one stops the run in an orderly way, the second one kills.

use crate::exit::Exit;
use std::sync::{Arc, OnceLock};
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

    /// Waits until it is stopped.
    pub(crate) async fn stopped(&self) {
        self.token.cancelled().await;
    }
}

/// How long the last words may take after a signal.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Listens for SIGINT, SIGTERM and SIGHUP on a thread of its own, so that nothing a run does can
/// keep it from being stopped. The first one stops the run and calls `first`, which must not wait for
/// anything; the next one calls `kill` and ends the program at once, and so does the end of the
/// time for the last words.
pub(crate) fn watch(
    stopper: Stopper,
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
            let exit = signals.next().await;
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
