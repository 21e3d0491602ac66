//! Who reads the keyboard: questions or the line editor, and never both.
//!
//! Questions are answered a line at a time. Their lines are read only while somebody waits for one,
//! so that a question that was cancelled or expired does not eat the answer to the next one, nor
//! what is typed into the editor afterwards.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long somebody who has no question any more is waited for.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 30_000_000 };

/// Held by whoever reads from the terminal.
static READING: Mutex<()> = Mutex::new(());

struct Keyboard {
    lines: tokio::sync::Mutex<UnboundedReceiver<String>>,
    wanted: Mutex<bool>,
    changed: Condvar,
}

fn keyboard() -> &'static Keyboard {
    static KEYBOARD: OnceLock<Keyboard> = OnceLock::new();
    KEYBOARD.get_or_init(|| {
        let (send, lines) = unbounded_channel();
        // It waits for `KEYBOARD` to be there, so it sees what is built here.
        std::thread::spawn(move || read(keyboard(), &send));
        let lines = tokio::sync::Mutex::new(lines);
        Keyboard { lines, wanted: Mutex::new(false), changed: Condvar::new() }
    })
}

impl Keyboard {
    fn wanted(&self) -> MutexGuard<'_, bool> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps everybody else from reading the terminal, for as long as it lives. Waits for a question
/// that is still open.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    READING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lines that are typed as answers. Nothing is read from the terminal before there is one of
/// these, nor once it is dropped.
pub(super) struct Typed(tokio::sync::MutexGuard<'static, UnboundedReceiver<String>>);

impl Typed {
    /// One question at a time, whoever asks.
    pub(super) async fn lines() -> Self {
        Self::over(keyboard().lines.lock().await)
    }

    /// The same where nothing else runs yet.
    pub(super) fn blocking() -> Self {
        Self::over(keyboard().lines.blocking_lock())
    }

    /// Reads nothing for as long as the guard lives: another program has the terminal. What is left
    /// of its input afterwards is forgotten.
    pub(super) fn aside(&self) -> Aside {
        *keyboard().wanted() = false;
        Aside
    }

    /// Forgets what was typed before the question.
    fn over(mut lines: tokio::sync::MutexGuard<'static, UnboundedReceiver<String>>) -> Self {
        while lines.try_recv().is_ok() {}
        begin();
        Self(lines)
    }
}

/// Forgets what waits to be read, and reads from then on.
fn begin() {
    // Where this fails there is no terminal, and then nobody is asked at all.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    *keyboard().wanted() = true;
    keyboard().changed.notify_all();
}

/// Somebody else has the terminal meanwhile.
pub(super) struct Aside;

impl Drop for Aside {
    fn drop(&mut self) {
        begin();
    }
}

impl Deref for Typed {
    type Target = UnboundedReceiver<String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Typed {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        *keyboard().wanted() = false;
    }
}

/// Reads lines for as long as somebody wants them. The end of input closes the channel: who left
/// is not asked again.
fn read(keyboard: &Keyboard, send: &UnboundedSender<String>) {
    let mut unfinished = Vec::new();
    loop {
        let wanted = keyboard.wanted();
        if !*wanted {
            // A line that was left unfinished answers nothing.
            unfinished.clear();
        }
        drop(
            keyboard
                .changed
                .wait_while(wanted, |wanted| !*wanted)
                .unwrap_or_else(PoisonError::into_inner),
        );
        let reading = alone();
        if !*keyboard.wanted() {
            continue;
        }
        let stdin = std::io::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut polled, Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => continue,
            // What is wrong with it comes out when it is read.
            Ok(_) | Err(_) => {}
        }
        let mut piece = [0; 4096];
        // A terminal gives a whole line at a time, and a line that is there does not block.
        match rustix::io::read(&stdin, &mut piece) {
            Ok(0) => return,
            Ok(length) => unfinished.extend_from_slice(&piece[..length]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
        drop(reading);
        while let Some(end) = unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unfinished.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if send.send(line.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                return;
            }
        }
    }
}
