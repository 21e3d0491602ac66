//! The supervisor: a process of its own that starts processes for the program, and outlives it to end them.
//!
//! It is forked before the program has threads, and takes orphans. Each process that it starts has a keeper between
//! the two, which takes the orphans of that tree alone; so a process that leaves its group, its session, its parent
//! and its environment is still found beneath its keeper. A keeper ends its tree when the program lets go of its
//! socket, and that is also what happens when the program is killed.

mod keeper;
mod serve;
mod wire;

use crate::{Ended, Launch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
    SocketType, sendmsg, shutdown, socketpair,
};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io::{self, IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Poll, ready};
use std::time::{Duration, Instant};
use tenure_sandbox::{Abilities, Forked, exit_now, fork};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use wire::{MESSAGE, Order, Tag};

/// The socket to the supervisor, if there is one.
static CONTROL: OnceLock<OwnedFd> = OnceLock::new();
/// Its process id.
static SUPERVISOR: OnceLock<u32> = OnceLock::new();
/// What no confined process sees, whatever its rules.
static HIDDEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
/// The most time that a start may take.
const START: Duration = Duration::from_secs(30);
/// The most time that a program that ends waits for its supervisor.
const LEAVE: Duration = Duration::from_secs(1);
/// How often it is looked whether something has happened that tells no one.
const LOOK: Duration = Duration::from_millis(1);

/// Starts the supervisor. All processes are then started by it, confined where they are to be, and end with the
/// program however that ends.
///
/// Called first in `main`, before there is a thread or a runtime. Without it processes are children of the program:
/// they are not confined, and a program that is killed leaves them behind. A second call does nothing.
///
/// # Errors
///
/// If the program has more than one thread, or the system refuses a process.
pub fn supervise() -> io::Result<()> {
    if CONTROL.get().is_some() {
        return Ok(());
    }
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match fork()? {
        Forked::Child => {
            drop(ours);
            // The caller's code is the program's, which must not run twice.
            let Ok(theirs) = alone(theirs) else { exit_now(1) };
            serve::serve(theirs)
        }
        Forked::Parent(pid) => {
            let _ = SUPERVISOR.set(pid);
            let _ = CONTROL.set(ours);
            Ok(())
        }
    }
}

/// Gives the supervisor's streams up and closes whatever the program was started with.
fn alone(control: OwnedFd) -> io::Result<OwnedFd> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    drop(nothing);
    // The lowest that is free: all above it belong to the program.
    let low = rustix::io::fcntl_dupfd_cloexec(&control, 3)?;
    std::mem::forget(control);
    tenure_sandbox::close_from(std::os::fd::AsRawFd::as_raw_fd(&low).unsigned_abs() + 1);
    Ok(low)
}

/// Whether processes are started by a supervisor.
pub fn is_supervised() -> bool {
    CONTROL.get().is_some()
}

/// What this kernel can do to confine processes; `None` without a supervisor, which confines none.
pub fn abilities() -> Option<Abilities> {
    let control = CONTROL.get()?;
    let (mut ours, theirs) = StdStream::pair().ok()?;
    request(control, wire::PROBE, &[theirs.as_fd()]).ok()?;
    drop(theirs);
    ours.set_read_timeout(Some(START)).ok()?;
    let mut bits = [0];
    ours.read_exact(&mut bits).ok()?;
    Some(Abilities::from_bits(bits[0]))
}

/// Hides files and folders from every confined process that is started from now on: what the program has opened, and
/// the rules of a project do not know of. They are absolute and need not be there yet.
pub fn hide(places: impl IntoIterator<Item = PathBuf>) {
    HIDDEN.lock().unwrap_or_else(PoisonError::into_inner).extend(places);
}

/// Returns the places that [`hide`] was given.
pub fn hidden() -> Vec<PathBuf> {
    HIDDEN.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// The process id of the supervisor, if there is one.
pub fn supervisor_id() -> Option<u32> {
    SUPERVISOR.get().copied()
}

/// Ends the supervisor with all that it started, and waits for it, but not for long.
///
/// Called last in `main`. Without it the supervisor ends a moment after the program, and whichever process adopts it
/// then has to reap it, which the first process of a container may not do.
pub fn end_supervisor() {
    let (Some(control), Some(pid)) = (CONTROL.get(), SUPERVISOR.get()) else { return };
    let _ = shutdown(control, Shutdown::Both);
    let pid = Pid::from_raw(pid.cast_signed());
    let since = Instant::now();
    while matches!(waitpid(pid, WaitOptions::NOHANG), Ok(None)) && since.elapsed() < LEAVE {
        std::thread::sleep(LOOK);
    }
}

/// Sends a request; [`io::ErrorKind::WouldBlock`] if the supervisor has not taken those before it.
fn request(control: &OwnedFd, what: u8, given: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(given));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(control, &[IoSlice::new(&[what])], &mut ancillary, flags)?;
    Ok(())
}

/// Waits until the other end of a socket is closed.
fn hangs_up(socket: BorrowedFd<'_>, within: Duration) -> bool {
    let within = Timespec::try_from(within).ok();
    let mut ready = [PollFd::new(&socket, PollFlags::empty())];
    poll(&mut ready, within.as_ref()).is_ok_and(|count| count > 0)
}

