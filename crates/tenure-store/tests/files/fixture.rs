//! A small store with a bit of everything, and what it may say of itself afterwards.

use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tenure_core::RunId;
use tenure_core::engine::{NewRun, RunQuery};
use tenure_core::memory::Memory;
use tenure_core::message::{History, Message};
use tenure_core::step::{StepKey, StepLog};
use tenure_store::{Begun, Driver, Record, RunLog, Store, StoreError, StoreErrorKind};

/// The bytes of a store: its file, and its log if it was not closed.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) db: Vec<u8>,
    pub(crate) wal: Vec<u8>,
}

impl Files {
    fn read(path: &Path) -> Self {
        let db = fs::read(path).expect("it is there");
        Self { db, wal: fs::read(beside(path, "-wal")).unwrap_or_default() }
    }

    /// Puts a copy into a folder, in place of what is there.
    pub(crate) fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("tenure.db");
        let _ = fs::remove_file(beside(&path, "-shm"));
        fs::write(&path, &self.db).expect("it is written");
        if self.wal.is_empty() {
            let _ = fs::remove_file(beside(&path, "-wal"));
        } else {
            fs::write(beside(&path, "-wal"), &self.wal).expect("it is written");
        }
        path
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// A folder in memory, if there is such: copies need not last.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()),
        false => tempfile::tempdir(),
    }
    .expect("a folder")
}

/// Everything that was ever acknowledged.
#[derive(Default)]
pub(crate) struct Truth {
    pub(crate) runs: Vec<RunId>,
    records: HashMap<RunId, Vec<Record>>,
    infos: Vec<Value>,
    histories: Vec<History>,
    memories: Vec<BTreeMap<String, Value>>,
}

/// What a copy was found to be.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Clone, Copy)]
pub(crate) enum Found {
    /// As it was at the end.
    Whole,
    /// As it was at an earlier moment.
    Prefix,
    /// It says that it is damaged, or no store, or not of this version.
    Refused,
}

pub(crate) fn key(ordinal: usize) -> StepKey {
    StepKey::new("turn", "tool", "read", ordinal as u32, ordinal as u64)
}

pub(crate) async fn step(
    log: &RunLog,
    ordinal: usize,
    value: Value,
) -> Result<(), tenure_core::Error> {
    log.step(key(ordinal), Box::pin(async move { Ok(value) })).await.map(drop)
}

pub(crate) async fn begin(driver: &Driver, name: &str) -> RunLog {
    let run = NewRun::new("test", json!({ "message": name })).name(name).thread("t");
    match driver.begin(run).await.expect("it begins") {
        Begun::New(log) => log,
        other => panic!("{other:?}"),
    }
}

/// A value of a step: some are kept apart.
fn value(ordinal: usize) -> Value {
    let messages: Vec<Value> = (0..=ordinal)
        .map(|n| json!({ "role": "user", "content": format!("message {n} {}", "la ".repeat(30)) }))
        .collect();
    match ordinal {
        0 | 4 => json!({ "value": { "messages": messages } }),
        1 => json!({ "value": format!("{ordinal} ").repeat(2100) }),
        _ => json!({ "value": format!("the result of step {ordinal}") }),
    }
}

fn info(store: &Store) -> Result<Vec<Value>, StoreError> {
    let runs = store.runs(&RunQuery::default())?;
    let plain = runs.into_iter().map(|run| {
        let mut run = serde_json::to_value(run).expect("it can be written");
        let fields = run.as_object_mut().expect("it is an object");
        // Whether somebody drives it is no matter of the file; when it was last written to follows
        // from its records.
        fields.retain(|key, _| key != "driven" && key != "updated");
        run
    });
    Ok(plain.collect())
}

impl Truth {
    fn note(&mut self, store: &Store) {
        for info in info(store).expect("they are read") {
            if !self.infos.contains(&info) {
                self.infos.push(info);
            }
        }
    }

    async fn say(&mut self, store: &Store, number: usize) {
        let history: History = (0..=number)
            .map(|n| Message::user(format!("hello {n} {}", "lo ".repeat(99))))
            .collect();
        store.threads().save("t", "clerk", &history).await.expect("it is saved");
        self.histories.push(history);
        let values: BTreeMap<_, _> = [("facts".to_owned(), json!({ "number": number }))].into();
        store.memory().store("clerk", values.clone()).await.expect("it is stored");
        self.memories.push(values);
    }

