//! A tool call over MCP, against a bare echo by the same process.
//!
//! The call is that of the tool that an agent gets from its view: the arguments are checked and
//! sent, the answer is matched, read and made the output of the tool, with progress, cancelling and
//! a limit. The agent around it is not in the time taken. A bare echo writes a line of JSON to the
//! same process and parses the line that comes back.

use super::Measured;
use crate::fakes::{Scripted, builder, started, turn};
use crate::measure::{Bench, since};
use crate::report::Figure;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tenure::agent::Agent;
use tenure::context::ToolCx;
use tenure::tool::{Tool, ToolError, ToolOutput, ToolSource, ToolSpec};
use tenure_hosts::Environment;
use tenure_hosts::mcp::{McpProtocol, McpSelection, McpServer, McpServers, McpTransport, McpView};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

const SMALL: usize = 200;
const LARGE: usize = 10_000;
/// Calls of one sample.
const TRIPS: usize = 50;
/// How much the bare side reads at once: as much as the other one, which is what a pipe holds.
const MOST_READ: usize = 64 << 10;

/// Two pipes with names, which are removed at the end.
struct Pipes(PathBuf);

impl Pipes {
    fn new() -> Result<Self, Box<dyn Error>> {
        let folder = std::env::temp_dir().join(format!("tenure-bench-mcp-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let pipes = Self(folder);
        let made = Command::new("mkfifo").args([pipes.input(), pipes.output()]).status()?;
        if made.success() { Ok(pipes) } else { Err("mkfifo failed".into()) }
    }

    fn input(&self) -> PathBuf {
        self.0.join("in")
    }

    fn output(&self) -> PathBuf {
        self.0.join("out")
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The bare side.
struct Bare {
    to: Sender,
    from: BufReader<Receiver>,
    line: String,
}

impl Bare {
    fn open(pipes: &Pipes) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read_write(true);
        let from = options.open_receiver(pipes.output())?;
        let from = BufReader::with_capacity(MOST_READ, from);
        Ok(Self { to: options.open_sender(pipes.input())?, from, line: String::new() })
    }

    async fn trip(&mut self, value: &Value) -> std::io::Result<Value> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.to.write_all(&line).await?;
        self.line.clear();
        self.from.read_line(&mut self.line).await?;
        Ok(serde_json::from_str(&self.line)?)
    }
}

/// A tool that calls another one again and again, and keeps how long one call took.
struct Repeated {
    view: McpView,
    bytes: Arc<Mutex<usize>>,
    took: Arc<Mutex<f64>>,
}

#[async_trait]
impl Tool for Repeated {
    fn spec(&self) -> ToolSpec {
        // The name that the scripted model asks for.
        ToolSpec::new("lookup", "Calls the echo many times")
    }

    async fn call(&self, cx: ToolCx<'_>, _arguments: &Value) -> Result<ToolOutput, ToolError> {
        let tools = self.view.tools();
        let echo = tools.first().ok_or_else(|| ToolError::new("the server has no tools"))?;
        let text = "x".repeat(*self.bytes.lock().expect("nobody panicked"));
        let arguments = json!({ "message": text });
        let output = echo.call(cx, &arguments).await?;
        if output.content != text {
            return Err(ToolError::new(format!("the echo said {:?}", output.content)));
        }
        let start = Instant::now();
        for _ in 0..TRIPS {
            std::hint::black_box(echo.call(cx, &arguments).await?);
        }
        *self.took.lock().expect("nobody panicked") = since(start) / TRIPS as f64;
        Ok(output)
    }
}

/// The agent whose tool takes the times.
struct Contender {
    agent: Agent,
    bytes: Arc<Mutex<usize>>,
    took: Arc<Mutex<f64>>,
}

impl Contender {
    async fn start(view: McpView) -> Self {
        let (bytes, took) = (Arc::new(Mutex::new(SMALL)), Arc::new(Mutex::new(f64::INFINITY)));
        let tool = Repeated { view: view.clone(), bytes: bytes.clone(), took: took.clone() };
        let agent = builder(Scripted { steps: 1 }).with_lifecycle(view.keeper()).tool(tool);
        Self { agent: started(agent).await, bytes, took }
    }

    fn sample(&self, bench: &Bench, bytes: usize) -> f64 {
        *self.bytes.lock().expect("nobody panicked") = bytes;
        *self.took.lock().expect("nobody panicked") = f64::NAN;
        bench.on_thread(async {
            turn(&self.agent).await;
            *self.took.lock().expect("nobody panicked")
        })
    }
}

fn servers(pipes: &Pipes) -> Result<McpServers, Box<dyn Error>> {
    let text = |path: &Path| path.to_str().map(str::to_owned).ok_or("a path is not UTF-8");
    let command = vec![
        text(&std::env::current_exe()?)?,
        "echo".to_owned(),
        text(&pipes.input())?,
        text(&pipes.output())?,
    ];
    let transport = McpTransport::stdio(command, std::env::temp_dir());
    let mut server = McpServer::new("echo", transport);
    server.protocol = McpProtocol::Legacy;
    Ok(McpServers::new([server], Environment::new()))
}

pub(crate) fn measure(bench: &Bench) -> Measured {
    let pipes = Pipes::new()?;
    let servers = servers(&pipes)?;
    let view = servers.view(vec![McpSelection::all("echo")]);
    let mut parts = None;
    bench.on_thread(async {
        parts = Some((Contender::start(view).await, Bare::open(&pipes)));
        0.0
    });
    let (contender, bare) = parts.ok_or("nothing was started")?;
    let mut bare = bare?;
    let object = |bytes: usize| json!({ "echo": "x".repeat(bytes) });
    let (small, large) = (object(SMALL), object(LARGE));
    let mut trips = |value: &Value| {
        bench.on_thread(async {
            let echoed = bare.trip(value).await.expect("it echoes");
            assert_eq!(echoed, *value, "it echoes what it was told");
            let start = Instant::now();
            for _ in 0..TRIPS {
                std::hint::black_box(bare.trip(value).await.expect("it echoes"));
            }
            since(start) / TRIPS as f64
        })
    };
    let trips = std::cell::RefCell::new(&mut trips);
    let [mcp_small, bare_small, mcp_large, bare_large] = bench.race([
        &mut || contender.sample(bench, SMALL),
        &mut || trips.borrow_mut()(&small),
        &mut || contender.sample(bench, LARGE),
        &mut || trips.borrow_mut()(&large),
    ]);
    bench.on_thread(async {
        contender.agent.shutdown().await;
        0.0
    });
    // The figure is the worse of them.
    let small = (("mcp_200b_ns", mcp_small), ("echo_200b_ns", bare_small));
    let large = (("mcp_10kb_ns", mcp_large), ("echo_10kb_ns", bare_large));
    let is_small = mcp_small / bare_small > mcp_large / bare_large;
    let (worse, other) = if is_small { (small, large) } else { (large, small) };
    let figure = Figure::ratio("mcp_ratio", 3.0, worse.0, worse.1);
    Ok(vec![figure.with(other.0.0, other.0.1).with(other.1.0, other.1.1)])
}
