//! One request and its answer: bounded in time and in size.

use super::answer::{exact, merge};
use super::config::Timeouts;
use super::fault::Blame;
use super::model::Call;
use serde_json::Value;
use std::future::Future;
use std::time::Duration;
use tenure_core::model::{ModelError, ModelErrorKind as Kind};
use tenure_http::reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use tenure_http::reqwest::{self, Response};
use tokio::time::Instant;

/// No answer is larger than this.
const LARGEST: usize = 32 * 1024 * 1024;
/// As much as is read of an answer that says no.
const LARGEST_REFUSAL: usize = 64 * 1024;
/// As long as it may take to read why a server says no.
const REFUSAL_LIMIT: Duration = Duration::from_secs(5);
/// As long as a connection may take to end an answer after its last word, to be used again.
const LINGER: Duration = Duration::from_millis(20);

/// What a server answered, up to its body.
pub(super) struct Reply<'a> {
    response: Response,
    blame: Blame<'a>,
    idle: Option<Duration>,
    /// How long an answer in one piece may take, from the request to its end.
    whole: Duration,
    /// When the request was sent, or the answer last went on.
    since: Instant,
    /// How many bytes of the body were read.
    read: usize,
}

/// The form in which an answer comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON in one piece.
    Whole,
    /// Piece by piece.
    Stream,
}

/// Sends `body` to `path` below the provider's address, and waits for the head of the answer.
pub(super) async fn post<'a>(
    call: Call<'a>,
    path: &str,
    headers: HeaderMap,
    mut body: Value,
) -> Result<Reply<'a>, ModelError> {
    let (route, blame) = (call.route, call.route.blame());
    if let Some(extra) = call.request.params.extra.as_deref() {
        if !extra.is_object() {
            let what = "what is to be sent beyond the request is not a JSON object";
            return Err(blame.error(Kind::BadRequest, what));
        }
        merge(&mut body, extra);
    }
    let url = format!("{}{path}", route.target.base_url);
    let accept = if call.streaming { "text/event-stream" } else { "application/json" };
    let request = route
        .http
        .post(url)
        .headers(headers)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, accept)
        .body(body.to_string());
    let since = Instant::now();
    let limit = if call.streaming { route.timeouts.head } else { route.timeouts.whole };
    let response = within(Some(limit), request.send())
        .await
        .ok_or_else(|| blame.timeout("the server did not answer", limit))?
        .map_err(|error| blame.unsent(error))?;
    let Timeouts { idle, whole, .. } = route.timeouts;
    let mut reply = Reply { response, blame, idle, whole, since, read: 0 };
    let status = reply.response.status();
    if status.is_success() {
        return Ok(reply);
    }
    let headers = reply.response.headers().clone();
    let mut said = Vec::new();
    // What cannot be read of it is not worth waiting for.
    let _ = tokio::time::timeout(REFUSAL_LIMIT, async {
        while let Ok(Some(chunk)) = reply.response.chunk().await {
            said.extend_from_slice(&chunk);
            if said.len() > LARGEST_REFUSAL {
                said.truncate(LARGEST_REFUSAL);
                break;
            }
        }
    })
    .await;
    Err(blame.status(status.as_u16(), &headers, &said))
}

/// The header that carries a key, marked so that nothing shows it.
pub(super) fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

async fn within<T>(limit: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, future).await.ok(),
        None => Some(future.await),
    }
}