    /// Holds everything that a copy says of itself against what was written. An `Err` is a refusal
    /// to say it; a word that was never written is a panic.
    fn hold(&self, store: &Store, runtime: &tokio::runtime::Runtime) -> Result<Found, StoreError> {
        let mut found = Found::Whole;
        for run in &self.runs {
            let (all, read) = (&self.records[run], store.records(*run, 0, usize::MAX)?);
            assert!(all.starts_with(&read), "run {run}: {read:#?}\nis no prefix of\n{all:#?}");
            if read.len() < all.len() {
                found = Found::Prefix;
            }
        }
        let infos = info(store)?;
        for info in &infos {
            assert!(self.infos.contains(info), "{info} was never so");
        }
        if infos.len() < self.runs.len() {
            found = Found::Prefix;
        }
        match store.threads().load("t", "clerk")? {
            Some(history) => {
                let place = self.histories.iter().position(|known| *known == history);
                let place = place.unwrap_or_else(|| panic!("{history:?} was never said"));
                if place + 1 < self.histories.len() {
                    found = Found::Prefix;
                }
            }
            None => found = Found::Prefix,
        }
        let memory = match runtime.block_on(store.memory().load("clerk")) {
            Ok(memory) => memory,
            Err(error) => match error.downcast::<StoreError>() {
                Ok(error) => return Err(*error),
                Err(error) => panic!("{error}"),
            },
        };
        let known = memory.is_empty() || self.memories.contains(&memory);
        assert!(known, "{memory:?} was never known");
        Ok(found)
    }

    /// Opens a copy and looks at it.
    pub(crate) fn look(&self, path: &Path, runtime: &tokio::runtime::Runtime) -> Found {
        let looked = crate::keys::open_existing(path).and_then(|store| self.hold(&store, runtime));
        looked.unwrap_or_else(|error| {
            use StoreErrorKind::{Damaged, Foreign, Newer};
            let says = matches!(error.kind(), Damaged | Foreign | Newer);
            assert!(says, "this does not say that it is damaged: {error:?}");
            assert!(error.to_string().contains("tenure.db"), "this does not say which: {error}");
            Found::Refused
        })
    }
}

/// A store as a process leaves it that died, the same one closed, and what was acknowledged.
pub(crate) async fn build() -> (Files, Files, Truth) {
    let folder = folder();
    let path = folder.path().join("tenure.db");
    let mut truth = Truth::default();
    let mut dead = None;
    for half in 0..2 {
        // The first half is in the file, the second in the log.
        let store = crate::keys::open(&path).expect("it opens");
        let driver = store.drive("a test").expect("nobody else drives");
        let logs = [begin(&driver, "one").await, begin(&driver, "two").await];
        truth.runs.extend(logs.iter().map(|log| log.run_id()));
        truth.note(&store);
        for ordinal in 0..6 {
            for log in &logs {
                step(log, ordinal, value(ordinal)).await.expect("it is recorded");
            }
            truth.say(&store, 6 * half + ordinal).await;
        }
        logs[0].finish(Ok(json!("done"))).await.expect("it is recorded");
        truth.note(&store);
        dead = Some(Files::read(&path));
    }
    let store = crate::keys::open(&path).expect("it opens");
    truth.note(&store);
    for run in truth.runs.clone() {
        let records = store.records(run, 0, usize::MAX).expect("they are read");
        assert!(records.len() > 6, "{records:?}");
        truth.records.insert(run, records);
    }
    assert!(store.verify().expect("it can be looked at").is_whole());
    drop(store);
    // The thread that looked for others' answers may hold the file for a moment longer; whoever
    // closes it last moves the log into it.
    let mut closed = Files::read(&path);
    for _ in 0..200 {
        if closed.wal.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(crate::keys::open(&path).expect("it opens"));
        closed = Files::read(&path);
    }
    assert!(closed.wal.is_empty(), "the log is moved into the file when it is closed");
    let dead = dead.expect("it was read");
    assert!(dead.wal.len() > 8192, "the log has {} bytes", dead.wal.len());
    (dead, closed, truth)
}
