//! The life of a worker's process, for everybody who has to do with it.

use super::lane::Gone;
use super::lock;
use futures_util::task::AtomicWaker;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use tenure_core::hook::FaultKind;
use tenure_process::{Ended, Leftovers, Process};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a pipe may stay open when the worker itself has ended.
pub(super) const AFTERMATH: Duration = Duration::from_millis(100);
/// How long work waits that would take time from the next call.
pub(super) const LULL: Duration = Duration::from_millis(5);
/// How many lines nobody can be named for are kept.
const MOST_STRAY: usize = 1000;
/// The longest line that is kept.
const MOST_LINE: usize = 16 << 10;
/// How much of the last words of a worker an error shows.
const MOST_WORDS: usize = 600;

/// How a worker ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// By itself.
    Exited(Ended),
    /// By us: why, and the call that made us, if one did.
    Killed { why: Arc<str>, by: Option<u64> },
    /// It closed its pipe, or wrote what is no frame.
    Silent(Arc<str>),
}

/// The call that ended the process by itself, and how it says that.
struct Culprit {
    call: u64,
    why: Box<str>,
}

/// What became of the process.
pub(super) struct Life {
    process: Mutex<Process>,
    leftovers: Leftovers,
    end: OnceLock<End>,
    culprit: OnceLock<Culprit>,
    /// Cancelled when all has been read that the main thread said.
    heard_out: CancellationToken,
    /// Cancelled when the process has been killed or reaped.
    gone: CancellationToken,
    is_over: AtomicBool,
    /// Those who read the worker's frames, each on a lane of its own.
    readers: Mutex<Vec<Weak<AtomicWaker>>>,
    /// How many calls are in flight, and how many were when the process ended.
    flights: AtomicUsize,
    flights_at_end: AtomicUsize,
    stray: Mutex<VecDeque<String>>,
    has_stray: AtomicBool,
}

impl Life {
    /// The life of a process that runs. What it writes past us is kept as stray lines.
    pub(super) fn new(process: Process) -> Arc<Self> {
        Arc::new(Self {
            leftovers: process.leftovers(),
            process: Mutex::new(process),
            end: OnceLock::new(),
            culprit: OnceLock::new(),
            heard_out: CancellationToken::new(),
            gone: CancellationToken::new(),
            is_over: AtomicBool::new(false),
            readers: Mutex::default(),
            flights: AtomicUsize::new(0),
            flights_at_end: AtomicUsize::new(0),
            stray: Mutex::default(),
            has_stray: AtomicBool::new(false),
        })
    }

    pub(super) fn end(&self) -> Option<&End> {
        self.end.get()
    }

    /// Returns what its end is for a call that was in flight; `None` while it lives.
    pub(super) fn fate(&self) -> Option<Gone> {
        let culprit = self.culprit.get();
        let (kind, why, call) = match self.end()? {
            End::Exited(ended) => {
                let (kind, verb) = match ended {
                    Ended::Code(_) => (FaultKind::Exited, "ended"),
                    Ended::Signal(_) => (FaultKind::Panicked, "crashed"),
                };
                let by = culprit.map_or(String::new(), |culprit| format!(": {}", culprit.why));
                let why = format!("the worker {verb} with {ended}{by}").into();
                (kind, why, culprit.map(|culprit| culprit.call))
            }
            End::Killed { why, by } => (FaultKind::Panicked, why.clone(), *by),
            End::Silent(why) => (FaultKind::Panicked, why.clone(), None),
        };
        Some(Gone { culprit: call, ..Gone::new(kind, why) })
    }

    /// Notes the call that is about to end the process.
    pub(super) fn set_culprit(&self, call: u64, why: &str) {
        let _ = self.culprit.set(Culprit { call, why: why.into() });
    }

    /// Says that all has been read that the main thread said.
    pub(super) fn heard_out(&self) {
        self.heard_out.cancel();
    }

