//! Disks without room, and files and folders that cannot be written.

use super::fixture::{begin, folder, step};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tenure_core::ErrorKind;
use tenure_core::step::StepLog;
use tenure_store::{Authenticity, Store, StoreErrorKind, StoreKeys};

/// The variable that tells a child which file to use.
const FILE: &str = "TENURE_TEST_FILE";

/// Runs one of the tests below in a process of its own, with rights and limits of its own. A root
/// that could write anywhere becomes nobody.
fn child(test: &str, file: &Path, prepare: impl FnOnce(&mut Command)) -> Output {
    let program = std::env::current_exe().expect("it has a name");
    let mut command = Command::new(program);
    command.args([test, "--exact", "--nocapture"]).env(FILE, file);
    prepare(&mut command);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {said}\n{errors}");
    output
}

/// The file that this process is to use, if it is such a child.
fn file() -> Option<PathBuf> {
    std::env::var_os(FILE).map(PathBuf::from)
}

fn as_nobody(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("it is built")
}

/// The keys of a store in a folder beside it: another user may be let in.
fn beside(path: &Path) -> StoreKeys {
    StoreKeys::folder(path.with_file_name("keys"))
}

/// The file that has the store's key.
fn key_of(path: &Path) -> PathBuf {
    let keys = fs::read_dir(path.with_file_name("keys")).expect("it is a folder");
    let mut files = keys.map(|entry| entry.expect("it is there").path());
    files.find(|path| path.extension().is_some_and(|end| end == "key")).expect("there is one")
}

/// A store with one run of one step.
async fn make(path: &Path) {
    let store = Store::open_with(path, &beside(path)).expect("it opens");
    let driver = store.drive("a test").expect("nobody else drives");
    let log = begin(&driver, "one").await;
    step(&log, 0, json!({ "value": 0 })).await.expect("it is recorded");
}

#[test]
fn a_disk_that_gets_full_parks_the_run_and_loses_nothing_acknowledged() {
    let folder = folder();
    let path = folder.path().join("tenure.db");
    runtime().block_on(make(&path));
    let limited = |command: &mut Command| limit(command, &path, 800);
    let output = child("files::closed::child_that_fills_the_disk", &path, limited);
    let said = String::from_utf8_lossy(&output.stdout);
    let acknowledged = said
        .lines()
        .find_map(|line| line.split_once("acknowledged ")?.1.trim().parse::<usize>().ok())
        .unwrap_or_else(|| panic!("it does not say how many: {said}"));
    assert!(acknowledged > 10, "{said}");
    let store = Store::open_existing_with(&path, &beside(&path)).expect("it opens");
    assert!(store.verify().expect("it can be looked at").is_whole());
    let run = store.find("").map_err(|error| error.to_string());
    let runs = store.runs(&Default::default()).expect("they are read");
    let written: Vec<usize> = runs
        .iter()
        .map(|run| {
            let records = store.records(run.id, 0, usize::MAX).expect("they are read");
            records.iter().filter(|record| record.name == "step.recorded").count()
        })
        .collect();
    assert_eq!(written.iter().max(), Some(&acknowledged), "{run:?}");
}

/// Has a child write no file that is bigger than so many kilobytes.
fn limit(command: &mut Command, path: &Path, kilobytes: u32) {
    let inner = command.get_args().map(|arg| format!("'{}'", arg.to_str().expect("plain")));
    let inner: Vec<_> = inner.collect();
    let program = command.get_program().to_str().expect("plain").to_owned();
    // A signal would end it before it could say anything.
    let inner = inner.join(" ");
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec '{program}' {inner}");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).env(FILE, path);
    *command = shell;
}

#[test]
fn a_new_store_on_a_full_disk_is_there_whole_or_not_at_all() {
    let (mut made, mut refused) = (0, 0);
    // From less than a page to more than all of it, with the log and the index of the log.
    for kilobytes in [1, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 200, 300] {
        let folder = folder();
        let path = folder.path().join("tenure.db");
        let limited = |command: &mut Command| limit(command, &path, kilobytes);
        child("files::closed::child_that_makes_a_store", &path, limited);
        let names = fs::read_dir(folder.path()).expect("it is a folder");
        let names = names.map(|entry| entry.expect("it is there").file_name());
        let names: Vec<_> = names.filter(|name| name != "keys").collect();
        if path.exists() {
            made += 1;
            let store = Store::open_existing_with(&path, &beside(&path));
            let store = store.unwrap_or_else(|error| panic!("{kilobytes} kB: {error}"));
            assert!(store.verify().expect("it can be looked at").is_whole(), "{kilobytes} kB");
        } else {
            refused += 1;
            assert!(names.is_empty(), "{kilobytes} kB: {names:?}");
        }
    }
    assert!(made > 0 && refused > 0, "{made} made, {refused} refused");
}

