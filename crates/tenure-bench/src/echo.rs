//! A server that echoes, run as a child: over MCP on its standard streams, and bare on two pipes.
//!
//! It is one process with one way to read, understand and write a line; only what the line says is
//! another. An object of JSON without `jsonrpc` comes back as it is.

use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::thread;

/// Answers until the standard input ends.
pub(crate) fn run(bare_in: &str, bare_out: &str) -> io::Result<()> {
    // Opened for both, so that no end waits for the other to come.
    let open = |path: &str| OpenOptions::new().read(true).write(true).open(path);
    let (bare_in, bare_out) = (open(bare_in)?, open(bare_out)?);
    thread::spawn(move || answer(BufReader::new(bare_in), bare_out));
    answer(io::stdin().lock(), io::stdout().lock())
}

fn answer(mut from: impl BufRead, mut to: impl Write) -> io::Result<()> {
    let mut line = String::new();
    while from.read_line(&mut line)? > 0 {
        if let Some(reply) = reply(serde_json::from_str(&line)?) {
            let mut bytes = serde_json::to_vec(&reply)?;
            bytes.push(b'\n');
            to.write_all(&bytes)?;
            to.flush()?;
        }
        line.clear();
    }
    Ok(())
}

fn reply(mut message: Value) -> Option<Value> {
    if message.get("jsonrpc").is_none() {
        return Some(message);
    }
    let id = message.get("id")?.clone();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "echo", "version": "1" },
        }),
        "tools/list" => json!({
            "tools": [{
                "name": "echo",
                "description": "Says what it is told",
                "inputSchema": {
                    "type": "object",
                    "properties": { "message": { "type": "string" } },
                    "required": ["message"],
                },
            }],
        }),
        "tools/call" => {
            let text = message["params"]["arguments"]["message"].take();
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        "ping" => json!({}),
        _ => {
            let error = json!({ "code": -32601, "message": "there is no such method" });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_line_comes_back_and_a_call_is_answered() {
        let lines = "{\"echo\":\"hi\"}\n\
                     {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\
                     {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\
                     \"params\":{\"name\":\"echo\",\"arguments\":{\"message\":\"hi\"}}}\n";
        let mut out = Vec::new();
        answer(lines.as_bytes(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let answers: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let result = json!({ "content": [{ "type": "text", "text": "hi" }] });
        assert_eq!(
            answers,
            [json!({ "echo": "hi" }), json!({ "jsonrpc": "2.0", "id": 7, "result": result })]
        );
    }
}
