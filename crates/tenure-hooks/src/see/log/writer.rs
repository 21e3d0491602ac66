//! Where lines go: a thread that writes them, and never holds an agent up.

use super::super::clock::Clock;
use super::super::gather::{Gather, Taken};
use super::line::{Line, Lines, Said};
use super::{Level, Target};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing::dispatcher::{self, Dispatch};

/// How long lines are gathered before they are written.
const PAUSE: Duration = Duration::from_millis(5);
/// The most bytes of lines that are written to a file at once, if one line is not longer.
const AT_ONCE: usize = 64 << 10;

/// A thread that writes lines.
pub(super) struct Writer(Gather<Lines>);

impl Writer {
    /// Opens the target, and starts the thread.
    pub(super) fn open(target: &Target, queue: usize) -> io::Result<Self> {
        let out = match target {
            Target::Stderr => Out::Stderr,
            // A subscriber that is only this thread's own is taken along.
            Target::Tracing => Out::Tracing(dispatcher::get_default(Clone::clone)),
            Target::File { path, max_bytes, keep } => {
                Out::File(Rotated::open(path.clone(), *max_bytes, *keep)?)
            }
        };
        let mut pen = Pen { out, is_broken: false, text: Vec::new() };
        let work = move |lines: &mut Lines, taken: &Taken<'_>| pen.write_all(lines, taken);
        Ok(Self(Gather::start("tenure-log", (queue, PAUSE), work)?))
    }

    /// Has a line written, if there is room for it. An error is written at once.
    pub(super) fn write(&self, level: Level, say: impl FnOnce(&mut Lines) -> Line) {
        let add = |lines: &mut Lines| {
            let line = say(lines);
            lines.lines.push(line);
        };
        // What found no room is counted there.
        let _ = self.0.put(level == Level::Error, add);
    }

    /// How many lines found no room, and are not told of yet.
    pub(super) fn lost(&self) -> u64 {
        self.0.lost()
    }

    /// Writes what is left, and stops. It blocks.
    pub(super) fn close(self) {
        self.0.close();
    }
}

/// What writes.
struct Pen {
    out: Out,
    is_broken: bool,
    /// The line that is written.
    text: Vec<u8>,
}

enum Out {
    Stderr,
    Tracing(Dispatch),
    File(Rotated),
}

impl Pen {
    fn write_all(&mut self, lines: &Lines, taken: &Taken<'_>) {
        let clock = Clock::now();
        for line in &lines.lines {
            self.text.clear();
            Said { line, texts: &lines.texts, clock }.write(&mut self.text);
            self.write(line.level);
            self.tell_lost(taken);
            taken.done(1);
        }
        // Also of what was lost since.
        self.tell_lost(taken);
        let written = self.out.flush();
        self.check(written);
    }

    fn tell_lost(&mut self, taken: &Taken<'_>) {
        let gone = taken.lost();
        if gone > 0 {
            self.text.clear();
            let told = format!(r#"{{"level":"warn","event":"log.lost","lines":{gone}}}"#);
            self.text.extend_from_slice(told.as_bytes());
            self.write(Level::Warn);
        }
    }

    /// Writes the text as a line.
    fn write(&mut self, level: Level) {
        let written = self.out.write(level, &mut self.text);
        self.check(written);
    }

    fn check(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && !std::mem::replace(&mut self.is_broken, true)
        {
            // Once is enough: it would be said for every line.
            tracing::warn!("the log cannot be written: {error}");
        }
    }
}

impl Out {
    fn write(&mut self, level: Level, line: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Stderr => {
                line.push(b'\n');
                // Each by itself, so that a pipe does not mix it with what others write.
                io::stderr().lock().write_all(line)
            }
            Self::Tracing(dispatch) => {
                let text = String::from_utf8_lossy(line);
                dispatcher::with_default(dispatch, || match level {
                    Level::Info => tracing::info!(target: "tenure::log", "{text}"),
                    Level::Warn => tracing::warn!(target: "tenure::log", "{text}"),
                    Level::Error => tracing::error!(target: "tenure::log", "{text}"),
                });
                Ok(())
            }
            Self::File(file) => {
                line.push(b'\n');
                file.write(line)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Stderr | Self::Tracing(_) => Ok(()),
        }
    }
}

/// A file that begins anew when it is full, and so many that were full before.
struct Rotated {
    path: PathBuf,
    file: File,
    /// Whole lines that are not written yet.
    lines: Vec<u8>,
    /// How large the file is with them.
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
        Ok(Self { path, file, lines: Vec::new(), size, max_bytes, keep })
    }

    /// Takes a line, with its end. It is written together with others.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let size = line.len() as u64;
        let is_full = self.size > 0 && self.size + size > self.max_bytes;
        let mut written = Ok(());
        if is_full || self.lines.len() + line.len() > AT_ONCE {
            written = self.flush();
        }
        if is_full {
            // A line that it cannot begin anew for is not written: it would have no bound.
            self.turn_over()?;
        }
        self.size += size;
        self.lines.extend_from_slice(line);
        written
    }

    /// Writes the lines that it has, at once, so that several processes do not mix theirs.
    fn flush(&mut self) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&self.lines);
        self.lines.clear();
        self.lines.shrink_to(AT_ONCE);
        written
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
