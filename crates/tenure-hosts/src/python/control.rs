//! The conversation about a worker itself, with its main thread.

use super::frame::{self, Heard, Inbox, Incoming};
use super::lane::{Gone, Lane, NotSent};
use super::life::Life;
use super::{PythonModules, lock};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use tenure_core::hook::FaultKind;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

/// Our end of the control socket.
///
/// Nothing waits for it: what the socket does not take at once a task writes, one frame after the other. So no
/// frame is torn by a call that is dropped, and a process that does not read holds nothing up.
pub(super) struct Control {
    socket: Arc<OwnedWriteHalf>,
    queue: mpsc::UnboundedSender<Parcel>,
    /// How many parcels are in the queue. Held to send one, so that they keep their order.
    queued: Arc<Mutex<usize>>,
    /// The calls whose interrupt the main thread has to answer.
    interrupts: Waiting<u64, Progress>,
    /// Those of them that it has not been told of yet, with their lanes.
    cut: Mutex<Vec<(u64, u32)>>,
    /// The lanes that it was told to give up.
    abandons: Waiting<u32, Vec<u64>>,
    lanes: Mutex<HashMap<u32, Weak<Lane>>>,
    /// How many threads were given up and have not come back.
    abandoned: AtomicU32,
}

type Waiting<K, T> = Mutex<HashMap<K, oneshot::Sender<T>>>;

/// Frames, and the descriptors that go along with the first.
struct Parcel {
    frames: Vec<u8>,
    /// How much of the frames was written.
    sent: usize,
    fds: Option<[OwnedFd; 2]>,
}

impl Parcel {
    /// Writes as much as the socket takes now.
    fn write(&mut self, socket: &OwnedWriteHalf) -> io::Result<()> {
        let stream: &UnixStream = socket.as_ref();
        while self.sent < self.frames.len() {
            let rest = &self.frames[self.sent..];
            self.sent += match &self.fds {
                Some(fds) => stream.try_io(Interest::WRITABLE, || pass(stream, rest, fds))?,
                None => stream.try_write(rest)?,
            };
            self.fds = None;
        }
        Ok(())
    }
}

/// How far a call has come when it is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Its function has not begun, and will not.
    Unbegun,
    /// Its module is being loaded.
    Loads,
    /// Its function runs, or has ended just now.
    Runs,
}

impl Control {
    pub(super) fn new(
        stream: UnixStream,
        life: &Arc<Life>,
        tracker: &TaskTracker,
    ) -> (Self, Inbox<OwnedReadHalf>) {
        let (read, write) = stream.into_split();
        let (queue, parcels) = mpsc::unbounded_channel();
        let socket = Arc::new(write);
        let queued = Arc::new(Mutex::new(0));
        drop(tracker.spawn(deliver(parcels, socket.clone(), queued.clone(), life.clone())));
        let control = Self {
            socket,
            queue,
            queued,
            interrupts: Mutex::default(),
            cut: Mutex::default(),
            abandons: Mutex::default(),
            lanes: Mutex::default(),
            abandoned: AtomicU32::new(0),
        };
        (control, Inbox::new(read))
    }

    /// Sends frames.
    pub(super) fn send(&self, frames: Vec<u8>) -> Result<(), NotSent> {
        self.post(Parcel { frames, sent: 0, fds: None })
    }

