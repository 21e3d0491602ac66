//! Tests that start processes, or need one to themselves.

use std::process::Command;
use std::time::{Duration, Instant};

/// The longest wait of [`eventually`].
const PATIENCE: Duration = Duration::from_secs(40);

/// Set in the process that [`ran_alone`] starts.
const ALONE: &str = "TENURE_TEST_ALONE";

/// Waits until `done` returns `true`, by the clock of the machine.
///
/// For what another process does: there is no event to wait for, and a paused clock does not reach it.
///
/// # Panics
///
/// With `what`, if that takes more than 40 seconds.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let file = std::env::temp_dir();
/// tenure_testkit::eventually("the folder is there", || file.is_dir()).await;
/// # });
/// ```
pub async fn eventually(what: &str, done: impl Fn() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns `true` if a process with this id exists and has not ended. Works on Linux.
///
/// A process that has ended and was not waited for is not alive. Text around the id is trimmed, since ids come from
/// files that the processes write; an empty text is no process.
///
/// ```
/// assert!(tenure_testkit::is_alive(&std::process::id().to_string()));
/// assert!(!tenure_testkit::is_alive(""));
/// ```
pub fn is_alive(pid: &str) -> bool {
    let pid = pid.trim();
    // Without an id the path would be that of the machine's own statistics.
    if pid.is_empty() {
        return false;
    }
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Runs the calling test in a process of its own, unless it has one, and returns `true` if it did.
///
/// For a test that counts the children, the descriptors or the memory of its process, which tests beside it would
/// change. Such a test begins with this line and returns if it is `true`:
///
/// ```no_run
/// #[test]
/// fn nothing_is_left_open() {
///     if tenure_testkit::ran_alone() {
///         return;
///     }
///     // From here on there is no other test in this process.
/// }
/// ```
///
/// With cargo-nextest every test has a process of its own already. Otherwise the test is known by the name of its
/// thread, which is the one that the harness gives it, so call this from that thread.
///
/// # Panics
///
/// With everything that the test printed, if it fails in its own process.
pub fn ran_alone() -> bool {
    let thread = std::thread::current();
    let has_own = std::env::var_os(ALONE).is_some()
        || std::env::var("NEXTEST_EXECUTION_MODE").is_ok_and(|mode| mode == "process-per-test");
    // The harness runs tests on the main thread only if it runs one at a time.
    let Some(test) = thread.name().filter(|name| !has_own && *name != "main") else {
        return false;
    };
    let program = std::env::current_exe().expect("a process knows its own file");
    let output = Command::new(program)
        .args([test, "--exact", "--nocapture", "--include-ignored"])
        .env(ALONE, "1")
        .output()
        .expect("a program that runs can be started again");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let passed = output.status.success() && said.contains("1 passed");
    assert!(passed, "`{test}` failed in a process of its own:\n{said}\n{errors}");
    true
}
