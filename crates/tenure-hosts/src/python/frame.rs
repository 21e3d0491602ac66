//! Frames: a length in four bytes, little end first, and then JSON.

use crate::reply::once;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most that one frame may hold.
pub(super) const MOST_FRAME: usize = 64 << 20;
/// What a buffer may keep when it is empty again.
const KEPT: usize = 256 << 10;
/// What is read at once.
const CHUNK: usize = 64 << 10;

/// What was heard of a worker.
#[derive(Debug)]
pub(super) enum Heard {
    /// The call of this number has ended as most do.
    End(u64, Ending),
    /// Anything else.
    Said(Box<Incoming>),
}

/// The ends of calls that are known by their form, without parsing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It had nothing to say.
    Silent,
    /// It said `{"allow": true}`, as guards do.
    Allowed,
}

impl Ending {
    /// The decision of the call, as a function returns it.
    pub(super) fn decision(self) -> Option<Value> {
        match self {
            Self::Silent => None,
            Self::Allowed => Some(json!({ "allow": true })),
        }
    }
}

impl Heard {
    fn parse(body: &[u8]) -> serde_json::Result<Self> {
        match usual_end(body) {
            Some((id, ending)) => Ok(Self::End(id, ending)),
            None => serde_json::from_slice(body).map(Self::Said),
        }
    }

    /// Returns `true` if the call is over with this.
    pub(super) fn is_end(&self) -> bool {
        match self {
            Self::End(..) => true,
            Self::Said(frame) => frame.is_end(),
        }
    }

    /// The call it belongs to.
    pub(super) fn id(&self) -> Option<u64> {
        match self {
            Self::End(id, _) => Some(*id),
            Self::Said(frame) => frame.id,
        }
    }
}

/// Returns the number of a call from a frame of one of two forms: `{"id":7}` and
/// `{"id":7,"r":{"allow":true}}`.
fn usual_end(body: &[u8]) -> Option<(u64, Ending)> {
    let rest = body.strip_prefix(b"{\"id\":")?;
    let (digits, ending) = match rest.strip_suffix(b",\"r\":{\"allow\":true}}") {
        Some(digits) => (digits, Ending::Allowed),
        None => (rest.strip_suffix(b"}")?, Ending::Silent),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let id = digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })?;
    Some((id, ending))
}

/// What a worker says: the end of a call, or something on the way there.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Incoming {
    /// The call it belongs to.
    pub(super) id: Option<u64>,
    /// The number of a question that wants an answer.
    pub(super) q: Option<u64>,

    // How a call ended. A frame that has none of the keys below is the end of one, too.
    /// What it decided.
    #[serde(default, deserialize_with = "once::field")]
    pub(super) r: Option<Value>,
    /// The text of a tool's result.
    pub(super) text: Option<String>,
    /// It handed on what this `next` gave.
    pub(super) kept: Option<u64>,
    /// It returned nonsense.
    pub(super) bad: Option<String>,
    /// It raised.
    pub(super) e: Option<String>,
    /// Where it raised.
    pub(super) trace: Option<String>,
    /// It raised what this `next`, or this question that was cancelled, had raised.
    pub(super) passed: Option<u64>,
    /// What it changed in the agent's state.
    pub(super) state: Option<Map<String, Value>>,
    /// What it changed in the context variables.
    pub(super) variables: Option<Map<String, Value>>,
    /// The context variables that it removed.
    pub(super) gone: Option<Vec<String>>,

    /// The number of this change of the context variables.
    pub(super) patch: Option<u64>,

    // What it wants on the way.
    /// A line that was printed.
    pub(super) log: Option<String>,
    /// Where it was printed.
    pub(super) stream: Option<String>,
    /// A value that is a secret from now on.
    pub(super) secret: Option<String>,
    pub(super) ask: Option<Value>,
    pub(super) step: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) step_value: Option<Value>,
    pub(super) step_error: Option<String>,
    /// The step that a value or an error is of.
    pub(super) of: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    pub(super) next: Option<Value>,
    pub(super) agent: Option<String>,
    /// A message to another agent, and its name.
    pub(super) send: Option<String>,
    pub(super) to: Option<String>,
    /// A key of the agent's memory to read, one to write with its value, and words to look for with a limit.
    pub(super) recall: Option<String>,
    pub(super) remember: Option<(String, Value)>,
    pub(super) search: Option<(String, usize)>,
    #[serde(default)]
    pub(super) history: bool,
    #[serde(default)]
    pub(super) shutdown: bool,
    /// The module of the function is loaded from now on.
    #[serde(default)]
    pub(super) loads: bool,
    /// The function runs from now on.
    #[serde(default)]
    pub(super) began: bool,
    /// The worker is ready for work.
    pub(super) ready: Option<u32>,
    /// The main thread has heard that this call is to be interrupted, which has come so far.
    pub(super) heard: Option<u64>,
    pub(super) at: Option<String>,
    /// This lane was given up; these are the calls that had waited there before they began.
    pub(super) abandoned: Option<u32>,
    pub(super) begun: Option<Vec<u64>>,
    /// The thread of a lane that was given up has come back.
    pub(super) returned: Option<u32>,
    /// This lane could not be opened, and why.
    pub(super) lost: Option<u32>,
    /// This call ends the process.
    pub(super) exits: Option<u64>,
    pub(super) why: Option<String>,
    /// A file of the project is imported, and this is the path that it is listed under.
    pub(super) want: Option<String>,
}

/// A key with the value null is there, and one that is missing is not.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Incoming {
    /// Whether the call is over with this.
    pub(super) fn is_end(&self) -> bool {
        let is_news = self.shutdown || self.loads || self.began;
        self.q.is_none() && self.log.is_none() && self.secret.is_none() && !is_news
    }
}

