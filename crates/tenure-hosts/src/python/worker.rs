//! One worker process, and the conversation with it.
//!
//! Nobody reads while nothing is asked: whoever waits for an answer reads, and hands what is not
//! for it to whom it is for. So the usual call, which is alone, goes through no other task.

use super::frame::{self, Inbox, Incoming};
use super::{Interpreter, PythonConfig, PythonFile, PythonFunction, Style};
use crate::process::{Ended, Launch, Process};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tenure_core::InstanceId;
use tenure_core::hook::{FaultKind, HookError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Reads the worker's source and the package that hooks import, each behind its length.
const BOOTSTRAP: &str = "\
import os
def r(n):
    b = b''
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: os._exit(70)
        b += c
    return b
def t(): return r(int.from_bytes(r(4), 'little')).decode()
exec(compile(t(), '<tenure worker>', 'exec')); main(t())
";
const SOURCE: &str = concat!(include_str!("worker.py"), include_str!("worker_tool_hooks.py"));
const PACKAGE: &str = include_str!("../../../../python/tenure/__init__.py");

/// How long a worker may take until it says that it is ready.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a pipe may stay open when the worker itself has ended.
const AFTERMATH: Duration = Duration::from_millis(100);
/// How long a worker that was asked to go may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// How many lines nobody can be named for are kept.
const MOST_STRAY: usize = 1000;
/// The longest line that is kept.
const MOST_LINE: usize = 16 << 10;
/// How much of the last words of a worker an error shows.
const MOST_WORDS: usize = 600;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a worker ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// By itself.
    Exited(Ended),
    /// By us, and why.
    Killed(Arc<str>),
    /// It closed its pipe, or wrote what is no frame.
    Silent(Arc<str>),
}

impl End {
    /// What this is for a call that was in flight.
    pub(super) fn fault(&self) -> HookError {
        match self {
            Self::Exited(ended @ Ended::Code(_)) => {
                HookError::of_kind(FaultKind::Exited, format!("the worker ended with {ended}"))
            }
            Self::Exited(ended @ Ended::Signal(_)) => {
                HookError::of_kind(FaultKind::Panicked, format!("the worker crashed with {ended}"))
            }
            Self::Killed(why) | Self::Silent(why) => {
                HookError::of_kind(FaultKind::Panicked, why.to_string())
            }
        }
    }
}

/// What became of the process, for everybody who has to do with it.
struct Life {
    process: Mutex<Process>,
    end: OnceLock<End>,
    gone: CancellationToken,
    stray: Mutex<VecDeque<String>>,
}

impl Life {
    fn stray(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(&line[..line.len().min(MOST_LINE)]).into_owned();
        tracing::debug!(target: "tenure::python", "{line}");
        let mut stray = lock(&self.stray);
        if stray.len() == MOST_STRAY {
            stray.pop_front();
        }
        stray.push_back(line);
    }

