//! Files that results are written to, so that each is there once and whole.

use serde_json::Value;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How far back a line is looked for that was written before.
const TAIL: u64 = 64 * 1024;
/// The same in a run that goes on after a crash, when others may have written much since.
const LONG_TAIL: u64 = 8 * 1024 * 1024;
/// How long somebody else may write to the file.
const PATIENCE: Duration = Duration::from_secs(4);

fn failed(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{} could not be written: {error}", path.display())
}

/// Appends a line, unless one of this delivery is there already.
pub(super) fn append(
    path: &Path,
    delivery: &str,
    line: &str,
    sync: bool,
    resumed: bool,
) -> Result<(), String> {
    let failed = failed(path);
    make_parent(path).map_err(&failed)?;
    let is_odd = |it: std::fs::Metadata| !it.is_file();
    if path.symlink_metadata().is_ok_and(is_odd) {
        return Err(format!(
            "{} is a link or no file; results are not written there",
            path.display()
        ));
    }
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(&failed)?;
    check_no_link(path, &file).map_err(&failed)?;
    // Nobody else writes between the look and the line. It is given back when the file is closed.
    lock(&file).map_err(&failed)?;
    let tail = tail(&mut file, if resumed { LONG_TAIL } else { TAIL }).map_err(&failed)?;
    if tail.split(|byte| *byte == b'\n').any(|line| is_of(line, delivery)) {
        return Ok(());
    }
    // A line that a crash cut off is not gone on with.
    let is_torn = tail.last().is_some_and(|last| *last != b'\n');
    let text = format!("{}{line}\n", if is_torn { "\n" } else { "" });
    file.write_all(text.as_bytes()).map_err(&failed)?;
    if sync { file.sync_all().map_err(&failed) } else { Ok(()) }
}

/// Sees to it that an open file is the one of this name, and not one that a link of that name leads
/// to, even one that was put there while it was opened.
pub(crate) fn check_no_link(path: &Path, file: &File) -> io::Result<()> {
    let (named, open) = (path.symlink_metadata()?, file.metadata()?);
    if (named.dev(), named.ino()) == (open.dev(), open.ino()) {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is a link, which might lead anywhere"))
}

fn lock(file: &File) -> io::Result<()> {
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(ErrorKind::WouldBlock, "somebody else has it locked"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn tail(file: &mut File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut tail = Vec::new();
    file.take(most).read_to_end(&mut tail)?;
    Ok(tail)
}

fn is_of(record: &[u8], delivery: &str) -> bool {
    delivery_of(record).is_some_and(|it| it == delivery)
}

/// Whose record it is, if it is one.
fn delivery_of(record: &[u8]) -> Option<String> {
    let mut value: Value = serde_json::from_slice(record).ok()?;
    match value.get_mut("delivery")?.take() {
        Value::String(delivery) => Some(delivery),
        _ => None,
    }
}

/// Writes a file, in place of the record of that name, unless that is of this delivery. What is there
/// and is no record is somebody else's, and stays.
pub(super) fn replace(path: &Path, delivery: &str, text: &str, sync: bool) -> Result<(), String> {
    let failed = failed(path);
    make_parent(path).map_err(&failed)?;
    match path.symlink_metadata() {
        Ok(it) => {
            let known = if it.is_file() { std::fs::read(path).map_err(&failed)? } else { vec![] };
            match delivery_of(&known) {
                Some(known) if known == delivery => return Ok(()),
                Some(_) => {}
                None => {
                    return Err(format!(
                        "{} is there, and is not a result that was saved, so it is not replaced; \
                         choose another `name` or `folder`",
                        path.display()
                    ));
                }
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let beside = beside(path);
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        if sync {
            file.sync_all()?;
        }
        std::fs::rename(&beside, path)?;
        if sync && let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    };
    write().map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        failed(error)
    })
}

/// A name next to the file that nobody else uses.
fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id()))
}

fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_delivery_is_one_line_however_often_it_comes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in/results.jsonl");
        for delivery in ["a", "b", "a", "b", "c"] {
            let line = format!(r#"{{"delivery":"{delivery}"}}"#);
            append(&path, delivery, &line, true, false).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_line_that_was_cut_off_stays_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        std::fs::write(&path, r#"{"delivery":"a","#).unwrap();
        append(&path, "a", r#"{"delivery":"a"}"#, false, true).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().last(), Some(r#"{"delivery":"a"}"#), "{text}");
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn many_at_once_leave_a_line_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for number in 0..25 {
                        let delivery = format!("{thread}-{number}");
                        let line = format!(r#"{{"delivery":"{delivery}"}}"#);
                        append(path, &delivery, &line, false, false).unwrap();
                    }
                });
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 200);
        assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    }

    #[test]
    fn a_file_is_replaced_whole_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("last.json");
        replace(&path, "a", r#"{"delivery":"a","n":1}"#, true).unwrap();
        replace(&path, "a", r#"{"delivery":"a","n":2}"#, true).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains(r#""n":1"#));
        replace(&path, "b", r#"{"delivery":"b","n":3}"#, false).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains(r#""n":3"#));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (target, path) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(append(&path, "a", "{}", false, false).unwrap_err().contains("is a link"));
        assert!(replace(&path, "a", "{}", false).unwrap_err().contains("is not replaced"));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "");
        // Also if it was put there after the look.
        let open = File::open(&path).unwrap();
        assert!(check_no_link(&path, &open).unwrap_err().to_string().contains("is a link"));
        assert!(check_no_link(&target, &open).is_ok());
    }

    #[test]
    fn what_is_no_record_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.md");
        for text in ["", "---\ntype: agent\n---\n", "{}", r#"["delivery"]"#, r#"{"delivery":1}"#] {
            std::fs::write(&path, text).unwrap();
            let why = replace(&path, "a", r#"{"delivery":"a"}"#, false).unwrap_err();
            assert!(why.contains("agent.md is there"), "{text}: {why}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let sub = folder.path().join("sub");
        std::fs::create_dir(&sub).unwrap();
        assert!(replace(&sub, "a", "{}", false).unwrap_err().contains("is not replaced"));
    }
}
