//! A hook in Python, whose process runs confined, against a bare echo of JSON in the same interpreter.
//!
//! The echo is what anybody would write who needs Python in another process and nothing more: a
//! length, an object of JSON, decoded and encoded on both sides, one at a time, on the pipes of a
//! child process. It has no hooks, no logs, no limits, and nobody notices if it dies.

use super::Measured;
use crate::fakes::{Scripted, quick, started, turn};
use crate::measure::{Bench, since};
use crate::report::Figure;
use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tempfile::TempDir;
use tenure::agent::Agent;
use tenure::context::TurnCx;
use tenure::drive::Input;
use tenure::hook::{AgentLifecycle, Flow, HookError, Point, Points};
use tenure_hosts::{
    Interpreter, PythonConfig, PythonFile, PythonFunction, PythonHook, PythonHost, Role, Style,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const SMALL: usize = 200;
const LARGE: usize = 10_000;
const TRIPS: usize = 50;
/// Instances, or conversations with the echo, that are busy at the same time.
const BUSY: usize = 4;
/// Workers that are killed for one sample.
const KILLS: usize = 1;

const ECHO: &str = "\
import json, os
read, write, loads, dumps = os.read, os.write, json.loads, json.dumps
while True:
    data = read(0, 65536)
    if not data: break
    size = int.from_bytes(data[:4], 'little') + 4
    while len(data) < size: data += read(0, 65536)
    body = dumps(loads(data[4:])).encode()
    write(1, len(body).to_bytes(4, 'little') + body)
";

/// The same with a thread for each conversation, on pipes that have names.
const BUSY_ECHO: &str = "\
import json, os, sys, threading
read, write, loads, dumps = os.read, os.write, json.loads, json.dumps
def serve(number):
    come = os.open(sys.argv[1] + '/in%d' % number, os.O_RDONLY)
    go = os.open(sys.argv[1] + '/out%d' % number, os.O_WRONLY)
    while True:
        data = read(come, 65536)
        if not data: os._exit(0)
        size = int.from_bytes(data[:4], 'little') + 4
        while len(data) < size: data += read(come, 65536)
        body = dumps(loads(data[4:])).encode()
        write(go, len(body).to_bytes(4, 'little') + body)
threads = [threading.Thread(target=serve, args=(it,)) for it in range(int(sys.argv[2]))]
for it in threads: it.start()
for it in threads: it.join()
";

const HOOKS: &str = "\
def plain(ctx):
    pass

def guard(ctx):
    return {'allow': True}

async def asynchronous(ctx):
    pass
";

/// The child that echoes.
struct Echo {
    stdin: ChildStdin,
    stdout: ChildStdout,
    _child: Child,
}

impl Echo {
    fn start(python: &Path) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(python)
            .args(["-I", "-u", "-c", ECHO])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Ok(Self {
            stdin: stdin.ok_or("the child has no input")?,
            stdout: stdout.ok_or("the child has no output")?,
            _child: child,
        })
    }

    async fn trip(&mut self, value: &Value) -> std::io::Result<Value> {
        trip(&mut self.stdin, &mut self.stdout, value).await
    }
}

/// Sends an object of JSON, and reads the one that comes back.
async fn trip(
    to: &mut (impl AsyncWrite + Unpin),
    from: &mut (impl AsyncRead + Unpin),
    value: &Value,
) -> std::io::Result<Value> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, value)?;
    let size = (frame.len() - 4) as u32;
    frame[..4].copy_from_slice(&size.to_le_bytes());
    to.write_all(&frame).await?;
    let mut buffer = Vec::with_capacity(64 << 10);
    loop {
        from.read_buf(&mut buffer).await?;
        if let Some((size, body)) = buffer.split_first_chunk::<4>()
            && body.len() == u32::from_le_bytes(*size) as usize
        {
            return Ok(serde_json::from_slice(body)?);
        }
    }
}

/// The child that echoes in several conversations at once.
struct BusyEcho {
    pipes: Vec<(pipe::Sender, pipe::Receiver)>,
    _child: Child,
    _dir: TempDir,
}

impl BusyEcho {
    async fn start(python: &Path) -> Result<Self, Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        let at = |name: &str, number: usize| dir.path().join(format!("{name}{number}"));
        let mut pipes = Vec::new();
        for number in 0..BUSY {
            let paths = ["in", "out"].map(|name| at(name, number));
            Command::new("mkfifo").args(&paths).status().await?;
            let mut options = pipe::OpenOptions::new();
            // Opened for both, a pipe needs no other end yet.
            let both = options.read_write(true);
            pipes.push((both.open_sender(&paths[0])?, both.open_receiver(&paths[1])?));
        }
        let child = Command::new(python)
            .args(["-I", "-u", "-c", BUSY_ECHO])
            .arg(dir.path())
            .arg(BUSY.to_string())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { pipes, _child: child, _dir: dir })
    }

    /// Returns the time of a trip, with all conversations busy.
    async fn sample(&mut self, value: &Value) -> f64 {
        let each = self.pipes.iter_mut().map(async |(to, from)| {
            trip(to, from, value).await.expect("it echoes");
            let start = Instant::now();
            for _ in 0..TRIPS {
                trip(to, from, value).await.expect("it echoes");
            }
            since(start) / TRIPS as f64
        });
        mean(&join_all(each).await)
    }
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