/// The same where the file and its log share the room: what fits into one of them may not fit into
/// both.
#[test]
fn a_new_store_on_a_small_disk_is_there_whole_or_not_at_all() {
    let (mut made, mut refused) = (0, 0);
    for kilobytes in (100..=340).step_by(20) {
        let folder = folder();
        let (disk, out) = (folder.path().join("disk"), folder.path().join("out"));
        fs::create_dir(&disk).expect("it is made");
        fs::create_dir(&out).expect("it is made");
        let path = disk.join("tenure.db");
        let on_disk = |command: &mut Command| {
            let inner: Vec<_> =
                command.get_args().map(|arg| arg.to_str().expect("plain")).collect();
            let program = command.get_program().to_str().expect("plain");
            let (inner, disk, out) = (inner.join(" "), disk.display(), out.display());
            // Seen by the child alone, and gone with it.
            let script = format!(
                "mount -t tmpfs -o size={kilobytes}k tmpfs '{disk}' || exit 77; '{program}' {inner} || \
                 exit 1; rm -rf '{disk}/keys'; cp '{disk}'/* '{out}' 2>/dev/null; exit 0"
            );
            let mut shell = Command::new("unshare");
            shell.args(["-rm", "sh", "-c", &script]).env(FILE, &path);
            *command = shell;
        };
        let mut command = Command::new(std::env::current_exe().expect("it has a name"));
        command.args(["files::closed::child_that_makes_a_store", "--exact", "--nocapture"]);
        on_disk(&mut command);
        let output = command.output();
        let Some(output) = output.ok().filter(|output| matches!(output.status.code(), Some(0 | 1)))
        else {
            eprintln!("no disk can be mounted here");
            return;
        };
        assert!(output.status.success(), "{output:?}");
        let copy = out.join("tenure.db");
        if copy.exists() {
            made += 1;
            let store = Store::open_existing_with(&copy, &beside(&copy));
            let store = store.unwrap_or_else(|error| panic!("{kilobytes} kB: {error}"));
            assert!(store.verify().expect("it can be looked at").is_whole(), "{kilobytes} kB");
        } else {
            refused += 1;
            assert_eq!(fs::read_dir(&out).expect("it is there").count(), 0, "{kilobytes} kB");
        }
    }
    assert!(made > 0 && refused > 0, "{made} made, {refused} refused");
}

#[test]
fn child_that_makes_a_store() {
    let Some(path) = file() else { return };
    if let Err(error) = Store::open_with(&path, &beside(&path)) {
        assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
        assert!(error.to_string().contains("tenure.db"), "{error}");
    }
}

#[test]
fn child_that_fills_the_disk() {
    let Some(path) = file() else { return };
    runtime().block_on(async {
        let store = Store::open_existing_with(&path, &beside(&path)).expect("it opens");
        let driver = store.drive("a test").expect("nobody else drives");
        let log = begin(&driver, "two").await;
        let mut acknowledged = 0;
        let error = loop {
            let value = json!({ "value": format!("{acknowledged} ").repeat(700) });
            match step(&log, acknowledged, value).await {
                Ok(()) => acknowledged += 1,
                Err(error) => break error,
            }
            assert!(acknowledged < 10_000, "it never gets full");
        };
        println!("acknowledged {acknowledged}");
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
        assert!(error.parks(), "{error}");
        let said = error.to_string();
        assert!(said.contains("full") && said.contains("tenure.db"), "{said}");
        assert!(log.trouble().is_some(), "nothing goes on");
        let records = store.records(log.run_id(), 0, usize::MAX).expect("they are read");
        let steps = records.iter().filter(|record| record.name == "step.recorded").count();
        assert_eq!(steps, acknowledged);
    });
}

#[test]
fn a_file_or_a_folder_that_cannot_be_written_is_a_clear_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tenure.db");
    runtime().block_on(make(&path));
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    };
    // What is in the folder can be read, and nothing written.
    let closed = |folder: &Path| {
        for entry in fs::read_dir(folder).expect("it is a folder") {
            let path = entry.expect("it is there").path();
            mode(&path, if path.is_dir() { 0o555 } else { 0o444 });
        }
    };
    closed(folder.path());
    closed(&path.with_file_name("keys"));
    mode(folder.path(), 0o555);
    child("files::closed::child_before_a_closed_folder", &path, as_nobody);
    // The folder can be written, the file cannot.
    mode(folder.path(), 0o777);
    child("files::closed::child_before_a_closed_file", &path, as_nobody);
    mode(folder.path(), 0o700);
    let store = Store::open_existing_with(&path, &beside(&path)).expect("it opens");
    assert!(store.verify().expect("it can be looked at").is_whole());
}

#[test]
fn child_before_a_closed_folder() {
    let Some(path) = file() else { return };
    let new = path.with_file_name("new.db");
    let all_stores = StoreKeys::file(key_of(&path));
    let error = Store::open_with(new, &all_stores).expect_err("it cannot be made");
    assert_eq!(error.kind(), StoreErrorKind::ReadOnly, "{error}");
    assert!(error.to_string().contains("new.db"), "{error}");
    // SQLite would need two files more beside it; what is at rest is read without them.
    let store = Store::open_existing_with(&path, &beside(&path)).expect("it can be read");
    assert_eq!(store.authenticity(), Authenticity::Authenticated);
    assert_eq!(store.runs(&Default::default()).expect("they are read").len(), 1);
    assert!(store.verify().expect("it can be looked at").is_whole());
    let error = store.drive("a test").expect_err("it cannot be driven");
    assert_eq!(error.kind(), StoreErrorKind::ReadOnly, "{error}");
}

#[test]
fn child_before_a_closed_file() {
    let Some(path) = file() else { return };
    let store = Store::open_existing_with(&path, &beside(&path)).expect("it can be read");
    let runs = store.runs(&Default::default()).expect("they are read");
    assert_eq!(runs.len(), 1, "what is there can be read");
    let error = store.drive("a test").expect_err("it cannot be driven");
    assert_eq!(error.kind(), StoreErrorKind::ReadOnly, "{error}");
    assert!(error.to_string().contains("permissions"), "{error}");
}