/// A process that a keeper keeps, and everything that descends from it.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    socket: Arc<UnixStream>,
}

impl Tree {
    /// Starts a process with these streams, and returns its id; `None` without a supervisor. If the future is
    /// dropped, nothing of the process is left.
    pub(crate) async fn start(
        launch: &Launch<'_>,
        streams: [BorrowedFd<'_>; 3],
    ) -> Option<io::Result<(Self, u32)>> {
        let control = CONTROL.get()?;
        let started = tokio::time::timeout(START, started(control, launch, streams)).await;
        Some(started.unwrap_or_else(|_| Err(unanswered(&io::ErrorKind::TimedOut.into()))))
    }

    /// Has its process asked to end.
    pub(crate) fn terminate(&self) {
        let _ = self.socket.try_write(&[wire::TERMINATE]);
    }

    /// Has everything of it killed.
    pub(crate) fn kill(&self) {
        let _ = shutdown(&*self.socket, Shutdown::Write);
    }

    /// Waits until everything of it is gone, once it was killed.
    pub(crate) fn is_gone_within(&self, within: Duration) -> bool {
        hangs_up(self.socket.as_fd(), within)
    }

    /// Waits until everything of it is gone, once it was killed.
    pub(crate) async fn gone(&self) {
        let mut buffer = [0; 64];
        poll_fn(|cx| {
            loop {
                ready!(self.socket.poll_read_ready(cx)).ok();
                match self.socket.try_read(&mut buffer) {
                    Ok(1..) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    _ => return Poll::Ready(()),
                }
            }
        })
        .await;
    }

    /// Waits for the end of the process itself. Can be dropped at any time, and called again until it has returned.
    pub(crate) async fn wait(&self) -> Ended {
        // A message is written at once and is small: there is never half of one.
        poll_fn(|cx| {
            loop {
                ready!(self.socket.poll_read_ready(cx)).ok();
                let mut message = [0; MESSAGE];
                match self.socket.try_read(&mut message) {
                    Ok(MESSAGE) => match wire::parse(message) {
                        Some((Tag::Exited, code)) => return Poll::Ready(Ended::Code(code)),
                        Some((Tag::Signalled, signal)) => {
                            return Poll::Ready(Ended::Signal(signal));
                        }
                        _ => {}
                    },
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // The keeper is gone, and the tree with it.
                    _ => return Poll::Ready(Ended::Signal(KILLED)),
                }
            }
        })
        .await
    }
}

/// The number of the signal that kills.
const KILLED: i32 = 9;

/// The folders that a process needs to see wherever they are: its own, its program's, its home, and those that it
/// looks for programs in.
fn seen(launch: &Launch<'_>) -> Vec<PathBuf> {
    let mut seen = vec![launch.dir.to_owned(), PathBuf::from(launch.program)];
    for (name, value) in &launch.variables {
        if name == "HOME" {
            seen.push(value.into());
        } else if name == "PATH" {
            seen.extend(std::env::split_paths(value));
        }
    }
    seen
}

async fn started(
    control: &OwnedFd,
    launch: &Launch<'_>,
    [stdin, stdout, stderr]: [BorrowedFd<'_>; 3],
) -> io::Result<(Tree, u32)> {
    let (ours, theirs) = StdStream::pair()?;
    let given = [stdin, stdout, stderr, theirs.as_fd()];
    while let Err(error) = request(control, wire::SPAWN, &given) {
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(unanswered(&error));
        }
        tokio::time::sleep(LOOK).await;
    }
    drop(theirs);
    ours.set_nonblocking(true)?;
    let mut ours = UnixStream::from_std(ours)?;
    let mut rules = launch.sandbox.clone();
    if let Some(rules) = &mut rules {
        rules.needed.extend(seen(launch));
        let hidden = HIDDEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
        rules.protected.extend(hidden.iter().cloned());
        rules.hidden.extend(hidden);
    }
    let order = Order {
        program: launch.program.to_owned(),
        args: launch.args.iter().map(|arg| (*arg).to_owned()).collect(),
        variables: launch.variables.clone(),
        dir: launch.dir.to_owned(),
        rules,
    };
    // A keeper that ends before it has read all of it says why.
    let told = ours.write_all(&order.bytes()?).await;
    let mut message = [0; MESSAGE];
    let heard = ours.read_exact(&mut message).await;
    heard.map_err(|error| unanswered(&told.err().unwrap_or(error)))?;
    match wire::parse(message) {
        Some((Tag::Started, pid)) => Ok((Tree { socket: Arc::new(ours) }, pid.unsigned_abs())),
        Some((Tag::Refused, errno)) => Err(io::Error::from_raw_os_error(errno)),
        Some((Tag::Unconfined, length)) => {
            let mut why = String::new();
            let _ = ours.take(length.unsigned_abs().into()).read_to_string(&mut why).await;
            Err(io::Error::other(format!("it could not be confined: {why}")))
        }
        _ => Err(io::Error::other("the supervisor answered something else")),
    }
}

fn unanswered(error: &io::Error) -> io::Error {
    io::Error::other(format!("the supervisor did not start it: {error}"))
}