    fn last_words(&self) -> String {
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

/// Where the frames of one call wait that somebody else has read.
#[derive(Default)]
pub(super) struct Slot {
    frames: Mutex<VecDeque<Incoming>>,
    came: Notify,
}

impl Slot {
    fn take(&self) -> Option<Incoming> {
        lock(&self.frames).pop_front()
    }
}

struct Outbox {
    pipe: ChildStdin,
    /// Whether a frame was begun and not ended: nothing can follow it.
    is_torn: bool,
    known: Known,
}

/// What a worker has been told about.
#[derive(Default)]
struct Known {
    files: HashSet<u32>,
    functions: HashSet<u32>,
    instances: HashSet<u32>,
}

/// The numbers that instances have here.
#[derive(Default)]
struct Instances {
    numbers: HashMap<InstanceId, u32>,
    last: u32,
}

/// Why a frame could not be sent.
#[derive(Debug)]
pub(super) struct NotSent;

/// A worker that has said that it is ready. Dropping it kills it.
pub(super) struct Worker {
    life: Arc<Life>,
    pid: u32,
    inbox: AsyncMutex<Inbox<ChildStdout>>,
    outbox: AsyncMutex<Outbox>,
    slots: Mutex<HashMap<u64, Arc<Slot>>>,
    in_flight: AtomicUsize,
    next_id: AtomicU64,
    instances: Mutex<Instances>,
}

impl Worker {
    /// Starts a worker and waits until it is ready. The error says why it is not.
    pub(super) async fn start(
        config: &PythonConfig,
        tracker: &TaskTracker,
    ) -> Result<Worker, String> {
        let python = config.interpreter.path();
        let args = ["-I", "-u", "-c", BOOTSTRAP].map(OsStr::new);
        let launch = Launch {
            program: python.as_os_str(),
            args: &args,
            dir: &config.dir,
            variables: config.environment.variables(),
        };
        let mut process = Process::spawn(launch, tracker)
            .map_err(|error| not_spawned(&config.interpreter, &config.dir, &error))?;
        let pipes = (process.stdin(), process.stdout(), process.stderr());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err("the pipes of the Python process are missing".to_owned());
        };
        let pid = process.pid();
        let life = Arc::new(Life {
            process: Mutex::new(process),
            end: OnceLock::new(),
            gone: CancellationToken::new(),
            stray: Mutex::default(),
        });
        tracker.spawn(reap(life.clone()));
        let listener = tracker.spawn(listen(life.clone(), stderr));
        let worker = Worker {
            life: life.clone(),
            pid,
            inbox: AsyncMutex::new(Inbox::new(stdout)),
            outbox: AsyncMutex::new(Outbox {
                pipe: stdin,
                is_torn: false,
                known: Known::default(),
            }),
            slots: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            next_id: AtomicU64::new(1),
            instances: Mutex::default(),
        };
        match tokio::time::timeout(HANDSHAKE, worker.greet()).await {
            Ok(Ok(())) => Ok(worker),
            Ok(Err(())) => {
                worker.kill("it did not say that it was ready");
                let _ = tokio::time::timeout(FAREWELL, life.gone.cancelled()).await;
                let _ = tokio::time::timeout(FAREWELL, listener).await;
                let ended = match life.end.get() {
                    Some(End::Exited(ended)) => format!(" ({ended})"),
                    _ => String::new(),
                };
                let words = life.last_words();
                let words = if words.is_empty() { "it said nothing".to_owned() } else { words };
                Err(format!("{} ended before it was ready{ended}: {words}", python.display()))
            }
            Err(_) => {
                worker.kill("it was not ready in time");
                Err(format!("{} was not ready within {HANDSHAKE:?}", python.display()))
            }
        }
    }

    /// Sends the source, and waits for the first frame.
    async fn greet(&self) -> Result<(), ()> {
        let mut boot = Vec::with_capacity(SOURCE.len() + PACKAGE.len() + 8);
        for text in [SOURCE, PACKAGE] {
            let mut part = frame::open(text.len());
            part.extend_from_slice(text.as_bytes());
            frame::seal(&mut part);
            boot.extend(part);
        }
        self.send(&boot).await.map_err(drop)?;
        match self.inbox.lock().await.next().await {
            Ok(Some(first)) if first.ready.is_some() => Ok(()),
            _ => {
                // It has ended, or soon will; how is worth knowing.
                let _ = tokio::time::timeout(AFTERMATH, self.life.gone.cancelled()).await;
                Err(())
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn is_gone(&self) -> bool {
        self.life.end.get().is_some()
    }

    pub(super) fn end(&self) -> Option<&End> {
        self.life.end.get()
    }

    /// Kills the worker and everything that it started, now.
    pub(super) fn kill(&self, why: &str) {
        self.kill_as(End::Killed(why.into()));
    }

    fn kill_as(&self, end: End) {
        // Once: when it has been reaped, its number may be somebody else's.
        if self.life.end.set(end).is_ok() {
            lock(&self.life.process).kill();
            self.life.gone.cancel();
        }
    }

    /// Gives up a worker that takes no more frames. What is left of it is killed on another thread,
    /// since looking for that takes longer than a call does.
    pub(super) fn abandon(&self, why: &str, tracker: &TaskTracker) {
        if self.life.end.set(End::Silent(why.into())).is_ok() {
            let life = self.life.clone();
            drop(tracker.spawn_blocking(move || {
                lock(&life.process).kill();
                life.gone.cancel();
            }));
        }
    }

    /// Asks the worker to go, so that what it registered for its end runs; then makes it.
    pub(super) async fn dismiss(&self) {
        if !self.is_gone() && self.send(&frame::of(&json!({ "exit": true }))).await.is_ok() {
            let _ = tokio::time::timeout(FAREWELL, self.life.gone.cancelled()).await;
        }
        self.kill("the worker was dismissed");
    }

    /// Begins a call: its number, and where its frames go.
    pub(super) fn open(&self) -> (u64, Arc<Slot>) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot::default());
        lock(&self.slots).insert(id, slot.clone());
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        (id, slot)
    }

    /// Ends a call.
    pub(super) fn close(&self, id: u64) {
        lock(&self.slots).remove(&id);
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether exactly one call is in flight.
    pub(super) fn is_alone(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 1
    }

    /// The number that an instance has in calls.
    pub(super) fn number(&self, instance: InstanceId) -> u32 {
        let mut instances = lock(&self.instances);
        let Instances { numbers, last } = &mut *instances;
        *numbers.entry(instance).or_insert_with(|| {
            *last += 1;
            *last
        })
    }

    /// Sends the frame of a call, and before it whatever the worker has not heard of: the function,
    /// its file, and the instance, which `about` tells.
    pub(super) async fn call(
        &self,
        file: (u32, &PythonFile),
        function: (u32, &PythonFunction),
        instance: (u32, impl FnOnce() -> Value),
        call: &[u8],
    ) -> Result<(), NotSent> {
        let mut outbox = self.outbox.lock().await;
        let known = &mut outbox.known;
        let is_new_function = known.functions.insert(function.0);
        let is_new_instance = known.instances.insert(instance.0);
        if !is_new_function && !is_new_instance {
            return self.write(&mut outbox, call).await;
        }
        let mut frames = Vec::new();
        if is_new_function {
            if known.files.insert(file.0) {
                frames.extend(file_frame(file));
            }
            let PythonFunction { name, style, takes, .. } = function.1;
            let about = json!({
                "file": file.0, "name": name, "async": *style == Style::Async, "takes": takes,
            });
            frames.extend(frame::of(&json!({ "def": function.0, "function": about })));
        }
        if is_new_instance {
            let about = json!({ "about": instance.0, "instance": instance.1() });
            frames.extend(frame::of(&about));
        }
        frames.extend(call);
        self.write(&mut outbox, &frames).await
    }

    /// Lets go of what an instance that has ended left in the worker.
    pub(super) async fn forget(&self, instance: InstanceId) {
        let Some(number) = lock(&self.instances).numbers.remove(&instance) else { return };
        let mut outbox = self.outbox.lock().await;
        outbox.known.instances.remove(&number);
        let _ = self.write(&mut outbox, &frame::of(&json!({ "forget": number }))).await;
    }

    /// Sends a file ahead of the first call, so that it is compiled by then. It does not run.
    pub(super) async fn prepare(&self, file: (u32, &PythonFile)) {
        let mut outbox = self.outbox.lock().await;
        if outbox.known.files.insert(file.0) {
            // A worker that takes nothing any more is found out by whoever calls it.
            let _ = self.write(&mut outbox, &file_frame(file)).await;
        }
    }

    /// Sends frames. Dropping the future in the middle of one tears it, and the worker is lost.
    pub(super) async fn send(&self, frames: &[u8]) -> Result<(), NotSent> {
        let mut outbox = self.outbox.lock().await;
        self.write(&mut outbox, frames).await
    }

    async fn write(&self, outbox: &mut Outbox, frames: &[u8]) -> Result<(), NotSent> {
        if outbox.is_torn || self.is_gone() {
            return Err(NotSent);
        }
        outbox.is_torn = true;
        outbox.pipe.write_all(frames).await.map_err(|_| NotSent)?;
        outbox.is_torn = false;
        Ok(())
    }

    /// The next frame of a call.
    ///
    /// # Cancel safety
    ///
    /// No frame is lost if the future is dropped.
    pub(super) async fn receive(&self, id: u64, slot: &Slot) -> Result<Incoming, HookError> {
        loop {
            if let Some(frame) = slot.take() {
                return Ok(frame);
            }
            let mut inbox = match self.inbox.try_lock() {
                Ok(inbox) => inbox,
                Err(_) => tokio::select! {
                    biased;
                    () = slot.came.notified() => continue,
                    inbox = self.inbox.lock() => inbox,
                },
            };
            // Whoever read until now may have read ours.
            if let Some(frame) = slot.take() {
                return Ok(frame);
            }
            let mut gone = pin!(self.life.gone.cancelled());
            let read = tokio::select! {
                biased;
                read = inbox.next() => read,
                () = &mut gone => match tokio::time::timeout(AFTERMATH, inbox.next()).await {
                    Ok(read) => read,
                    Err(_) => Ok(None),
                },
            };
            match read {
                Ok(Some(frame)) if frame.id == Some(id) => return Ok(frame),
                Ok(Some(frame)) => self.hand_on(frame),
                Ok(None) => {
                    drop(inbox);
                    return Err(self.ended("the worker closed its pipe").await);
                }
                Err(error) => {
                    drop(inbox);
                    return Err(self.ended(&format!("the worker wrote no frame: {error}")).await);
                }
            }
        }
    }

    fn hand_on(&self, frame: Incoming) {
        match frame.id {
            Some(id) => {
                if let Some(slot) = lock(&self.slots).get(&id) {
                    lock(&slot.frames).push_back(frame);
                    slot.came.notify_one();
                }
            }
            None => {
                if let Some(line) = &frame.log {
                    self.life.stray(line.as_bytes());
                }
            }
        }
    }

    /// How the worker ended; if it goes on without a pipe, it is killed.
    async fn ended(&self, how: &str) -> HookError {
        let _ = tokio::time::timeout(AFTERMATH, self.life.gone.cancelled()).await;
        if self.end().is_none() {
            self.kill_as(End::Silent(how.into()));
        }
        self.end().map_or_else(|| HookError::new("the worker is gone"), End::fault)
    }

    /// Lines that nobody can be named for, once.
    pub(super) fn take_stray(&self) -> Option<VecDeque<String>> {
        let mut stray = lock(&self.life.stray);
        if stray.is_empty() { None } else { Some(std::mem::take(&mut *stray)) }
    }

    /// Cancels a call whose future is gone. If it does not end soon, the worker is killed.
    pub(super) async fn cancel(&self, id: u64, slot: &Slot, hook: &str) {
        let settled = async {
            self.send(&frame::of(&json!({ "cancel": id }))).await.ok()?;
            loop {
                if self.receive(id, slot).await.ok()?.is_end() {
                    return Some(());
                }
            }
        };
        if !matches!(tokio::time::timeout(FAREWELL, settled).await, Ok(Some(()))) {
            self.kill(&format!(
                "the worker was killed because `{hook}` did not stop when it was cancelled"
            ));
        }
    }

    /// Answers a question of a call.
    pub(super) async fn answer(&self, answer: Value) {
        // If it cannot be sent, the worker is gone, and whoever reads finds out.
        let _ = self.send(&frame::of(&answer)).await;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill("the host of the worker is gone");
    }
}

fn file_frame((number, file): (u32, &PythonFile)) -> Vec<u8> {
    let path = file.path().to_string_lossy();
    frame::of(&json!({ "file": number, "path": path, "source": &**file.source() }))
}

fn not_spawned(interpreter: &Interpreter, dir: &std::path::Path, error: &std::io::Error) -> String {
    if !dir.is_dir() {
        return format!("the folder {} that Python would start in is not there", dir.display());
    }
    format!(
        "Python could not be started as {}: {error}; install it, or make a .venv in the project",
        interpreter.path().display()
    )
}

/// Waits for the end of the process, kills what it left behind, and says so.
async fn reap(life: Arc<Life>) {
    let ended = poll_fn(|cx| pin!(lock(&life.process).wait()).poll(cx)).await;
    if let Ok(ended) = ended {
        let _ = life.end.set(End::Exited(ended));
    }
    lock(&life.process).kill();
    life.gone.cancel();
}

/// Reads what the process and its children write past us.
async fn listen(life: Arc<Life>, mut stderr: ChildStderr) {
    let mut buffer = vec![0; 8 << 10];
    let mut line = Vec::new();
    loop {
        let read = tokio::select! {
            biased;
            read = stderr.read(&mut buffer) => read,
            () = life.gone.cancelled() => {
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