    fn post(&self, mut parcel: Parcel) -> Result<(), NotSent> {
        let mut queued = lock(&self.queued);
        if *queued == 0 {
            match parcel.write(&self.socket) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(NotSent),
            }
        }
        *queued += 1;
        self.queue.send(parcel).map_err(|_| NotSent)
    }

    /// Tells of a lane, whose ends of its pipes go along.
    pub(super) fn open(
        &self,
        lane: &Arc<Lane>,
        told: &Value,
        fds: [OwnedFd; 2],
    ) -> Result<(), NotSent> {
        let mut lanes = lock(&self.lanes);
        lanes.retain(|_, lane| lane.strong_count() > 0);
        lanes.insert(lane.number(), Arc::downgrade(lane));
        drop(lanes);
        self.post(Parcel { frames: frame::of(told), sent: 0, fds: Some(fds) })
    }

    /// Notes that a call on this lane is to be interrupted. What it gives says how far that call has come when
    /// it is; so long as there is no answer, the main thread may not be able to.
    pub(super) fn cut(&self, id: u64, lane: u32) -> oneshot::Receiver<Progress> {
        let (give, take) = oneshot::channel();
        lock(&self.interrupts).insert(id, give);
        lock(&self.cut).push((id, lane));
        take
    }

    /// Asks the main thread to interrupt the calls that were cut, in one frame: of those that end together, none
    /// begins because the one before it has ended.
    pub(super) fn interrupt(&self) {
        let cut = std::mem::take(&mut *lock(&self.cut));
        if !cut.is_empty() {
            let _ = self.send(frame::of(&json!({ "interrupt": cut })));
        }
    }

    /// Asks the main thread to give up a lane, and which calls have begun there. None begins any more when it
    /// has answered.
    pub(super) fn abandon(&self, lane: u32) -> oneshot::Receiver<Vec<u64>> {
        let (give, take) = oneshot::channel();
        lock(&self.abandons).insert(lane, give);
        self.abandoned.fetch_add(1, Ordering::Relaxed);
        let _ = self.send(frame::of(&json!({ "abandon": lane })));
        take
    }

    /// The number of threads that were given up and have not come back.
    pub(super) fn abandoned(&self) -> u32 {
        self.abandoned.load(Ordering::Relaxed)
    }

    fn take(&self, frame: &Incoming) {
        if let Some(id) = frame.heard
            && let Some(give) = lock(&self.interrupts).remove(&id)
        {
            let progress = match frame.at.as_deref() {
                Some("unbegun") => Progress::Unbegun,
                Some("loads") => Progress::Loads,
                _ => Progress::Runs,
            };
            let _ = give.send(progress);
        }
        if let Some(lane) = frame.abandoned
            && let Some(give) = lock(&self.abandons).remove(&lane)
        {
            let _ = give.send(frame.begun.clone().unwrap_or_default());
        }
        if frame.returned.is_some() {
            self.abandoned.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(lane) = frame.lost
            && let Some(lane) = lock(&self.lanes).remove(&lane).and_then(|lane| lane.upgrade())
        {
            let why = frame.why.as_deref().unwrap_or("no thread could be started").into();
            lane.lose(Gone::new(FaultKind::NotStarted, why));
        }
    }
}

/// Writes what is sent, until the process is gone.
async fn deliver(
    mut parcels: mpsc::UnboundedReceiver<Parcel>,
    socket: Arc<OwnedWriteHalf>,
    queued: Arc<Mutex<usize>>,
    life: Arc<Life>,
) {
    let deliver = async {
        while let Some(mut parcel) = parcels.recv().await {
            loop {
                match parcel.write(&socket) {
                    Ok(()) => break,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
                if socket.writable().await.is_err() {
                    return;
                }
            }
            *lock(&queued) -= 1;
        }
    };
    tokio::select! {
        biased;
        () = deliver => {}
        () = life.gone() => {}
    }
}

/// Writes bytes, with the right to use descriptors.
fn pass(stream: &UnixStream, bytes: &[u8], fds: &[OwnedFd; 2]) -> io::Result<usize> {
    let fds = fds.each_ref().map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&fds));
    Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut rights, SendFlags::NOSIGNAL)?)
}

/// Reads what the main thread says, for as long as it lives.
pub(super) async fn hear(
    mut inbox: Inbox<OwnedReadHalf>,
    life: Arc<Life>,
    control: Arc<Control>,
    modules: PythonModules,
) {
    loop {
        let frame = tokio::select! {
            biased;
            frame = inbox.next() => frame,
            () = life.gone() => break,
        };
        let Ok(Some(Heard::Said(frame))) = frame else { break };
        if let Some(line) = &frame.log {
            life.stray(line.as_bytes());
        }
        if let Some(id) = frame.exits {
            life.set_culprit(id, frame.why.as_deref().unwrap_or_default());
        }
        control.take(&frame);
        if let Some(path) = frame.want {
            // If it cannot be sent, the worker is gone.
            let _ = control.send(frame::of(&modules.answer(path).await));
        }
    }
    life.heard_out();
}
