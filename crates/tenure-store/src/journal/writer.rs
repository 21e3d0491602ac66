//! The one thread that writes, and puts what comes at the same time into one transaction.

use super::append::{Heads, Tx};
use crate::db::{StoreFile, check_key};
use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::store::lock;
use rusqlite::Connection;
use serde_json::Value;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Something to be written. It runs inside a transaction, in a savepoint of its own: if it fails,
/// what it did is undone, and nothing else.
pub(crate) type Job = Box<dyn FnOnce(&mut Tx<'_>) -> Result<Value, StoreError> + Send>;

/// A thread that writes, in the order in which jobs come. Clones are one writer.
///
/// What is acknowledged is on disk. If a commit fails, each job of its group gets the error, nothing
/// of them is on disk, and the next group is tried anew: a disk may have room again.
#[derive(Clone)]
pub(crate) struct Writer(Arc<Handle>);

struct Handle {
    file: Arc<StoreFile>,
    jobs: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Job(Job, Ack),
    Stop,
}

/// Who is told.
enum Ack {
    /// Whoever sent it, if it fails.
    Failure(Box<dyn FnOnce(StoreError) + Send>),
    Task(oneshot::Sender<Result<Value, StoreError>>),
    Thread(SyncSender<Result<Value, StoreError>>),
}

impl Ack {
    fn tell(self, result: Result<Value, StoreError>) {
        match (self, result) {
            // Whoever asked may have been dropped meanwhile.
            (Self::Task(ack), result) => drop(ack.send(result)),
            (Self::Thread(ack), result) => drop(ack.send(result)),
            (Self::Failure(_), Ok(_)) => {}
            (Self::Failure(failed), Err(error)) => failed(error),
        }
    }
}

/// So many jobs share a transaction.
const GROUP: usize = 256;

/// How long to wait for those who were in the last group, too.
const GATHERING: Duration = Duration::from_micros(300);

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(conn: Connection, file: &Arc<StoreFile>) -> Result<Self, StoreError> {
        let (jobs, queue) = channel();
        let of_loop = file.clone();
        let thread = thread::Builder::new()
            .name("tenure-store".to_owned())
            .spawn(move || {
                Loop { conn, file: of_loop, heads: Heads::default(), seen: 0 }.run(&queue)
            })
            .explain(file, "start the thread that writes")?;
        let thread = Mutex::new(Some(thread));
        Ok(Self(Arc::new(Handle { file: file.clone(), jobs, thread })))
    }

    /// Has a job done, in order. Nobody waits for it; if it fails, that is logged.
    #[cfg(test)]
    pub(crate) fn send(&self, job: Job) {
        self.send_or(job, |error| tracing::error!(%error, "what happened could not be recorded"));
    }

    /// Has a job done, in order, and waits for nothing. `failed` is told if it fails, also if its
    /// transaction does.
    pub(crate) fn send_or(&self, job: Job, failed: impl FnOnce(StoreError) + Send + 'static) {
        let ack = Ack::Failure(Box::new(failed));
        if let Err(error) = self.0.jobs.send(Message::Job(job, ack))
            && let Message::Job(_, ack) = error.0
        {
            ack.tell(Err(self.gone()));
        }
    }

    /// Has a job done, and returns once it is on disk. Dropping the future does not undo the job.
    pub(crate) async fn commit(&self, job: Job) -> Result<Value, StoreError> {
        let (ack, done) = oneshot::channel();
        let _ = self.0.jobs.send(Message::Job(job, Ack::Task(ack)));
        done.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// As [`Writer::commit`], for a thread that may be blocked.
    pub(crate) fn commit_blocking(&self, job: Job) -> Result<Value, StoreError> {
        let (ack, done) = sync_channel(1);
        let _ = self.0.jobs.send(Message::Job(job, Ack::Thread(ack)));
        done.recv().unwrap_or_else(|_| Err(self.gone()))
    }

    /// Ends the thread, after what was sent before. Later jobs fail.
    pub(crate) fn stop(&self) {
        let _ = self.0.jobs.send(Message::Stop);
        if let Some(thread) = lock(&self.0.thread).take() {
            let _ = thread.join();
        }
    }

    fn gone(&self) -> StoreError {
        let message = format!(
            "{}: cannot write: this process does not drive the store any more. Start again",
            self.0.file.display()
        );
        StoreError::new(StoreErrorKind::Io, message)
    }
}

/// What the thread has.
struct Loop {
    conn: Connection,
    file: Arc<StoreFile>,
    heads: Heads,
    /// The file's version when this process wrote last: another process's writes change it.
    seen: i64,
}

impl Loop {
    fn run(mut self, queue: &Receiver<Message>) {
        let mut waiting = 0;
        let mut group = Vec::new();
        while let Ok(first) = queue.recv() {
            let mut stop = !take(first, &mut group);
            // Those who were acknowledged together come back together. Waiting for them for a moment
            // saves a sync, which takes longer.
            let mut until = None;
            while !stop && group.len() < GROUP {
                match queue.try_recv() {
                    Ok(message) => stop = !take(message, &mut group),
                    Err(TryRecvError::Empty) if group.len() < waiting => {
                        let now = Instant::now();
                        if now >= *until.get_or_insert(now + GATHERING) {
                            break;
                        }
                        thread::yield_now();
                    }
                    Err(_) => break,
                }
            }
            if !group.is_empty() {
                waiting = group.iter().filter(|(_, ack)| !matches!(ack, Ack::Failure(_))).count();
                self.write(&mut group);
            }
            if stop {
                return;
            }
        }
    }

    /// One transaction.
    fn write(&mut self, group: &mut Vec<(Job, Ack)>) {
        let begun = begin(&self.conn, &self.file).and_then(|()| self.notice_others());
        let mut done = Vec::with_capacity(group.len());
        let mut failed = begun.err();
        let alone = group.len() == 1;
        for (job, ack) in group.drain(..) {
            let result = match &failed {
                Some(error) => Err(error.clone()),
                None => self.one(job, alone),
            };
            // Some failures undo the whole transaction.
            if failed.is_none() && self.conn.is_autocommit() {
                failed = result.as_ref().err().cloned();
                failed.get_or_insert_with(|| self.undone());
            }
            done.push((ack, result));
        }
        if failed.is_none() {
            failed = execute(&self.conn, "COMMIT").explain(&self.file, "commit").err();
        }
        if failed.is_some() {
            self.heads.clear();
            if !self.conn.is_autocommit() {
                let _ = execute(&self.conn, "ROLLBACK");
            }
        }
        for (ack, result) in done {
            match (&failed, result) {
                (Some(error), Ok(_)) => ack.tell(Err(error.clone())),
                (_, result) => ack.tell(result),
            }
        }
    }

    fn one(&mut self, job: Job, alone: bool) -> Result<Value, StoreError> {
        let (conn, path) = (&self.conn, &*self.file);
        if !alone {
            execute(conn, "SAVEPOINT job").explain(path, "begin to write")?;
        }
        let result = run_job(conn, path, &mut self.heads, job);
        if result.is_err() {
            self.heads.clear();
        }
        // Without a savepoint, all there is in the transaction is undone.
        let close: &[&str] = match (result.is_ok(), alone) {
            (true, true) => &[],
            (true, false) => &["RELEASE job"],
            (false, true) => &["ROLLBACK", "BEGIN IMMEDIATE"],
            (false, false) => &["ROLLBACK TO job", "RELEASE job"],
        };
        if !conn.is_autocommit() {
            for sql in close {
                execute(conn, sql).explain(path, "end a part of a transaction")?;
            }
        }
        result
    }

    /// Another process may have appended to a run: an answer.
    fn notice_others(&mut self) -> Result<(), StoreError> {
        let version = self
            .conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut version| version.query_row([], |row| row.get(0)))
            .explain(&self.file, "begin to write")?;
        if version != self.seen {
            check_key(&self.conn, &self.file)?;
            self.seen = version;
            self.heads.forget();
        }
        Ok(())
    }

    fn undone(&self) -> StoreError {
        let message =
            format!("{}: cannot write: SQLite undid the transaction", self.file.display());
        StoreError::new(StoreErrorKind::Io, message)
    }
}

