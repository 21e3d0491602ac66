//! A model behind HTTP on loopback: a server, and the model that asks it.
//!
//! Just enough of HTTP/1.1 for the two to talk over one connection that stays open. Server and
//! client run on the same thread: a round trip is then as short and as even as it can be, which is
//! hard on whoever has to stay below a percentage of it.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tenure::CancelToken;
use tenure::context::ModelCx;
use tenure::message::ToolCall;
use tenure::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Usage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

/// A server that is running.
pub(crate) struct Server {
    tracker: TaskTracker,
    stop: CancelToken,
}

/// Starts a server that takes one connection, on a port of its own, and answers so.
pub(crate) async fn serve(answers: fn(&Value) -> Value) -> io::Result<(SocketAddr, Server)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let (tracker, stop) = (TaskTracker::new(), CancelToken::new());
    let stopped = stop.clone();
    tracker.spawn(async move {
        tokio::select! {
            () = stopped.cancelled() => {}
            // The connection ends when the client goes; there is nobody to tell.
            _ = answer(listener, answers) => {}
        }
    });
    tracker.close();
    Ok((address, Server { tracker, stop }))
}

impl Server {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.tracker.wait().await;
    }
}

/// Answers every request on one connection.
async fn answer(listener: TcpListener, answers: fn(&Value) -> Value) -> io::Result<()> {
    let (stream, _) = listener.accept().await?;
    let mut connection = Connection::new(stream)?;
    while let Some(body) = connection.read().await? {
        let request: Value = serde_json::from_slice(&body)?;
        let response = answers(&request);
        connection.write("HTTP/1.1 200 OK", &response).await?;
    }
    Ok(())
}

/// What [`Client`] understands: a first question gets a tool call, any other a text.
pub(crate) fn plain(request: &Value) -> Value {
    if request["messages"].as_u64() == Some(1) {
        json!({
            "text": "",
            "calls": [
                { "id": "call_7f3a", "name": "lookup", "arguments": "{\"key\":\"alpha\"}" }
            ],
            "usage": { "input": 20, "output": 10 },
        })
    } else {
        json!({
            "text": "The value of alpha is 42.",
            "calls": [],
            "usage": { "input": 20, "output": 10 },
        })
    }
}

/// What a provider's client understands.
pub(crate) fn openai(_request: &Value) -> Value {
    json!({
        "id": "chatcmpl-1",
        "model": "gpt-4.1-mini",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": "The value of alpha is 42." },
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30 },
    })
}

/// The model that asks the server.
pub(crate) struct Client(Mutex<Connection>);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        Ok(Self(Mutex::new(Connection::new(TcpStream::connect(address).await?)?)))
    }

    async fn ask(&self, request: &Value) -> io::Result<Value> {
        let mut connection = self.0.lock().await;
        connection.write("POST /v1/chat HTTP/1.1\r\nHost: localhost", request).await?;
        let body = connection.read().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(serde_json::from_slice(&body)?)
    }
}

#[async_trait]
impl Model for Client {
    async fn call(
        &self,
        request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let question = json!({
            "model": "clerk-1",
            "instruction": request.instruction.as_deref(),
            "messages": request.messages.len(),
            "last": request.messages.last().map(|message| message.text()),
        });
        let answer = self
            .ask(&question)
            .await
            .map_err(|error| ModelError::new(ModelErrorKind::Transport, error.to_string()))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let calls = answer["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let usage = |part: &str| answer["usage"][part].as_u64().unwrap_or_default();
        Ok(ModelResponse {
            content: text(&answer["text"]).into(),
            calls: calls
                .iter()
                .map(|call| {
                    ToolCall::new(text(&call["id"]), text(&call["name"]), text(&call["arguments"]))
                })
                .collect(),
            usage: Usage::new(usage("input"), usage("output")),
            ..ModelResponse::default()
        })
    }
}

/// One end of a connection: messages with a head and a JSON body of known length.
struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(4096) })
    }

    async fn write(&mut self, start: &str, body: &Value) -> io::Result<()> {
        let body = body.to_string();
        let message = format!(
            "{start}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(message.as_bytes()).await
    }

    /// The body of the next message; none if the other end has closed.
    async fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some((start, end)) = body_range(&self.read)? {
                let body = self.read[start..end].to_vec();
                self.read.drain(..end);
                return Ok(Some(body));
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// Where the body of the first message stands, if all of it is there.
fn body_range(bytes: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let length = String::from_utf8_lossy(&bytes[..head])
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, length)| length.trim().parse::<usize>().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a message without a length"))?;
    let (start, end) = (head + 4, head + 4 + length);
    Ok((bytes.len() >= end).then_some((start, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_found_once_all_of_it_is_there() {
        let message = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP";
        assert_eq!(body_range(message).unwrap(), Some((38, 40)));
        assert_eq!(body_range(&message[..39]).unwrap(), None);
        assert_eq!(body_range(&message[..20]).unwrap(), None);
        assert!(body_range(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
