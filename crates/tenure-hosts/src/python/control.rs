//! The conversation about a worker itself, with its main thread.

use super::frame::{self, Heard, Inbox};
use super::lane::NotSent;
use super::life::Life;
use super::{PythonModules, lock};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex as AsyncMutex, oneshot};

/// Our end of the control socket.
pub(super) struct Control {
    pipe: AsyncMutex<OwnedWriteHalf>,
    heard: Acknowledged,
}

/// The calls whose interrupt the main thread has to acknowledge.
type Acknowledged = Mutex<HashMap<u64, oneshot::Sender<()>>>;

impl Control {
    pub(super) fn new(stream: UnixStream) -> (Self, Inbox<OwnedReadHalf>) {
        let (read, write) = stream.into_split();
        let control = Self { pipe: AsyncMutex::new(write), heard: Mutex::default() };
        (control, Inbox::new(read))
    }

    /// Sends frames. Dropping the future in the middle of one tears it.
    pub(super) async fn send(&self, frames: &[u8]) -> Result<(), NotSent> {
        self.pipe.lock().await.write_all(frames).await.map_err(|_| NotSent)
    }

    /// Sends one frame, and a descriptor along with it.
    pub(super) async fn send_with(&self, value: &Value, fd: OwnedFd) -> Result<(), NotSent> {
        let bytes = frame::of(value);
        let mut pipe = self.pipe.lock().await;
        let stream: &UnixStream = pipe.as_ref();
        let sent = stream.async_io(Interest::WRITABLE, || pass(stream, &bytes, &fd)).await;
        let sent = sent.map_err(|_| NotSent)?;
        pipe.write_all(&bytes[sent..]).await.map_err(|_| NotSent)
    }

    /// Asks the main thread to interrupt a call on this lane. What is returned is ready when it has heard
    /// that: so long as it has not, it may not be able to.
    pub(super) async fn interrupt(&self, id: u64, lane: u32) -> oneshot::Receiver<()> {
        let (give, take) = oneshot::channel();
        lock(&self.heard).insert(id, give);
        let _ = self.send(&frame::of(&serde_json::json!({ "interrupt": id, "at": lane }))).await;
        take
    }
}

/// Writes bytes, with the right to use a descriptor.
fn pass(stream: &UnixStream, bytes: &[u8], fd: &OwnedFd) -> io::Result<usize> {
    let fds = [fd.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
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
            () = life.gone() => return,
        };
        let Ok(Some(Heard::Said(frame))) = frame else { return };
        if let Some(line) = &frame.log {
            life.stray(line.as_bytes());
        }
        if let Some(id) = frame.heard
            && let Some(give) = lock(&control.heard).remove(&id)
        {
            let _ = give.send(());
        }
        if let Some(path) = frame.want {
            // If it cannot be sent, the worker is gone.
            let _ = control.send(&frame::of(&modules.answer(path).await)).await;
        }
    }
}
