//! The processes of one test, found without their help.

use std::fs;
use std::path::Path;

/// Returns the living processes that have `mark` in their command line, their environment, their folder or a file that
/// they have open, this one and its threads left out. A process that empties its environment, leaves its session and its
/// parents and goes to another folder still has one of them.
pub(crate) fn processes_of(mark: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").expect("this is Linux").flatten();
    let is_process = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own;
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(is_process).filter_map(|pid| describe(&pid, mark)).collect()
}

/// The process as a line, if it lives and has the mark.
fn describe(pid: &str, mark: &str) -> Option<String> {
    let folder = Path::new("/proc").join(pid);
    let text = |name: &str| {
        let bytes = fs::read(folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let leads_there = |path: &Path| {
        fs::read_link(path).is_ok_and(|target| target.to_string_lossy().contains(mark))
    };
    let command = text("cmdline");
    let open = || fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
    let has_mark = command.contains(mark)
        || text("environ").contains(mark)
        || leads_there(&folder.join("cwd"))
        || open().any(|entry| leads_there(&entry.path()));
    let stat = text("stat");
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    // What ended between two looks is not there, and what ended without being waited for does nothing.
    let lives = state.is_some_and(|state| !matches!(state, 'Z' | 'X'));
    (has_mark && lives).then(|| format!("{pid} ({}) {command}", state.unwrap_or('?')))
}
