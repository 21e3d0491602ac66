//! The pipes of a server's process, a message a line.
//!
//! It does what the protocol client's own transport for streams does, and decodes with that, save
//! for one thing: the answer to the call of a tool. The client finds out what an answer is by trying
//! all that it could be, one after the other. Here it is known what was asked, so the answer is read
//! as what it should be, and only if it is something else by trial.

use super::server::Server;
use super::wire::MOST_MESSAGE;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolResult, ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData,
    JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{JsonRpcMessageCodec, JsonRpcMessageCodecError};
use serde::Deserialize;
use std::collections::HashSet;
use std::future::poll_fn;
use std::io::{self, BufRead};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tenure_core::event::LogStream;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::Mutex;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::Decoder;

/// How much is read at once: as much as a pipe holds.
const MOST_READ: usize = 64 << 10;
/// How much memory is kept for the next message.
const MOST_KEPT: usize = 1 << 20;
/// How much is shown of a line that is no message.
const MOST_SHOWN: usize = 16 << 10;

/// A transport over the standard streams of a process.
pub(super) struct Pipes<R, W> {
    server: Arc<Server>,
    from: BufReader<R>,
    /// The beginning of a line whose end has not been read yet.
    line: Vec<u8>,
    /// The calls of tools that have no answer yet.
    calls: HashSet<i64>,
    to: Arc<Mutex<Writer<W>>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Pipes<R, W> {
    pub(super) fn new(server: Arc<Server>, from: R, to: W) -> Self {
        let from = BufReader::with_capacity(MOST_READ, from);
        let to = Writer { pipe: Some(to), lines: Vec::new(), written: 0 };
        let (line, calls, to) = (Vec::new(), HashSet::new(), Arc::new(Mutex::new(to)));
        Self { server, from, line, calls, to }
    }

    /// Keeps in mind which answers are those of tools.
    fn note(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(message) => {
                let is_call = matches!(message.request, ClientRequest::CallToolRequest(_));
                if let (true, RequestId::Number(id)) = (is_call, &message.id) {
                    self.calls.insert(*id);
                }
            }
            JsonRpcMessage::Notification(message) => {
                if let ClientNotification::CancelledNotification(it) = &message.notification
                    && let Some(id) = &it.params.request_id
                {
                    forget(&mut self.calls, id);
                }
            }
            _ => {}
        }
    }