/// Calls a hook again and again, as the agent called it, and keeps how long one call took.
struct Repeated {
    hook: PythonHook,
    text: String,
    took: Arc<Mutex<f64>>,
    host: PythonHost,
    kills: usize,
}

#[async_trait]
impl AgentLifecycle for Repeated {
    fn points(&self) -> Points {
        Point::BeforeAgent.into()
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        let mut input = Input::text(self.text.as_str());
        // The first loads the module.
        for _ in 0..3 {
            let _ = self.hook.before_agent(cx, &mut input).await?;
        }
        let mut total = 0.0;
        let trips = if self.kills > 0 { self.kills } else { TRIPS };
        for _ in 0..trips {
            if self.kills > 0 {
                // The spare is ready: what is measured is its use, not its start.
                self.host.warm().await;
                kill(&self.host.processes()).await;
            }
            let start = Instant::now();
            let _ = self.hook.before_agent(cx, &mut input).await?;
            total += since(start);
        }
        *self.took.lock().expect("nobody panicked") = total / trips as f64;
        Ok(Flow::Continue)
    }
}

/// Kills processes from outside, as a crash or the system would, and sees to it that they are dead.
async fn kill(processes: &[u32]) {
    for process in processes {
        let _ = Command::new("kill").args(["-9", &process.to_string()]).status().await;
        // Its pipes are closed when the last of its threads is gone.
        let threads = || {
            let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
            tasks.map_or(0, Iterator::count)
        };
        let is_dead = || {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z ") && threads() <= 1)
        };
        while !is_dead() {
            std::thread::yield_now();
        }
    }
}

/// An agent whose hook takes the time of a Python function.
struct Contender {
    agent: Agent,
    took: Arc<Mutex<f64>>,
}

impl Contender {
    fn new(
        bench: &Bench,
        host: &PythonHost,
        file: &Arc<PythonFile>,
        (name, style): (&str, Style),
        bytes: usize,
        kills: usize,
    ) -> Self {
        let took = Arc::new(Mutex::new(f64::INFINITY));
        let function = PythonFunction {
            file: file.clone(),
            name: name.into(),
            style,
            takes: vec!["ctx".into()],
            waits: false,
        };
        let role = if name == "guard" { Role::Guard } else { Role::Other };
        let hook = Repeated {
            hook: host.hook(function, Point::BeforeAgent).role(role),
            text: "x".repeat(bytes),
            took: took.clone(),
            host: host.clone(),
            kills,
        };
        let mut agent = None;
        bench.on_thread(async {
            agent = Some(started(quick(Scripted { steps: 0 }).with_lifecycle(hook)).await);
            0.0
        });
        Self { agent: agent.expect("it was started"), took }
    }

    fn sample(&self, bench: &Bench) -> f64 {
        bench.on_thread(async {
            turn(&self.agent).await;
            *self.took.lock().expect("nobody panicked")
        })
    }
}

/// Returns the time of a call, with these agents busy at the same time.
fn busy(bench: &Bench, contenders: &[Contender]) -> f64 {
    bench.on_thread(async {
        join_all(contenders.iter().map(|contender| turn(&contender.agent))).await;
        let took = contenders.iter().map(|it| *it.took.lock().expect("nobody panicked"));
        mean(&took.collect::<Vec<_>>())
    })
}

struct Parts {
    host: PythonHost,
    file: Arc<PythonFile>,
    python: Interpreter,
    _folder: TempDir,
}

fn parts() -> Result<Parts, Box<dyn Error>> {
    let (folder, environment) = super::confined::project()?;
    let dir = folder.path().canonicalize()?;
    let python = Interpreter::find(&dir)?;
    let config = PythonConfig {
        interpreter: python.clone(),
        environment,
        dir: dir.clone(),
        limits: Default::default(),
        modules: Default::default(),
        start_check: None,
    };
    let file = Arc::new(PythonFile::new(dir.join("tenure_bench_hooks.py"), HOOKS));
    Ok(Parts { host: PythonHost::new(config), file, python, _folder: folder })
}

