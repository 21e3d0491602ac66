//! The one writer of a log: it appends lines, under a lock that other processes respect.
//!
//! A line is written right away where that is a plain append: the file is open, nobody else has it
//! or has written to it since, and nobody waits before it. That takes less time than to wake a
//! thread. Whatever may take longer (to open the file, to wait for another process or for the disk, to
//! search the log) is done by a thread of its own.

use super::line::{Head, Record, hash, read};
use super::verify::LONGEST;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError as Taken, Weak};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;

/// How long another process may hold the log.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much of the end of a log is searched for a line that may be there.
const SEARCHED: u64 = 8 << 20;

/// What is to be written.
pub(super) struct Job {
    pub(super) record: Record,
    /// Whether the line may be there already, from an earlier life of the run.
    pub(super) once: bool,
    pub(super) sync: bool,
}

/// What a job came to: the line's number and hash.
pub(super) type Done = Result<(u64, String), String>;

/// A job, and who waits for it.
type Queued = (Job, Option<oneshot::Sender<Done>>);

/// The writer of one log in this process.
pub(super) struct Writer {
    jobs: Sender<Queued>,
    desk: Arc<Desk>,
}

/// What the thread and those who write by themselves have in common.
struct Desk {
    log: Mutex<Log>,
    /// How many jobs the thread has yet to do. Nobody gets before them.
    queued: AtomicUsize,
}

/// The writers that there are, by the real path of their logs.
static WRITERS: Mutex<BTreeMap<PathBuf, Weak<Writer>>> = Mutex::new(BTreeMap::new());

impl Writer {
    /// The writer of this log, which is made with the folders it is in. It may block.
    pub(super) fn of(path: &Path) -> Result<Arc<Self>, String> {
        let failed = |error: std::io::Error| format!("`{}`: {error}", path.display());
        let name = path.file_name().ok_or_else(|| format!("`{}` names no file", path.display()))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let real = folder.canonicalize().map_err(failed)?.join(name);
        let mut writers = WRITERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writers.get(&real).and_then(Weak::upgrade) {
            return Ok(writer);
        }
        let (jobs, queue) = channel();
        let log = Log { path: real.clone(), file: None, head: Head::start(), length: 0 };
        let desk = Arc::new(Desk { log: Mutex::new(log), queued: AtomicUsize::new(0) });
        let worked = desk.clone();
        std::thread::Builder::new()
            .name("tenure-audit".to_owned())
            .spawn(move || worked.work(queue))
            .map_err(failed)?;
        let writer = Arc::new(Self { jobs, desk });
        writers.retain(|_, writer| writer.strong_count() > 0);
        writers.insert(real, Arc::downgrade(&writer));
        Ok(writer)
    }

    /// Writes a line. It is there when this returns.
    pub(super) async fn write(&self, job: Job) -> Done {
        if let Some(done) = self.desk.write_now(&job) {
            return done;
        }
        let (done, wait) = oneshot::channel();
        let gone = || "its writer is gone".to_owned();
        self.send((job, Some(done))).map_err(|()| gone())?;
        wait.await.map_err(|_| gone())?
    }

    /// Has a line written, for whoever cannot wait.
    pub(super) fn post(&self, job: Job) {
        if self.send((job, None)).is_err() {
            tracing::error!("a line of the audit log was lost: its writer is gone");
        }
    }

    fn send(&self, job: Queued) -> Result<(), ()> {
        self.desk.queued.fetch_add(1, Ordering::AcqRel);
        self.jobs.send(job).map_err(|_| ())
    }
}

impl Desk {
    /// Writes until nobody is left who might want something written.
    fn work(&self, queue: Receiver<Queued>) {
        for (job, done) in queue {
            let result = {
                let mut log = self.log();
                log.append(job).map_err(|why| log.named(&why))
            };
            // Before whoever waits is woken: what it writes next need not queue.
            self.queued.fetch_sub(1, Ordering::AcqRel);
            match (done, result) {
                // Whoever does not wait any more was cancelled; the line is there all the same.
                (Some(done), result) => drop(done.send(result)),
                (None, Err(why)) => tracing::error!("a line of the audit log was lost: {why}"),
                (None, Ok(_)) => {}
            }
        }
    }

