//! Where lines go: a thread that writes them, and never holds an agent up.

use super::super::seen::lock;
use super::{Level, Target};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use tracing::dispatcher::{self, Dispatch};

/// A line on its way.
pub(super) struct Line {
    pub(super) level: Level,
    pub(super) text: String,
}

/// A thread that writes lines.
pub(super) struct Writer {
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Opens the target, and starts the thread.
    pub(super) fn open(target: &Target, queue: usize) -> io::Result<Self> {
        let (lines, received) = sync_channel(queue);
        let lost = Arc::new(AtomicU64::new(0));
        let out = match target {
            Target::Stderr => Out::Stderr,
            // A subscriber that is only this thread's own is taken along.
            Target::Tracing => Out::Tracing(dispatcher::get_default(Clone::clone)),
            Target::File { path, max_bytes, keep } => {
                Out::File(Rotated::open(path.clone(), *max_bytes, *keep)?)
            }
        };
        let counted = lost.clone();
        let thread = std::thread::Builder::new()
            .name("tenure-log".to_owned())
            .spawn(move || write_all(&received, out, &counted))?;
        Ok(Self { lines, lost, thread: Mutex::new(Some(thread)) })
    }

    /// Has a line written, if there is room for it.
    pub(super) fn write(&self, line: Line) {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(line) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many lines found no room, and are not told of yet.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes what is left, and stops. It blocks.
    pub(super) fn close(self) {
        let Self { lines, thread, .. } = self;
        drop(lines);
        if let Some(thread) = lock(&thread).take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

enum Out {
    Stderr,
    Tracing(Dispatch),
    File(Rotated),
}

fn write_all(lines: &Receiver<Line>, mut out: Out, lost: &AtomicU64) {
    let mut is_broken = false;
    while let Ok(line) = lines.recv() {
        let mut result = out.write(&line);
        let gone = lost.swap(0, Ordering::Relaxed);
        if gone > 0 {
            let text = format!(r#"{{"level":"warn","event":"log.lost","lines":{gone}}}"#);
            result = result.and(out.write(&Line { level: Level::Warn, text }));
        }
        if let Err(error) = result
            && !std::mem::replace(&mut is_broken, true)
        {
            // Once is enough: it would be said for every line.
            tracing::warn!("the log cannot be written: {error}");
        }
    }
    if let Out::File(file) = &mut out {
        let _ = file.file.flush();
    }
}

impl Out {
    fn write(&mut self, line: &Line) -> io::Result<()> {
        match self {
            Self::Stderr => {
                let mut text = line.text.clone();
                text.push('\n');
                io::stderr().lock().write_all(text.as_bytes())
            }
            Self::Tracing(dispatch) => {
                let text = &*line.text;
                dispatcher::with_default(dispatch, || match line.level {
                    Level::Info => tracing::info!(target: "tenure::log", "{text}"),
                    Level::Warn => tracing::warn!(target: "tenure::log", "{text}"),
                    Level::Error => tracing::error!(target: "tenure::log", "{text}"),
                });
                Ok(())
            }
            Self::File(file) => file.write(&line.text),
        }
    }
}

/// A file that begins anew when it is full, and so many that were full before.
struct Rotated {
    path: PathBuf,
    file: File,
    size: u64,
    max_bytes: u64,
    keep: usize,
}

impl Rotated {
    fn open(path: PathBuf, max_bytes: u64, keep: usize) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let file = append(&path)?;
        let size = file.metadata()?.len();
        Ok(Self { path, file, size, max_bytes, keep })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let mut line = Vec::with_capacity(text.len() + 1);
        line.extend_from_slice(text.as_bytes());
        line.push(b'\n');
        if self.size > 0 && self.size + line.len() as u64 > self.max_bytes {
            self.turn_over()?;
        }
        self.size += line.len() as u64;
        // One write, so that several processes do not mix their lines.
        self.file.write_all(&line)
    }

    /// `log` becomes `log.1`, `log.1` becomes `log.2`, and the oldest is gone.
    fn turn_over(&mut self) -> io::Result<()> {
        if self.keep == 0 {
            std::fs::remove_file(&self.path)?;
        }
        for number in (0..self.keep).rev() {
            let from = if number == 0 { self.path.clone() } else { numbered(&self.path, number) };
            match std::fs::rename(&from, numbered(&self.path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.file = append(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    path.with_file_name(name)
}

/// A file for lines, which nobody else may read. A link is none: it might lead anywhere.
fn append(path: &Path) -> io::Result<File> {
    if path.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link"));
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    crate::result::file::check_no_link(path, &file)?;
    Ok(file)
}