/// Reads everything as frames, up to the first that is none.
pub(crate) fn read_frames(data: &[u8]) {
    let mut inbox = Inbox::new(data);
    let mut cx = Context::from_waker(std::task::Waker::noop());
    while let Poll::Ready(Ok(Some(frame))) = inbox.poll_next(&mut cx) {
        // Every frame is asked what it is, as those are that are acted upon.
        let _ = (frame.is_end(), frame.id());
    }
}

/// Begins a frame, and gives where; [`seal`] it when its body is complete.
pub(super) fn open(buffer: &mut Vec<u8>) -> usize {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    start
}

/// Writes the length of what stands behind it at the front of the frame that begins at `start`.
pub(super) fn seal(buffer: &mut [u8], start: usize) {
    let length = u32::try_from(buffer.len() - start - 4).unwrap_or(u32::MAX);
    buffer[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Adds a number in digits.
pub(super) fn number(buffer: &mut Vec<u8>, number: u64) {
    // Writing into memory does not fail.
    let _ = serde_json::to_writer(buffer, &number);
}

/// Adds a frame of this JSON.
pub(super) fn push(buffer: &mut Vec<u8>, value: &Value) {
    let start = open(buffer);
    // A value of JSON can always be written into memory.
    let _ = serde_json::to_writer(&mut *buffer, value);
    seal(buffer, start);
}

/// A frame of this JSON.
pub(super) fn of(value: &Value) -> Vec<u8> {
    let mut frame = Vec::with_capacity(128);
    push(&mut frame, value);
    frame
}

/// Reads frames. What was read of the next one is kept, so a read can be given up at any time.
pub(super) struct Inbox<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
}

impl<R: AsyncRead + Unpin> Inbox<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: Vec::with_capacity(CHUNK), start: 0 }
    }

    /// The next frame; `None` at the end.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> io::Result<Option<Heard>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The same, for a caller that waits for something else, too.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Heard>>> {
        loop {
            if let Some(body) = self.whole()? {
                let frame = Heard::parse(&self.buffer[body.clone()]);
                self.start = body.end;
                self.tidy();
                return Poll::Ready(frame.map(Some).map_err(io::Error::other));
            }
            if ready!(pin!(self.source.read_buf(&mut self.buffer)).poll(cx))? == 0 {
                return Poll::Ready(Ok(None));
            }
        }
    }

    /// Where the body of the next frame lies, if all of it is there.
    fn whole(&mut self) -> io::Result<Option<std::ops::Range<usize>>> {
        let Some(length) = self.buffer.get(self.start..self.start + 4) else {
            self.buffer.reserve(CHUNK);
            return Ok(None);
        };
        let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
        if length > MOST_FRAME {
            return Err(io::Error::other(format!("a frame of {length} bytes is too long")));
        }
        let end = self.start + 4 + length;
        if self.buffer.len() < end {
            self.buffer.reserve(CHUNK.max(end - self.buffer.len()));
            return Ok(None);
        }
        Ok(Some(self.start + 4..end))
    }

    fn tidy(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            self.buffer.shrink_to(KEPT);
        } else if self.start > KEPT {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_come_out_as_they_went_in_whatever_the_pieces() {
        let mut bytes = Vec::new();
        for id in 0..3 {
            bytes.extend(of(&json!({ "id": id, "log": "x".repeat(100_000 * id) })));
        }
        let (mut writer, reader) = tokio::io::duplex(7_001);
        let write = async move {
            use tokio::io::AsyncWriteExt;
            writer.write_all(&bytes).await.expect("the reader is there");
        };
        let read = async {
            let mut inbox = Inbox::new(reader);
            let mut found = Vec::new();
            while let Some(frame) = inbox.next().await.expect("these are frames") {
                let Heard::Said(frame) = frame else { panic!("these say something") };
                found.push((frame.id, frame.log.map(|log| log.len())));
            }
            found
        };
        let ((), found) = tokio::join!(write, read);
        assert_eq!(found, [(Some(0), Some(0)), (Some(1), Some(100_000)), (Some(2), Some(200_000))]);
    }

    #[tokio::test]
    async fn a_frame_that_is_too_long_is_refused_before_it_is_read() {
        let mut inbox = Inbox::new(&b"\xff\xff\xff\xff"[..]);
        assert!(inbox.next().await.is_err());
    }

    #[test]
    fn the_usual_ends_of_calls_are_known_by_their_form() {
        for (body, number) in [
            (&br#"{"id":7}"#[..], Some((7, Ending::Silent))),
            (br#"{"id":120345}"#, Some((120_345, Ending::Silent))),
            (br#"{"id":7,"r":{"allow":true}}"#, Some((7, Ending::Allowed))),
            (br#"{"id":7,"r":{"allow":false}}"#, None),
            (br#"{"id":7,"r":{"allow":true},"state":{}}"#, None),
            (br#"{"id":,"r":{"allow":true}}"#, None),
            (br#"{"id":}"#, None),
            (br#"{"id":-1}"#, None),
            (br#"{"id":1,"q":2}"#, None),
            (br#"{"id":99999999999999999999}"#, None),
            (br#"{"q":1}"#, None),
        ] {
            assert_eq!(usual_end(body), number, "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_next_with_null_is_a_next() {
        let frame: Incoming = serde_json::from_str(r#"{"id":1,"q":2,"next":null}"#).expect("json");
        assert_eq!((frame.next, frame.step_value), (Some(Value::Null), None));
    }
}
