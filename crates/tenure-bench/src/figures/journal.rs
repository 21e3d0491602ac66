//! What it costs to keep a run: each step against a row that is appended by hand, a resume against
//! reading the rows, and whether either grows.

use super::Measured;
use crate::count;
use crate::fakes::{INPUT, Scripted, quick};
use crate::measure::{Bench, since};
use crate::raw::{Raw, read_rows, row_bytes};
use crate::report::Figure;
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tenure::agent::Blueprint;
use tenure::engine::{NewRun, RunCx, Runnable};
use tenure::step::{StepKey, StepLog};
use tenure::store::{Begun, Driver, Durability, Resume, RunLog, Store, StoreKeys};
use tenure::{CancelToken, RunId};

/// What a step comes to: half a kilobyte, as a short answer of a model does.
const RESULT: usize = 500;
/// Steps of a sample with one run.
const ALONE: usize = 60;
/// Runs at the same time, and steps of each in a sample.
const TOGETHER: usize = 64;
const EACH: usize = 8;
/// Rounds are few: a sample waits for the disk.
const SHARE: usize = 10;

/// The time of a journaled step, alone and with 64 runs at once.
pub(crate) fn append(bench: &Bench) -> Measured {
    let folder = tempfile::tempdir()?;
    let files = Files::new(folder.path());
    let bytes = bytes_of_a_step(bench, &files.next())?;
    let mut figures = Vec::new();
    for (name, limit, runs, steps) in
        [("append_ratio_1", 1.3, 1, ALONE), ("append_ratio_64", 1.5, TOGETHER, EACH)]
    {
        let per_step = |took: f64| took / (runs * steps) as f64;
        let [ours, raw] = bench.slow_race(
            SHARE,
            [&mut || per_step(bench.on_thread(journaled(&files.next(), runs, steps))), &mut || {
                per_step(bench.on_thread(by_hand(&files.next(), runs, steps, bytes)))
            }],
        );
        let figure = Figure::ratio(name, limit, ("step_ns", ours), ("raw_append_ns", raw));
        figures.push(figure.with("row_bytes", bytes as f64));
    }
    Ok(figures)
}

/// A file of its own for every sample.
struct Files<'a> {
    folder: &'a Path,
    made: std::cell::Cell<usize>,
}

impl<'a> Files<'a> {
    fn new(folder: &'a Path) -> Self {
        Self { folder, made: std::cell::Cell::new(0) }
    }

    fn next(&self) -> std::path::PathBuf {
        self.made.set(self.made.get() + 1);
        self.folder.join(format!("{}.db", self.made.get()))
    }
}

fn driver(path: &Path, durability: Durability) -> Driver {
    let keys = StoreKeys::folder(path.with_file_name("keys"));
    let store = Store::open_with(path, &keys).expect("a new file can be made");
    store.durability(durability).drive("a measurement").expect("nobody else drives it")
}

async fn begin(driver: &Driver, kind: &str) -> RunLog {
    match driver.begin(NewRun::new(kind, Value::Null)).await {
        Ok(Begun::New(log)) => log,
        other => panic!("the run is new: {other:?}"),
    }
}

fn result() -> Value {
    json!({ "value": { "content": "x".repeat(RESULT), "status": "ok" } })
}

async fn take_steps(log: &RunLog, steps: usize) {
    for step in 0..steps {
        let key = StepKey::new("turn", "tool", format!("lookup:call_{step}"), 0, step as u64);
        let value = result();
        let taken = log.step(key, Box::pin(async move { Ok(value) })).await;
        drop(std::hint::black_box(taken.expect("it can be recorded")));
    }
}

fn bytes_of_a_step(bench: &Bench, path: &Path) -> Result<usize, Box<dyn Error>> {
    let mut run = None;
    bench.on_thread(async {
        let driver = driver(path, Durability::Full);
        let log = begin(&driver, "steps").await;
        take_steps(&log, EACH).await;
        run = Some(log.run_id());
        0.0
    });
    let run = run.ok_or("no run was made")?;
    Ok(row_bytes(path, &run.to_string())?)
}

