//! The process that is killed: it drives one run of the flow until that is over.

use super::{CHILD, file, flow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tenure_core::engine::NewRun;
use tenure_core::event::{EventBus, Received, Subscriber};
use tenure_core::step::Steps;
use tenure_core::{Error, RunId};
use tenure_flow::ChatStatus;
use tenure_store::{Begun, Resume, fail};

const FOLDER: &str = "TENURE_ANNOUNCED_FOLDER";
const SIGKILL: i32 = 9;

/// The beginning of a line that says what a life has shown.
const SHOWN: &str = "shown: ";

/// An event that a run announces once over all of its lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    pub(crate) agent: String,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Announcement {
    /// The announcement, without what differs from run to run. `None` for events that each life has.
    fn of(agent: &str, name: &str, mut data: Value) -> Option<Self> {
        let once =
            ["chat.started", "chat.ended", "chat.message", "select_speaker", "context.changed"];
        let groups = ["orchestrator.", "journey.", "ui_tool."];
        if !once.contains(&name) && !groups.iter().any(|group| name.starts_with(group)) {
            return None;
        }
        if let Some(fields) = data.as_object_mut() {
            fields.remove("metrics");
        }
        Some(Self { agent: agent.to_owned(), name: name.to_owned(), data })
    }
}

impl fmt::Display for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {}", self.name, self.agent, self.data)
    }
}

/// The end of a process.
pub(crate) enum Ended {
    Killed,
    /// By itself, with what it has shown.
    Over(Vec<Announcement>),
}

/// Starts a process that drives the run, and waits for it.
pub(crate) fn start(folder: &Path, fail_point: Option<&str>) -> Ended {
    let program = std::env::current_exe().expect("a program knows itself");
    let mut command = Command::new(program);
    command
        .args(["--exact", CHILD, "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env_remove(fail::VARIABLE)
        .stdin(Stdio::null());
    if let Some(point) = fail_point {
        command.env(fail::VARIABLE, point);
    }
    let output = command.output().expect("this program can be started again");
    if output.status.signal() == Some(SIGKILL) {
        return Ended::Killed;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{fail_point:?}: {said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = said.lines().filter_map(|line| line.split_once(SHOWN));
    let shown = lines.map(|(_, line)| serde_json::from_str(line).expect("an announcement"));
    Ended::Over(shown.collect())
}

/// The announcements that are on record.
pub(crate) fn recorded(folder: &Path) -> Vec<Announcement> {
    let store = crate::keys::open(file(folder)).expect("the file can be read");
    let Some(run) = store.run(run_id()).expect("its runs") else { return Vec::new() };
    let records = store.records(run.id, 0, usize::MAX).expect("its record");
    let announced = records.into_iter().filter_map(|record| {
        Announcement::of(&record.agent.unwrap_or_default(), &record.name, record.data)
    });
    announced.collect()
}

/// Drives the run, if this process was started to be killed.
pub(crate) fn live() -> bool {
    let Some(folder) = std::env::var_os(FOLDER) else { return false };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime can be built");
    let shown = runtime.block_on(drive(Path::new(&folder))).expect("the run is driven");
    for announcement in shown {
        println!("\n{SHOWN}{}", json!(announcement));
    }
    true
}

async fn drive(folder: &Path) -> Result<Vec<Announcement>, Error> {
    let store = crate::keys::open(file(folder))?;
    let driver = store.drive("a process that is to be killed")?;
    let log = match driver.begin(NewRun::new("flow", Value::Null).id(run_id())).await? {
        Begun::New(log) => log,
        // Killed behind its end: nothing is left to do.
        Begun::Known(run) if run.outcome.is_some() => return Ok(Vec::new()),
        _ => driver.resume(run_id(), Resume::GoOn).await?,
    };
    let bus = EventBus::new();
    let mut events = bus.watch(10_000);
    let flow = flow::parent(&bus)?;
    let steps = Steps::new(Arc::new(log.clone()));
    let report = flow.chat().id("c").message("begin").recorded(&steps).run().await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    log.finish(Ok(Value::from(report.output))).await?;
    Ok(shown(&mut events))
}

fn shown(events: &mut Subscriber) -> Vec<Announcement> {
    let mut all = Vec::new();
    while let Some(received) = events.try_recv() {
        let Received::Event(event) = received else { panic!("the queue is too short") };
        let data = serde_json::to_value(&event.kind).expect("an event is JSON");
        all.extend(Announcement::of(&event.agent, event.name(), data["data"].clone()));
    }
    all
}

fn run_id() -> RunId {
    "7e57-a".parse().expect("it is an id")
}
