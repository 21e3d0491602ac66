//! Writing to the two streams without ever being held up for good.
//!
//! A reader that pauses holds a run up, as in every pipe. Once the program is in a hurry, because
//! somebody told it to stop, a stream that takes nothing is given up on.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{Error, ErrorKind, IsTerminal as _, Result};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a stream that takes nothing is waited for in a hurry.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether there is a hurry by now.
const LOOK: Duration = Duration::from_millis(50);
/// A pipe that is said to be writable takes this much without blocking (POSIX: 512 at least).
const PIECE: usize = 512;

static HURRY: AtomicBool = AtomicBool::new(false);
/// Whether the stream was given up on. Held while somebody writes.
static OUT: Mutex<bool> = Mutex::new(false);
static ERR: Mutex<bool> = Mutex::new(false);

/// One of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// From now on no stream is waited for longer than a second.
pub(crate) fn hurry() {
    HURRY.store(true, Ordering::Release);
}

/// Writes all of it, or fails.
pub(super) fn write(stream: Stream, bytes: &[u8]) -> Result<()> {
    let lane = if stream == Stream::Out { &OUT } else { &ERR };
    let mut stuck = lane.lock().unwrap_or_else(PoisonError::into_inner);
    match stream {
        Stream::Out => put(std::io::stdout(), bytes, &mut stuck),
        Stream::Err => put(std::io::stderr(), bytes, &mut stuck),
    }
}

/// Leaves a terminal on a fresh line, if that needs no waiting.
pub(crate) fn fresh_line() {
    let stderr = std::io::stderr();
    if stderr.is_terminal() && is_ready(&stderr, Duration::ZERO).unwrap_or(false) {
        // The program ends here; there is nobody to tell.
        let _ = rustix::io::write(&stderr, b"\n");
    }
}

/// Takes back what a line editor told the terminal, and leaves it on a fresh line.
pub(super) fn leave_line() {
    let stdout = std::io::stdout();
    if stdout.is_terminal() && is_ready(&stdout, Duration::ZERO).unwrap_or(false) {
        // No more marks around what is pasted. If that fails there is nobody to tell.
        let _ = rustix::io::write(&stdout, b"\x1b[?2004l\r\n");
    }
}

fn put(stream: impl AsFd, mut bytes: &[u8], stuck: &mut bool) -> Result<()> {
    while !bytes.is_empty() {
        if !wait(&stream, *stuck)? {
            *stuck = true;
            return Err(Error::new(ErrorKind::TimedOut, "nobody reads what is written"));
        }
        match rustix::io::write(&stream, &bytes[..bytes.len().min(PIECE)]) {
            Ok(written) => {
                *stuck = false;
                bytes = &bytes[written..];
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until the stream takes something. `false` if it was given up on.
fn wait(stream: &impl AsFd, stuck: bool) -> Result<bool> {
    let mut since = None;
    loop {
        let hurry = HURRY.load(Ordering::Acquire);
        let patience = if stuck { Duration::ZERO } else { PATIENCE };
        if is_ready(stream, if hurry { patience.min(LOOK) } else { LOOK })? {
            return Ok(true);
        }
        if hurry && since.get_or_insert_with(Instant::now).elapsed() >= patience {
            return Ok(false);
        }
    }
}

fn is_ready(stream: &impl AsFd, within: Duration) -> Result<bool> {
    let mut polled = [PollFd::new(stream, PollFlags::OUT)];
    let within = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
    match poll(&mut polled, Some(&within)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