    /// Waits until the process has been killed or reaped.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Returns `true` once the process has been killed or reaped.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Has a reader woken when the process has been killed or reaped.
    pub(super) fn add_reader(&self, reader: &Arc<AtomicWaker>) {
        let mut readers = lock(&self.readers);
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(reader));
    }

    /// Counts a call that goes to the process, until [`Life::landed`].
    pub(super) fn took_off(&self) {
        self.flights.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn landed(&self) {
        self.flights.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn flights(&self) -> usize {
        self.flights.load(Ordering::Relaxed)
    }

    /// Returns `true` if no other call was in flight when the process ended.
    pub(super) fn was_alone(&self) -> bool {
        self.flights_at_end.load(Ordering::Relaxed) <= 1
    }

    /// Sets how it ended, once.
    fn set_end(&self, end: End) -> bool {
        let is_first = self.end.set(end).is_ok();
        if is_first {
            self.flights_at_end.store(self.flights(), Ordering::Relaxed);
        }
        is_first
    }

    /// Kills the process and everything that it started, now, unless it has ended.
    pub(super) fn kill(&self, end: End) {
        // Once: when it has been reaped, its number may be somebody else's.
        if self.set_end(end) {
            self.sweep();
        }
    }

    /// Kills it on another thread and a moment later, since to look for what is left of it takes longer than the
    /// call that goes to another worker just now.
    pub(super) fn kill_elsewhere(self: &Arc<Self>, end: End, tracker: &TaskTracker) {
        if self.set_end(end) {
            let life = self.clone();
            let blocking = tracker.clone();
            drop(tracker.spawn(async move {
                tokio::time::sleep(LULL).await;
                drop(blocking.spawn_blocking(move || life.sweep()));
            }));
        }
    }

    fn sweep(&self) {
        lock(&self.process).kill();
        self.is_over.store(true, Ordering::Release);
        self.gone.cancel();
        let readers = std::mem::take(&mut *lock(&self.readers));
        for reader in readers.iter().filter_map(Weak::upgrade) {
            reader.wake();
        }
    }

    /// Keeps a line that nobody can be named for.
    pub(super) fn stray(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(&line[..line.len().min(MOST_LINE)]).into_owned();
        tracing::debug!(target: "tenure::python", "{line}");
        let mut stray = lock(&self.stray);
        if stray.len() == MOST_STRAY {
            stray.pop_front();
        }
        stray.push_back(line);
        self.has_stray.store(true, Ordering::Release);
    }

    /// Lines that nobody can be named for, once.
    pub(super) fn take_stray(&self) -> VecDeque<String> {
        if !self.has_stray.load(Ordering::Acquire) {
            return VecDeque::new();
        }
        let mut stray = lock(&self.stray);
        self.has_stray.store(false, Ordering::Release);
        std::mem::take(&mut *stray)
    }

    /// The end of what it wrote past us.
    pub(super) fn last_words(&self) -> String {
        let stray = lock(&self.stray);
        let all: Vec<_> = stray.iter().map(String::as_str).collect();
        let text = all.join("\n");
        let mut from = text.len().saturating_sub(MOST_WORDS);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text[from..].trim().to_owned()
    }
}

/// Waits for the end of the process, kills what it left behind, and says so.
pub(super) async fn reap(life: Arc<Life>, tracker: TaskTracker) {
    let ended = poll_fn(|cx| pin!(lock(&life.process).wait()).poll(cx)).await;
    // Its last words say which call ended it.
    let _ = tokio::time::timeout(AFTERMATH, life.heard_out.cancelled()).await;
    let by_itself = ended.is_ok_and(|ended| life.set_end(End::Exited(ended)));
    life.sweep();
    if by_itself {
        // Only a host that is shut down waits for what left its group.
        tokio::time::sleep(LULL).await;
        drop(tracker.spawn_blocking(move || life.leftovers.kill()));
    }
}

/// Reads what the process and its children write past us.
pub(super) async fn listen(life: Arc<Life>, mut stderr: ChildStderr) {
    let mut buffer = vec![0; 8 << 10];
    let mut line = Vec::new();
    loop {
        let read = tokio::select! {
            biased;
            read = stderr.read(&mut buffer) => read,
            () = life.gone() => {
                match tokio::time::timeout(AFTERMATH, stderr.read(&mut buffer)).await {
                    Ok(read) => read,
                    Err(_) => break,
                }
            }
        };
        let Ok(count @ 1..) = read else { break };
        for byte in &buffer[..count] {
            if *byte == b'\n' {
                life.stray(&line);
                line.clear();
            } else if line.len() < MOST_LINE {
                line.push(*byte);
            }
        }
    }
    if !line.is_empty() {
        life.stray(&line);
    }
}