    /// Writes a line in place, if that is all there is to do.
    fn write_now(&self, job: &Job) -> Option<Done> {
        if job.sync || job.once || self.queued.load(Ordering::Acquire) > 0 {
            return None;
        }
        let mut log = match self.log.try_lock() {
            Ok(log) => log,
            Err(Taken::Poisoned(log)) => log.into_inner(),
            Err(Taken::WouldBlock) => return None,
        };
        let done = log.append_now(&job.record)?;
        Some(done.map_err(|why| log.named(&why)))
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log itself.
struct Log {
    path: PathBuf,
    file: Option<File>,
    head: Head,
    /// Where the last line ends that is part of the chain.
    length: u64,
}

impl Log {
    /// What went wrong, and with which log.
    fn named(&self, why: &str) -> String {
        format!("`{}`: {why}", self.path.display())
    }

    fn append(&mut self, job: Job) -> Done {
        let Job { record, once, sync } = job;
        let file = match self.file.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        lock(&file)?;
        let result = self.check(&file).and_then(|()| {
            if once && let Some(there) = self.find(&file, &record)? {
                return Ok((there.seq, there.hash));
            }
            self.add(&file, &record, sync)
        });
        self.put_back(file)?;
        result
    }

    /// The same where the file is open, free, and as it was left. None if it is not.
    fn append_now(&mut self, record: &Record) -> Option<Done> {
        let file = self.file.take()?;
        if file.try_lock().is_err() {
            self.file = Some(file);
            return None;
        }
        let is_known = file
            .metadata()
            .is_ok_and(|about| about.len() == self.length && is_at(&about, &self.path));
        let result = is_known.then(|| self.add(&file, record, false));
        match self.put_back(file) {
            Ok(()) => result,
            Err(why) => Some(Err(why)),
        }
    }

    /// Lets others at the file.
    fn put_back(&mut self, file: File) -> Result<(), String> {
        let unlocked = file.unlock();
        self.file = Some(file);
        unlocked.map_err(|error| format!("the lock cannot be given back: {error}"))
    }

    /// Sees to it that the end of the chain is known, whoever has written since.
    fn check(&mut self, file: &File) -> Result<(), String> {
        let failed = |error: std::io::Error| error.to_string();
        let about = file.metadata().map_err(failed)?;
        if !is_at(&about, &self.path) {
            return Err(
                "it was moved or deleted while it was in use; put it back, or start again \
                        with another file"
                    .to_owned(),
            );
        }
        let length = about.len();
        if length == self.length {
            return Ok(());
        }
        if length < self.length {
            return Err(format!("it was cut off: {length} bytes of {} are left", self.length));
        }
        let (line, torn) = last_line(file, length)?;
        self.head = match &line {
            Some(line) => {
                let broken = |why| format!("its last line cannot be gone on from: {why}");
                read(line).map_err(broken)?.1
            }
            None => Head::start(),
        };
        self.length = length - torn.len() as u64;
        if !torn.is_empty() {
            self.set_aside(file, &torn)?;
        }
        Ok(())
    }

    /// Takes off what was not written to its end, keeps it beside the log, and says so in the log.
    fn set_aside(&mut self, file: &File, torn: &[u8]) -> Result<(), String> {
        let mut aside = self.path.clone().into_os_string();
        aside.push(".torn");
        let aside = PathBuf::from(aside);
        let failed = |error: std::io::Error| format!("`{}`: {error}", aside.display());
        let mut kept = open(&aside)?;
        kept.write_all(torn).and_then(|()| kept.write_all(b"\n")).map_err(failed)?;
        kept.sync_data().map_err(failed)?;
        file.set_len(self.length).map_err(failed)?;
        let name = aside.file_name().map(|name| name.to_string_lossy().into_owned());
        let more = vec![
            ("kind", "torn".into()),
            ("bytes", torn.len().into()),
            ("sha256", hash(torn).into()),
            ("kept", name.into()),
        ];
        self.add(file, &Record { more, ..Record::default() }, true).map(drop)
    }

    /// Puts a line behind the last one.
    fn add(&mut self, mut file: &File, record: &Record, sync: bool) -> Done {
        let (mut line, head) = self.head.line(record, SystemTime::now());
        line.push(b'\n');
        if line.len() as u64 > LONGEST {
            return Err(format!("the line would have {} bytes", line.len()));
        }
        let wrote = file.write_all(&line);
        let wrote = wrote.and_then(|()| if sync { file.sync_data() } else { Ok(()) });
        if let Err(error) = wrote {
            // What is half written must not be gone on from.
            let cut = file.set_len(self.length);
            let more =
                cut.map_or_else(|error| format!("; and it stays torn: {error}"), |()| "".into());
            return Err(format!("{error}{more}"));
        }
        self.length += line.len() as u64;
        self.head = head;
        Ok((self.head.seq, self.head.hash.clone()))
    }

    /// The line of this call and phase, if it is there.
    fn find(&self, file: &File, record: &Record) -> Result<Option<Head>, String> {
        let from = self.length.saturating_sub(SEARCHED);
        let bytes = read_at(file, from, self.length - from)?;
        let text = String::from_utf8_lossy(&bytes);
        let same = |line: &&str| {
            let Ok(there) = serde_json::from_str::<Value>(line) else { return false };
            ["key", "kind", "phase"].iter().all(|name| there.get(name) == record.get(name))
        };
        let key = record.get("key").map(Value::to_string).unwrap_or_default();
        let found = text.lines().rev().filter(|line| line.contains(&key)).find(same);
        Ok(found.and_then(|line| read(line).ok()).map(|(_, head)| head))
    }
}

/// Opens a log for appending; a new one is nobody else's to read.
fn open(path: &Path) -> Result<File, String> {
    if path.symlink_metadata().is_ok_and(|about| !about.is_file()) {
        return Err("it is not a file of its own, but a link, a folder or a device".to_owned());
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| format!("it cannot be opened: {error}"))
}

fn lock(file: &File) -> Result<(), String> {
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(format!("another process has held it for {PATIENCE:?}"));
            }
            Err(TryLockError::Error(error)) => {
                return Err(format!("it cannot be locked: {error}"));
            }
        }
    }
}