impl<'a> Reply<'a> {
    /// In which form the answer comes, which need not be the one that was asked for.
    pub(super) fn form(&self, asked: Form) -> Result<Form, ModelError> {
        let header = self.response.headers().get(CONTENT_TYPE);
        let text = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "text/event-stream"
            | "application/x-ndjson"
            | "application/stream+json"
            | "application/jsonl" => Ok(Form::Stream),
            "application/json" => Ok(Form::Whole),
            // Some servers do not say, or do not know.
            "" | "text/plain" | "application/octet-stream" => Ok(asked),
            other => Err(self.blame.malformed(&format!(
                "the server answered with {other} instead of JSON; is the address that of a model?"
            ))),
        }
    }

    /// The next piece of the body. `patience` is how long it may take until the answer goes on, for
    /// which a sign of life is not enough.
    async fn chunk(
        &mut self,
        patience: Option<Duration>,
        late: &str,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, ModelError> {
        let idle = self.idle;
        let left = patience.map(|patience| patience.saturating_sub(self.since.elapsed()));
        let limit = [idle, left].into_iter().flatten().min();
        // Where both are up at once, it has stopped.
        let chunk = within(limit, self.response.chunk())
            .await
            .ok_or_else(|| match (idle, patience) {
                (Some(idle), _) if limit == Some(idle) => {
                    self.blame.timeout("the answer stopped, and did not go on", idle)
                }
                (_, patience) => self.blame.timeout(late, patience.unwrap_or_default()),
            })?
            .map_err(|error: reqwest::Error| self.blame.broken(error))?;
        self.read += chunk.as_ref().map_or(0, |chunk| chunk.len());
        if self.read > LARGEST {
            let what = format!("the answer is larger than {} MiB", LARGEST / 1024 / 1024);
            return Err(self.blame.malformed(&what));
        }
        Ok(chunk)
    }

    /// The whole body, as JSON.
    pub(super) async fn json(mut self) -> Result<Value, ModelError> {
        let mut body = Vec::new();
        let (whole, late) = (self.whole, "the answer did not come to its end");
        while let Some(chunk) = self.chunk(Some(whole), late).await? {
            body.extend_from_slice(chunk.as_ref());
        }
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(self.blame.malformed("the server answered with nothing"));
        }
        let value: Value = serde_json::from_slice(&exact(&body)).map_err(|error| {
            self.blame.malformed(&format!("the server's answer is not JSON: {error}"))
        })?;
        match value.get("error") {
            Some(error) if !error.is_null() => Err(self.blame.reported(&value)),
            _ => Ok(value),
        }
    }

    /// The next piece of an answer that is read as it comes. There is no limit to how long it may
    /// take if it goes on, and none at all if silence is not limited.
    async fn more(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, ModelError> {
        let patience = self.idle.map(|idle| idle.max(self.whole));
        self.chunk(patience, "the server gave signs of life, but the answer did not go on").await
    }

    /// The body, line by line.
    pub(super) fn lines(self) -> Lines<'a> {
        Lines { reply: self, buffer: Vec::new(), start: 0, scanned: 0, ended: false }
    }
}

/// The lines of an answer.
pub(super) struct Lines<'a> {
    reply: Reply<'a>,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where no end of it was found.
    scanned: usize,
    ended: bool,
}

impl Lines<'_> {
    /// The next line without its end; `None` behind the last. What follows the last end of a line
    /// is no line: the answer was cut there.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, ModelError> {
        let (from, to) = loop {
            if let Some(at) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') {
                let (from, to) = (self.start, self.scanned + at);
                self.start = to + 1;
                self.scanned = self.start;
                break (from, to);
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            self.scanned = self.buffer.len();
            if self.ended {
                return Ok(None);
            }
            match self.reply.more().await? {
                Some(chunk) => self.buffer.extend_from_slice(chunk.as_ref()),
                None => self.ended = true,
            }
        };
        let line = &self.buffer[from..to];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// What stands behind the last end of a line.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Gives the connection a moment to end well, so that it can be used again.
    pub(super) async fn linger(mut self) {
        if !self.ended {
            let _ = tokio::time::timeout(LINGER, self.reply.response.chunk()).await;
        }
    }

    /// What was read last is a part of the answer, and not only a sign of life.
    pub(super) fn went_on(&mut self) {
        self.reply.since = Instant::now();
    }

    pub(super) fn blame(&self) -> Blame<'_> {
        self.reply.blame
    }
}

/// The data of server-sent events. Their names are not needed: each wire repeats them in the data.
pub(super) struct Events<'a> {
    lines: Lines<'a>,
    data: Vec<u8>,
}

impl<'a> Events<'a> {
    pub(super) fn new(lines: Lines<'a>) -> Self {
        Self { lines, data: Vec::new() }
    }

    /// The data of the next event; `None` behind the last.
    pub(super) async fn next(&mut self) -> Result<Option<&[u8]>, ModelError> {
        self.data.clear();
        loop {
            match self.lines.next().await? {
                Some([]) if self.data.is_empty() => {}
                Some([]) => return Ok(Some(&self.data)),
                Some(line) => {
                    let Some(data) = line.strip_prefix(b"data:") else { continue };
                    if !self.data.is_empty() {
                        self.data.push(b'\n');
                    }
                    self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
                }
                None => {
                    // The last event may lack its empty line, and the mark of the end its own.
                    if self.lines.rest() == b"data: [DONE]" {
                        self.data = b"[DONE]".to_vec();
                    }
                    let last = !self.data.is_empty();
                    return Ok(last.then_some(&self.data));
                }
            }
        }
    }

    /// What was read last is a part of the answer, and not only a sign of life.
    pub(super) fn went_on(&mut self) {
        self.lines.went_on();
    }

    pub(super) async fn linger(self) {
        self.lines.linger().await;
    }
}
