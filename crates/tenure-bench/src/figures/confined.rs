//! Processes that run confined, as all of a project's do, against the same ones started by hand.
//!
//! The rules are those of a project in a folder of its own: files that guard it, places that are hidden, a temporary
//! folder. By hand means the standard way to start a process and to read what it writes.

use super::Measured;
use crate::measure::{Bench, since};
use crate::report::Figure;
use std::error::Error;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;
use tempfile::TempDir;
use tenure_cards::sandbox::hidden_places;
use tenure_hosts::{Confinement, Environment, Interpreter, Network};
use tenure_process::Command;
use tokio::io::AsyncWriteExt as _;
use tokio_util::task::TaskTracker;

const TRUE: &str = "/bin/true";
const ECHO: &str = "import json, sys; json.dump(json.load(sys.stdin), sys.stdout)";
/// Files of the project that a process may not write.
const GUARDED: [&str; 5] = ["tenure.toml", "agent.md", "hooks/a.py", "hooks/b.py", ".git/config"];

/// Returns a folder that is a project, and the environment of its processes.
pub(super) fn project() -> Result<(TempDir, Environment), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().canonicalize()?;
    for file in GUARDED {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap_or(&root))?;
        std::fs::write(file, "")?;
    }
    let rules = Confinement {
        writable: vec![root.clone()],
        protected: GUARDED.map(|file| root.join(file)).to_vec(),
        hidden: hidden_places(),
        temporary: Some(std::env::temp_dir().canonicalize()?),
        needed: vec![root],
        network: Network::Users,
        processes: 512,
        memory: 8 << 30,
        // A figure of what is not confined would be of no use.
        is_required: true,
        ..Confinement::default()
    };
    Ok((folder, Environment::new().confined(rules)))
}

/// Runs a command by hand, tells it something and reads what it writes.
async fn by_hand(argv: &[String], dir: &Path, told: &[u8]) -> Vec<u8> {
    let mut child = tokio::process::Command::new(&argv[0])
        .args(&argv[1..])
        .current_dir(dir)
        .env_clear()
        .envs(Environment::new().variables())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it is there");
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read is free not to.
        let _ = stdin.write_all(told).await;
    }
    child.wait_with_output().await.expect("it ends").stdout
}

/// The start and the end of a process, bare and confined, of a program and of a command that reads and writes JSON.
pub(crate) fn commands(bench: &Bench) -> Measured {
    let (folder, environment) = project()?;
    let dir = folder.path();
    let python = Interpreter::find(dir)?;
    let python = python.path().to_string_lossy().into_owned();
    let echo = vec![python, "-I".into(), "-S".into(), "-c".into(), ECHO.into()];
    let nothing = vec![TRUE.to_owned()];
    let call = serde_json::json!({ "point": "before_agent", "text": "x".repeat(200) }).to_string();
    let bare = |argv: &[String], told: &str| {
        bench.on_thread(async {
            let start = Instant::now();
            let said = by_hand(argv, dir, told.as_bytes()).await;
            assert_eq!(said.is_empty(), told.is_empty(), "it echoes");
            since(start)
        })
    };
    let confined = |argv: &[String], told: &str| {
        let tracker = TaskTracker::new();
        bench.on_thread(async {
            let command = Command::new(argv.to_vec(), dir, &environment).told(told);
            let start = Instant::now();
            let heard = command.run(&tracker).await.expect("it is started");
            let took = since(start);
            assert!(heard.ended.is_ok(), "{}", heard.text());
            assert_eq!(heard.out.is_empty(), told.is_empty(), "it echoes");
            took
        })
    };
    let [bare_true, confined_true, bare_echo, confined_echo] = bench.race([
        &mut || bare(&nothing, ""),
        &mut || confined(&nothing, ""),
        &mut || bare(&echo, &call),
        &mut || confined(&echo, &call),
    ]);
    let (ours, theirs) = (("confined_true_ns", confined_true), ("true_ns", bare_true));
    Ok(vec![
        Figure::milliseconds_more("confined_true_ms", 3.0, ours, theirs),
        Figure::ratio(
            "confined_command_ratio",
            1.2,
            ("confined_json_echo_ns", confined_echo),
            ("json_echo_ns", bare_echo),
        ),
    ])
}