/// Whether an open file is the one at this path.
fn is_at(about: &std::fs::Metadata, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        path.symlink_metadata()
            .is_ok_and(|there| (there.dev(), there.ino()) == (about.dev(), about.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = about;
        path.is_file()
    }
}

fn read_at(mut file: &File, from: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))
        .and_then(|_| file.take(length).read_to_end(&mut bytes))
        .map_err(|error| format!("it cannot be read: {error}"))?;
    Ok(bytes)
}

/// The last whole line, and what stands behind it without an end.
fn last_line(file: &File, length: u64) -> Result<(Option<String>, Vec<u8>), String> {
    let mut window = 64 << 10;
    loop {
        let from = length.saturating_sub(window);
        let bytes = read_at(file, from, length - from)?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        let begin = end.and_then(|end| bytes[..end].iter().rposition(|byte| *byte == b'\n'));
        match (end, begin) {
            (Some(end), begin) if begin.is_some() || from == 0 => {
                let begin = begin.map_or(0, |begin| begin + 1);
                let line = String::from_utf8(bytes[begin..end].to_vec());
                let line = line.map_err(|_| "its last line is no text".to_owned())?;
                return Ok((Some(line), bytes[end + 1..].to_vec()));
            }
            (None, _) if from == 0 => return Ok((None, bytes)),
            _ if window > 2 * LONGEST => {
                return Err(format!("its last line has more than {LONGEST} bytes"));
            }
            _ => window *= 4,
        }
    }
}