async fn journaled(path: &Path, runs: usize, steps: usize) -> f64 {
    let driver = driver(path, Durability::Full);
    let mut logs = Vec::new();
    for _ in 0..runs {
        logs.push(begin(&driver, "steps").await);
    }
    // The first step of a run prepares statements.
    let tasks = futures_util::future::join_all(logs.iter().map(|log| take_steps(log, steps)));
    let start = Instant::now();
    tasks.await;
    since(start)
}

async fn by_hand(path: &Path, runs: usize, steps: usize, bytes: usize) -> f64 {
    let raw = Raw::open(path).expect("a new file can be made");
    let names: Vec<String> = (0..runs).map(|_| RunId::unique().to_string()).collect();
    let append = async |run: &String| {
        for step in 0..steps {
            // The run and the number are columns of their own.
            let body = vec![b'x'; bytes - run.len() - size_of::<i64>()];
            raw.append(run, step as i64, body).await;
        }
    };
    let tasks = futures_util::future::join_all(names.iter().map(append));
    let start = Instant::now();
    tasks.await;
    since(start)
}

/// Instructions of a step of a run that is not recorded, against those of the core before there was
/// a store.
pub(crate) fn off(_bench: &Bench) -> Measured {
    let (now, then) = (count::instructions_of_a_step()?, count::committed_step()?);
    let figure = Figure::ratio(
        "off_ratio",
        1.02,
        ("instructions", now.total as f64),
        ("committed", then.total as f64),
    );
    Ok(vec![figure.with("own", now.own as f64).with("committed_own", then.own as f64)])
}

/// An agent of so many model calls and tool calls.
fn agent(steps: usize) -> Blueprint {
    quick(Scripted { steps }).blueprint().expect("it is valid")
}

async fn record(driver: &Driver, steps: usize) -> RunLog {
    let log = begin(driver, "agent").await;
    let run = RunCx::new(Value::from(INPUT), Arc::new(log.clone()), CancelToken::new());
    agent(steps).run(run).await.expect("it succeeds");
    log
}

/// Steps of the run that is resumed: model calls, tool calls and what tools say before they run.
const RESUMED: usize = 1_000;
/// A turn of the agent has three of them.
const RECORDS: usize = 3;

/// Going on with a run of 1,000 steps against reading its rows.
pub(crate) fn resume(bench: &Bench) -> Measured {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("runs.db");
    let (turns, mut run) = (RESUMED / RECORDS, None);
    bench.on_thread(async {
        let driver = driver(&path, Durability::Relaxed);
        let log = begin(&driver, "agent").await;
        run = Some(log.run_id());
        // As a process leaves it that dies: everything is on record, except that it is over.
        let input = RunCx::new(Value::from(INPUT), Arc::new(log.clone()), CancelToken::new());
        agent(turns).run(input).await.expect("it succeeds");
        0.0
    });
    let run = run.ok_or("no run was made")?;
    let name = run.to_string();
    let mut rows = 0;
    let [ours, reading] = bench.slow_race(
        SHARE,
        [
            &mut || {
                // Each sample begins with the same file: a resume adds to it.
                let copy = copied(&path, folder.path());
                let took = bench.on_thread(async {
                    let driver = driver(&copy, Durability::Relaxed);
                    let start = Instant::now();
                    let log = driver.resume(run, Resume::GoOn).await.expect("it can be resumed");
                    let input = RunCx::new(Value::from(INPUT), Arc::new(log), CancelToken::new());
                    agent(turns).run(input).await.expect("it succeeds");
                    since(start)
                });
                let _ = std::fs::remove_file(copy);
                took
            },
            &mut || {
                let start = Instant::now();
                rows = read_rows(&path, &name).expect("its rows can be read");
                since(start)
            },
        ],
    );
    let figure = Figure::ratio("resume_ratio", 10.0, ("resume_ns", ours), ("read_ns", reading));
    Ok(vec![figure.with("rows", rows as f64).with("steps", RESUMED as f64)])
}