/// Puts a job into the group. Whether it was one.
fn take(message: Message, group: &mut Vec<(Job, Ack)>) -> bool {
    match message {
        Message::Job(job, ack) => {
            group.push((job, ack));
            true
        }
        Message::Stop => false,
    }
}

fn begin(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    execute(conn, "BEGIN IMMEDIATE").explain(path, "begin to write")
}

fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}

fn run_job(
    conn: &Connection,
    file: &StoreFile,
    heads: &mut Heads,
    job: Job,
) -> Result<Value, StoreError> {
    let job = std::panic::AssertUnwindSafe(|| job(&mut Tx { conn, file, heads }));
    std::panic::catch_unwind(job).unwrap_or_else(|_| {
        let message = format!("{}: cannot write: the code that writes panicked", file.display());
        Err(StoreError::new(StoreErrorKind::Io, message))
    })
}

/// One job in a transaction of its own, here and now.
pub(crate) fn run_one(conn: &Connection, file: &StoreFile, job: Job) -> Result<Value, StoreError> {
    begin(conn, file)?;
    let result = check_key(conn, file)
        .and_then(|()| run_job(conn, file, &mut Heads::default(), job))
        .and_then(|value| execute(conn, "COMMIT").explain(file, "commit").map(|()| value));
    if result.is_err() && !conn.is_autocommit() {
        let _ = execute(conn, "ROLLBACK");
    }
    result
}

/// Does something within a transaction of the caller's.
pub(crate) fn with_tx<T>(
    conn: &Connection,
    file: &StoreFile,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    work(&mut Tx { conn, file, heads: &mut Heads::default() })
}