/// Round trips of a hook that does nothing.
pub(crate) fn round_trips(bench: &Bench) -> Measured {
    let Parts { host, file, python, _folder } = parts()?;
    let mut started = None;
    bench.on_thread(async {
        let start = || Echo::start(python.path()).map_err(|error| error.to_string());
        let busy = BusyEcho::start(python.path()).await.map_err(|error| error.to_string());
        started = Some((start(), start(), busy));
        0.0
    });
    let (small_echo, large_echo, busy_echo) = started.ok_or("the echoes were not started")?;
    let (mut small_echo, mut large_echo, mut busy_echo) = (small_echo?, large_echo?, busy_echo?);
    let object = |bytes: usize| json!({ "text": "x".repeat(bytes - 11) });
    let (small, large) = (object(SMALL), object(LARGE));
    let bare = |echo: &mut Echo, value: &Value| {
        bench.on_thread(async {
            echo.trip(value).await.expect("it echoes");
            let start = Instant::now();
            for _ in 0..TRIPS {
                echo.trip(value).await.expect("it echoes");
            }
            since(start) / TRIPS as f64
        })
    };
    let (plain, later) = (("plain", Style::Sync), ("asynchronous", Style::Async));
    let contender = |function, bytes| Contender::new(bench, &host, &file, function, bytes, 0);
    let contenders = [
        contender(plain, SMALL),
        contender(later, SMALL),
        contender(plain, LARGE),
        contender(later, LARGE),
        contender(("guard", Style::Sync), SMALL),
    ];
    // One worker for all of them, as the agents of a run have it.
    let team: Vec<_> = (0..2 * BUSY)
        .map(|number| {
            let one = contender(if number < BUSY { plain } else { later }, SMALL);
            host.join(one.agent.id(), "team");
            one
        })
        .collect();
    let (sync_team, async_team) = team.split_at(BUSY);
    let [
        bare_small,
        sync_small,
        async_small,
        bare_large,
        sync_large,
        async_large,
        guard_small,
        bare_busy,
        sync_busy,
        async_busy,
    ] = bench.race([
        &mut || bare(&mut small_echo, &small),
        &mut || contenders[0].sample(bench),
        &mut || contenders[1].sample(bench),
        &mut || bare(&mut large_echo, &large),
        &mut || contenders[2].sample(bench),
        &mut || contenders[3].sample(bench),
        &mut || contenders[4].sample(bench),
        &mut || bench.on_thread(busy_echo.sample(&small)),
        &mut || busy(bench, sync_team),
        &mut || busy(bench, async_team),
    ]);
    let pairs = [
        (("sync_200b_ns", sync_small), ("echo_200b_ns", bare_small)),
        (("async_200b_ns", async_small), ("echo_200b_ns", bare_small)),
        (("sync_10kb_ns", sync_large), ("echo_10kb_ns", bare_large)),
        (("async_10kb_ns", async_large), ("echo_10kb_ns", bare_large)),
        (("guard_200b_ns", guard_small), ("echo_200b_ns", bare_small)),
        (("sync_busy_ns", sync_busy), ("echo_busy_ns", bare_busy)),
        (("async_busy_ns", async_busy), ("echo_busy_ns", bare_busy)),
    ];
    // The figure is the worst of them.
    let ratio = |pair: &((&str, f64), (&str, f64))| pair.0.1 / pair.1.1;
    let worst = pairs.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b))).ok_or("no pair")?;
    let mut figure = Figure::ratio("python_hook_ratio", 1.3, worst.0, worst.1);
    for (ours, _) in pairs.iter().filter(|pair| pair.0 != worst.0) {
        figure = figure.with(ours.0, ours.1);
    }
    let echoes =
        [("echo_200b_ns", bare_small), ("echo_10kb_ns", bare_large), ("echo_busy_ns", bare_busy)];
    for (name, value) in echoes {
        if name != worst.1.0 {
            figure = figure.with(name, value);
        }
    }
    bench.on_thread(async {
        drop((contenders, team, busy_echo));
        host.shutdown().await;
        0.0
    });
    Ok(vec![figure])
}

/// The first answer after a worker was killed.
pub(crate) fn replacement(bench: &Bench) -> Measured {
    let Parts { host, file, _folder, .. } = parts()?;
    let plain = ("plain", Style::Sync);
    let ordinary = Contender::new(bench, &host, &file, plain, SMALL, 0);
    let replaced = Contender::new(bench, &host, &file, plain, SMALL, KILLS);
    let mut rounds = 0;
    let mut best = f64::INFINITY;
    let [usual] = bench.race([&mut || {
        // A worker is started for every kill, so a few of them have to do.
        if rounds % 10 == 0 {
            best = best.min(replaced.sample(bench));
        }
        rounds += 1;
        ordinary.sample(bench)
    }]);
    bench.on_thread(async {
        drop((ordinary, replaced));
        host.shutdown().await;
        0.0
    });
    Ok(vec![Figure::ratio(
        "worker_replace_ratio",
        30.0,
        ("after_kill_ns", best),
        ("round_trip_ns", usual),
    )])
}