fn copied(path: &Path, folder: &Path) -> std::path::PathBuf {
    let copy = folder.join("copy.db");
    for end in ["", "-wal", "-shm"] {
        let name = |path: &Path| format!("{}{end}", path.display());
        let (from, to) = (name(path), name(&copy));
        if Path::new(&from).exists() {
            std::fs::copy(from, to).expect("a file can be copied");
        } else {
            let _ = std::fs::remove_file(to);
        }
    }
    copy
}

const LONG: usize = 5_000;
const SHORT: usize = 50;

/// Whether a step costs more the longer the run is. Without waiting for the disk: that would be the
/// same on both sides, and hide what is not.
pub(crate) fn growth(bench: &Bench) -> Measured {
    let folder = tempfile::tempdir()?;
    let files = Files::new(folder.path());
    let sample = |steps: usize, runs: usize| {
        let path = files.next();
        let took = bench.on_thread(async {
            let driver = driver(&path, Durability::Relaxed);
            let mut took = 0.0;
            for _ in 0..runs {
                let start = Instant::now();
                record(&driver, steps).await;
                took += since(start);
            }
            took / (runs * steps) as f64
        });
        let _ = std::fs::remove_file(path);
        took
    };
    let [long, short] =
        bench.slow_race(SHARE * 4, [&mut || sample(LONG, 1), &mut || sample(SHORT, LONG / SHORT)]);
    Ok(vec![Figure::ratio(
        "store_growth_ratio",
        1.2,
        ("long_step_ns", long),
        ("short_step_ns", short),
    )])
}

const FEW: usize = 100;
const MANY: usize = 1_000;

/// Bytes on disk for ten times the steps.
pub(crate) fn disk(bench: &Bench) -> Measured {
    let folder = tempfile::tempdir()?;
    let bytes = |steps: usize, edits: Edits| -> Result<f64, Box<dyn Error>> {
        let path = folder.path().join(format!("{steps}-{edits:?}.db"));
        bench.on_thread(async {
            let driver = driver(&path, Durability::Relaxed);
            if steps > 0 {
                record_with(&driver, steps, edits).await;
            }
            0.0
        });
        // What is in the log goes into the file when the last one closes it.
        Ok(std::fs::metadata(&path)?.len() as f64)
    };
    let empty = bytes(0, Edits::No)?;
    let (many, few) = (bytes(MANY, Edits::No)? - empty, bytes(FEW, Edits::No)? - empty);
    let (edited_many, edited_few) =
        (bytes(MANY, Edits::Yes)? - empty, bytes(FEW, Edits::Yes)? - empty);
    let plain = Figure::ratio("disk_growth_ratio", 11.0, ("many_bytes", many), ("few_bytes", few));
    let edited = edited_many / edited_few;
    // A hook that edits the conversation before every call has all of it recorded, every time.
    Ok(vec![plain.with("edited_many_bytes", edited_many).with("edited_ratio", edited)])
}

/// Whether a hook edits the conversation at every step.
#[derive(Clone, Copy, Debug)]
enum Edits {
    No,
    Yes,
}

async fn record_with(driver: &Driver, steps: usize, edits: Edits) {
    use tenure::hook::{self, Flow};

    let mut agent = quick(Scripted { steps });
    if let Edits::Yes = edits {
        agent = agent.with_lifecycle(hook::before_model(|_, request| {
            request.messages.edit();
            Box::pin(async { Ok(Flow::Continue) })
        }));
    }
    let log = begin(driver, "agent").await;
    let run = RunCx::new(Value::from(INPUT), Arc::new(log), CancelToken::new());
    agent.blueprint().expect("it is valid").run(run).await.expect("it succeeds");
}