    /// The next line. Nothing is lost if this is dropped and called again.
    async fn next(&mut self) -> Option<Line> {
        let Self { server, from, line, calls, .. } = self;
        loop {
            let read = match from.fill_buf().await {
                Ok([]) => return None,
                Ok(read) => read,
                Err(error) => {
                    tracing::debug!(target: "tenure::mcp", "a pipe cannot be read: {error}");
                    return None;
                }
            };
            let mut rest = read;
            let taken = rest.skip_until(b'\n').unwrap_or(read.len());
            let text = read[..taken].strip_suffix(b"\n");
            if line.len() + text.map_or(taken, <[u8]>::len) > MOST_MESSAGE {
                let most = MOST_MESSAGE >> 20;
                server.say(&format!("it sent a message of more than {most} MiB"));
                return None;
            }
            let decoded = match text {
                None => {
                    line.extend_from_slice(read);
                    None
                }
                Some(text) if line.is_empty() => Some(decode(server, calls, text)),
                Some(text) => {
                    line.extend_from_slice(text);
                    let decoded = decode(server, calls, line);
                    line.clear();
                    line.shrink_to(MOST_KEPT);
                    Some(decoded)
                }
            };
            from.consume(taken);
            if let Some(decoded) = decoded {
                return Some(decoded);
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Pipes<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.note(&item);
        // As a rule the pipe has room, and then the message is out before anybody waits for it.
        let (sent, item) = match self.to.try_lock() {
            Ok(mut to) => (to.try_send(&item), None),
            Err(_) => (Poll::Pending, Some(item)),
        };
        let to = sent.is_pending().then(|| self.to.clone());
        async move {
            match (sent, to) {
                (Poll::Ready(sent), _) => sent,
                (Poll::Pending, Some(to)) => {
                    let mut to = to.lock().await;
                    if let Some(item) = item {
                        to.push(&item)?;
                    }
                    to.flush().await
                }
                (Poll::Pending, None) => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.next().await? {
                Line::Message(message) => return Some(message),
                Line::Skipped => {}
                Line::Wrong => {
                    let wrong = ErrorData::invalid_request("Invalid request", None);
                    let mut to = self.to.lock().await;
                    to.push(&JsonRpcMessage::error(wrong, None)).ok()?;
                    to.flush().await.ok()?;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.to.lock().await.pipe.take());
        Ok(())
    }
}

/// What a line is.
#[expect(clippy::large_enum_variant, reason = "it is almost always the large one")]
enum Line {
    Message(ServerJsonRpcMessage),
    /// It is no message, or none that means anything to us.
    Skipped,
    /// It is JSON, but no message. The server is told so.
    Wrong,
}

/// The answer to the call of a tool, and nothing besides.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    result: CallToolResult,
}

fn decode(server: &Server, calls: &mut HashSet<i64>, line: &[u8]) -> Line {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.first() {
        None => return Line::Skipped,
        Some(b'{') => {}
        Some(_) => {
            let shown = String::from_utf8_lossy(&line[..line.len().min(MOST_SHOWN)]);
            server.log(LogStream::Stdout, shown.trim_end());
        }
    }
    if !calls.is_empty()
        && let Ok(Answer { jsonrpc, id, result }) = serde_json::from_slice(line)
        && matches!(&id, RequestId::Number(number) if calls.remove(number))
    {
        let result = ServerResult::CallToolResult(result);
        return Line::Message(JsonRpcMessage::Response(JsonRpcResponse { jsonrpc, id, result }));
    }
    let mut bytes = BytesMut::with_capacity(line.len() + 1);
    bytes.extend_from_slice(line);
    bytes.extend_from_slice(b"\n");
    let decoded = JsonRpcMessageCodec::<ServerJsonRpcMessage>::default().decode(&mut bytes);
    match decoded {
        Ok(Some(message)) => {
            match &message {
                JsonRpcMessage::Response(response) => forget(calls, &response.id),
                JsonRpcMessage::Error(error) => {
                    error.id.iter().for_each(|id| forget(calls, id));
                }
                _ => {}
            }
            Line::Message(message)
        }
        Err(JsonRpcMessageCodecError::Serde(error)) if error.is_data() => Line::Wrong,
        Ok(None) | Err(_) => Line::Skipped,
    }
}

/// There will be no answer of a tool by this number. Some servers make a text of it.
fn forget(calls: &mut HashSet<i64>, id: &RequestId) {
    match id {
        RequestId::Number(id) => calls.remove(id),
        RequestId::String(id) => id.parse().is_ok_and(|id| calls.remove(&id)),
    };
}

/// Where messages go. What is not written yet is written before what comes after it.
struct Writer<W> {
    pipe: Option<W>,
    lines: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    fn push(&mut self, message: &ClientJsonRpcMessage) -> io::Result<()> {
        let before = self.lines.len();
        if let Err(error) = serde_json::to_writer(&mut self.lines, message) {
            self.lines.truncate(before);
            return Err(error.into());
        }
        self.lines.push(b'\n');
        Ok(())
    }

    /// Sends a message if that can be done at once. What is left has to be flushed.
    fn try_send(&mut self, message: &ClientJsonRpcMessage) -> Poll<io::Result<()>> {
        self.push(message)?;
        self.poll_flush(&mut Context::from_waker(Waker::noop()))
    }

    async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(self.poll_write(cx));
        self.lines.clear();
        self.lines.shrink_to(MOST_KEPT);
        self.written = 0;
        Poll::Ready(flushed)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { pipe, lines, written } = self;
        let closed = || io::Error::new(io::ErrorKind::NotConnected, "the input is closed");
        let pipe = pipe.as_mut().ok_or_else(closed)?;
        while *written < lines.len() {
            match ready!(Pin::new(&mut *pipe).poll_write(cx, &lines[*written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *written += count,
            }
        }
        Pin::new(pipe).poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{McpServer, McpTransport};
    use futures_util::FutureExt;
    use rmcp::model::{CallToolRequest, CallToolRequestParams, NumberOrString};
    use serde_json::{Value, json};
    use tenure_process::Environment;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
    use tokio_util::task::TaskTracker;

    fn server() -> Arc<Server> {
        let config = McpServer::new("files", McpTransport::stdio(["files"], "."));
        Arc::new(Server::new(config, Environment::new(), TaskTracker::new()))
    }

    /// Pipes that hold so many bytes, and their other end.
    fn pipes(
        room: usize,
    ) -> (Pipes<impl AsyncRead + Send, impl AsyncWrite + Send + 'static>, DuplexStream) {
        let (ours, theirs) = duplex(room);
        let (from, to) = split(ours);
        (Pipes::new(server(), from, to), theirs)
    }

    fn call(id: i64, name: &'static str) -> ClientJsonRpcMessage {
        let request = CallToolRequest::new(CallToolRequestParams::new(name));
        JsonRpcMessage::request(ClientRequest::CallToolRequest(request), NumberOrString::Number(id))
    }

    /// What a line is taken for while the calls 1 and 2 have no answer, and which have none then.
    fn taken(line: &Value) -> (&'static str, Vec<i64>) {
        let mut calls = HashSet::from([1, 2]);
        let line = decode(&server(), &mut calls, line.to_string().as_bytes());
        let kind = match line {
            Line::Message(JsonRpcMessage::Response(response)) => match response.result {
                ServerResult::CallToolResult(_) => "tool",
                ServerResult::InputRequiredResult(_) => "input",
                ServerResult::ListToolsResult(_) => "list",
                _ => "another answer",
            },
            Line::Message(JsonRpcMessage::Error(_)) => "error",
            Line::Message(_) => "another message",
            Line::Skipped => "skipped",
            Line::Wrong => "wrong",
        };
        let mut calls: Vec<i64> = calls.into_iter().collect();
        calls.sort_unstable();
        (kind, calls)
    }

    #[test]
    fn an_answer_is_what_was_asked_for_and_anything_else_is_what_it_is() {
        let text = json!({ "content": [{ "type": "text", "text": "tea" }] });
        let answer = |id: Value, result: &Value| {
            taken(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
        };
        assert_eq!(answer(json!(2), &text), ("tool", vec![1]));
        // By trial this would be a form that was filled in.
        let odd = json!({ "action": "accept", "content": [] });
        assert_eq!(answer(json!(1), &odd), ("tool", vec![2]));
        assert_eq!(answer(json!(3), &odd), ("another answer", vec![1, 2]));
        assert_eq!(answer(json!("1"), &text), ("tool", vec![2]));
        let input = json!({ "resultType": "input_required", "requestState": "s" });
        assert_eq!(answer(json!(1), &input), ("input", vec![2]));
        let list = json!({ "tools": [], "_meta": {} });
        assert_eq!(answer(json!(7), &list), ("list", vec![1, 2]));
        let error = json!({ "code": -1, "message": "no" });
        let refused = json!({ "jsonrpc": "2.0", "id": 1, "error": error });
        assert_eq!(taken(&refused), ("error", vec![2]));
        let both = json!({ "jsonrpc": "2.0", "id": 1, "error": error, "result": text });
        assert_eq!(taken(&both), ("wrong", vec![1, 2]));
        assert_eq!(taken(&json!({ "jsonrpc": "1.0", "id": 1, "result": text })).0, "wrong");
        let news = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        assert_eq!(taken(&news), ("another message", vec![1, 2]));
    }

    #[test]
    fn a_call_that_is_cancelled_has_no_answer() {
        let (mut pipes, _other) = pipes(1 << 10);
        drop(pipes.send(call(1, "tea")));
        assert_eq!(pipes.calls, HashSet::from([1]));
        let cancelled =
            json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } });
        let cancelled: ClientNotification = serde_json::from_value(cancelled).expect("it is one");
        drop(pipes.send(JsonRpcMessage::notification(cancelled)));
        assert!(pipes.calls.is_empty());
    }

    #[tokio::test]
    async fn lines_may_come_in_pieces_and_strange_ones_are_skipped() {
        let (mut pipes, mut other) = pipes(1 << 10);
        let ping = |id: i64| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let all = format!("hello\n\r\n\n{}\r\n{{oops}}\n{}\n{}", ping(1), ping(2), ping(3));
        let mut ids = Vec::new();
        for piece in all.as_bytes().chunks(7) {
            other.write_all(piece).await.expect("there is room");
            // To be dropped while it waits loses nothing.
            while let Some(message) = pipes.receive().now_or_never() {
                let Some(JsonRpcMessage::Request(request)) = message else { panic!("{message:?}") };
                ids.push(request.id.to_string());
            }
        }
        assert_eq!(ids, ["1", "2"], "the last line has no end");
        drop(other);
        assert!(pipes.receive().await.is_none());
    }

    #[tokio::test]
    async fn json_that_is_no_message_is_refused() {
        let (mut pipes, mut other) = pipes(1 << 10);
        other.write_all(b"{\"tea\":1}\n").await.expect("there is room");
        assert!(pipes.receive().now_or_never().is_none());
        drop(pipes);
        let mut said = String::new();
        other.read_to_string(&mut said).await.expect("a text");
        assert!(said.contains("Invalid request") && said.ends_with('\n'), "{said}");
    }

    #[tokio::test]
    async fn messages_that_do_not_fit_go_out_in_order_and_whole() {
        let (mut pipes, mut other) = pipes(16);
        let (first, second) = (pipes.send(call(1, "first")), pipes.send(call(2, "second")));
        // Nobody waits for the second any more, but half of the line would be worse than none.
        drop(second);
        let third = pipes.send(call(3, "third"));
        let mut said = String::new();
        let (first, third, ()) = tokio::join!(first, third, async {
            let mut piece = [0; 16];
            while said.lines().count() < 3 || !said.ends_with('\n') {
                let count = other.read(&mut piece).await.expect("bytes");
                said.push_str(std::str::from_utf8(&piece[..count]).expect("a text"));
            }
        });
        first.and(third).expect("they are sent");
        let name = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("a message");
            line["params"]["name"].as_str().expect("a name").to_owned()
        };
        assert_eq!(said.lines().map(name).collect::<Vec<_>>(), ["first", "second", "third"]);
        pipes.close().await.expect("it closes");
        let closed = pipes.send(call(4, "fourth")).await.expect_err("it is closed");
        assert_eq!(closed.kind(), io::ErrorKind::NotConnected);
    }
}
