//! A server that answers byte for byte as a test says, and misbehaves where the test wants it to.

use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What the server does after it has read a request, one step after the other.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes these bytes as they are.
    Raw(Vec<u8>),
    /// Writes the same bytes again and again, as long as somebody reads them.
    Endless(Vec<u8>),
    /// The same at a slow pace.
    Drip(Vec<u8>, Duration),
    /// Lets some time pass.
    Wait(Duration),
    /// Does nothing, until the other side is gone.
    Hang,
    /// Closes the connection.
    Close,
    /// Closes the connection as a machine does that forgets it.
    Reset,
}

/// A request as the server read it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    /// Cancelled when a connection was closed by the other side while the server hung.
    pub(crate) gone: CancellationToken,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Server {
    /// Answers the n-th request with the n-th list of steps, and every later one with the last.
    pub(crate) async fn start(replies: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let gone = CancellationToken::new();
        let connections = Arc::new(AtomicUsize::new(0));
        let opened = connections.clone();
        let (all, end, log, left) = (tasks.clone(), stop.clone(), seen.clone(), gone.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                opened.fetch_add(1, Ordering::Relaxed);
                let (replies, log, left) = (replies.clone(), log.clone(), left.clone());
                let served = serve(stream, replies, log, left);
                all.spawn(end.clone().run_until_cancelled_owned(served));
            }
        }));
        Self { url, seen, connections, gone, tasks, stop }
    }

    pub(crate) async fn one(steps: Vec<Step>) -> Self {
        Self::start(vec![steps]).await
    }

    /// The same, and closes the connection after its answer.
    pub(crate) async fn closing(mut steps: Vec<Step>) -> Self {
        steps.push(Step::Close);
        Self::one(steps).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many connections were opened so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The only request that came.
    pub(crate) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "one request");
        seen[0].clone()
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn serve(
    mut stream: TcpStream,
    replies: Vec<Vec<Step>>,
    log: Arc<Mutex<Vec<Seen>>>,
    gone: CancellationToken,
) {
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut buffer).await {
        let at = {
            let mut log = log.lock().unwrap();
            log.push(seen);
            (log.len() - 1).min(replies.len() - 1)
        };
        for step in replies[at].clone() {
            match step {
                Step::Raw(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        gone.cancel();
                        return;
                    }
                }
                Step::Drip(bytes, every) => {
                    while stream.write_all(&bytes).await.is_ok() {
                        tokio::time::sleep(every).await;
                    }
                }
                Step::Wait(span) => tokio::time::sleep(span).await,
                Step::Endless(bytes) => while stream.write_all(&bytes).await.is_ok() {},
                Step::Hang => {
                    let mut rest = [0; 64];
                    let read = stream.read(&mut rest).await;
                    if matches!(read, Ok(0) | Err(_)) {
                        gone.cancel();
                    }
                    return;
                }
                Step::Close => return,
                Step::Reset => {
                    // Time for what was written to arrive before the connection is thrown away.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    stream.set_zero_linger().unwrap();
                    return;
                }
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, buffer).await?;
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, length)| length.parse().unwrap());
    while buffer.len() < end + length {
        more(stream, buffer).await?;
    }
    let body = serde_json::from_slice(&buffer[end..end + length]).unwrap_or(Value::Null);
    buffer.drain(..end + length);
    Some(Seen { method, path, headers, body })
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 4096];
    let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
    buffer.extend_from_slice(&chunk[..read]);
    Some(())
}

/// A whole answer with a length.
pub(crate) fn whole(status: u16, headers: &[(&str, &str)], body: &str) -> Step {
    let mut text = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    Step::Raw(text.into_bytes())
}

pub(crate) fn json(body: &Value) -> Vec<Step> {
    vec![whole(200, &[("content-type", "application/json")], &body.to_string())]
}

/// The head of a streamed answer.
pub(crate) fn head(content_type: &str) -> Step {
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    Step::Raw(text.into_bytes())
}

/// A piece of a streamed answer.
pub(crate) fn chunk(text: &str) -> Step {
    Step::Raw(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

/// The end of a streamed answer, as HTTP knows it.
pub(crate) fn end() -> Step {
    Step::Raw(b"0\r\n\r\n".to_vec())
}

/// A streamed answer of these events, which HTTP ends well.
pub(crate) fn events(events: &[&str]) -> Vec<Step> {
    let mut steps = vec![head("text/event-stream")];
    steps.extend(
        events.iter().map(|event| chunk(&format!("data: {}\n\n", event.replace('\n', " ")))),
    );
    steps.push(end());
    steps
}

/// A streamed answer of these lines.
pub(crate) fn lines(lines: &[&str]) -> Vec<Step> {
    let mut steps = vec![head("application/x-ndjson")];
    steps.extend(lines.iter().map(|line| chunk(&format!("{}\n", line.replace('\n', " ")))));
    steps.push(end());
    steps
}
