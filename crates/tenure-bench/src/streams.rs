//! A provider's server that knows one answer: a stream of 200 deltas, ready made.
//!
//! It runs on threads of its own and blocks, so that it takes nothing from the runtime that is
//! measured. Each frame is a chunk of HTTP, as providers send them, and all of them are written at
//! once: whoever reads them never waits for the server in between.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

pub(crate) const DELTAS: usize = 200;
const DELTA: &str = " seventeen";

/// The text of the whole stream.
pub(crate) fn text() -> String {
    DELTA.repeat(DELTAS)
}

/// The answers, by wire.
struct Answers {
    openai: Vec<u8>,
    anthropic: Vec<u8>,
}

/// Starts the server, for as long as this process lives.
pub(crate) fn serve() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let answers =
        Arc::new(Answers { openai: response(&openai()), anthropic: response(&anthropic()) });
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let answers = answers.clone();
            // A connection ends when the client goes; there is nobody to tell.
            thread::spawn(move || answer(connection, &answers));
        }
    });
    Ok(address)
}

fn answer(connection: TcpStream, answers: &Answers) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut to = connection.try_clone()?;
    let mut from = BufReader::new(connection);
    while let Some(path) = read_request(&mut from)? {
        let is_openai = path.ends_with("/chat/completions");
        to.write_all(if is_openai { &answers.openai } else { &answers.anthropic })?;
    }
    Ok(())
}

/// Reads a request to its end, and says what it asked for.
fn read_request(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        from.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
            None => break,
        }
    }
    io::copy(&mut from.by_ref().take(length), &mut io::sink())?;
    Ok(Some(path))
}

/// The frames as one answer of HTTP.
fn response(frames: &[String]) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                      cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for frame in frames {
        bytes.extend(format!("{:x}\r\n{frame}\r\n", frame.len()).into_bytes());
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// Frames as OpenAI sends them.
fn openai() -> Vec<String> {
    let frame = |choices: Value, usage: Value| {
        let body = json!({
            "id": "chatcmpl-CZx7vQm3yR1dJk2fLs8uWn5tPb4e",
            "object": "chat.completion.chunk",
            "created": 1_794_795_357,
            "model": "gpt-4.1-mini-2026-04-14",
            "service_tier": "default",
            "system_fingerprint": "fp_3dcd5944f5",
            "choices": choices,
            "usage": usage,
        });
        format!("data: {body}\n\n")
    };
    let choice = |delta: Value, finish: Value| json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]);
    let start = json!({ "role": "assistant", "content": "", "refusal": null });
    let mut frames = vec![frame(choice(start, Value::Null), Value::Null)];
    let delta = choice(json!({ "content": DELTA }), Value::Null);
    frames.extend((0..DELTAS).map(|_| frame(delta.clone(), Value::Null)));
    frames.push(frame(choice(json!({}), json!("stop")), Value::Null));
    let usage = json!({ "prompt_tokens": 20, "completion_tokens": 200, "total_tokens": 220 });
    frames.push(frame(json!([]), usage));
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

/// Frames as Anthropic sends them.
fn anthropic() -> Vec<String> {
    let frame = |body: Value| {
        format!("event: {}\ndata: {body}\n\n", body["type"].as_str().unwrap_or_default())
    };
    let mut frames = vec![
        frame(json!({
            "type": "message_start",
            "message": {
                "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
                "model": "claude-haiku-4-5", "content": [], "stop_reason": null,
                "stop_sequence": null, "usage": { "input_tokens": 20, "output_tokens": 1 },
            },
        })),
        frame(json!({
            "type": "content_block_start", "index": 0,
            "content_block": { "type": "text", "text": "" },
        })),
    ];
    let delta = json!({
        "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": DELTA },
    });
    frames.extend((0..DELTAS).map(|_| frame(delta.clone())));
    frames.extend([
        frame(json!({ "type": "content_block_stop", "index": 0 })),
        frame(json!({
            "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null },
            "usage": { "output_tokens": 200 },
        })),
        frame(json!({ "type": "message_stop" })),
    ]);
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_reads_a_whole_request_and_answers_by_its_path() {
        let address = serve().unwrap();
        for (path, end) in [("/v1/chat/completions", "[DONE]"), ("/v1/messages", "message_stop")] {
            let mut connection = TcpStream::connect(address).unwrap();
            let request =
                format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{{}}");
            connection.write_all(request.as_bytes()).unwrap();
            connection.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = String::new();
            connection.read_to_string(&mut answer).unwrap();
            assert_eq!(answer.matches(DELTA).count(), DELTAS, "{path}");
            assert_eq!(answer.matches(end).count().min(1), 1, "{path}");
        }
    }
}
