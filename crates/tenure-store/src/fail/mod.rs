//! Points at which a test lets the process die.
//!
//! They are always compiled, so that what is tested is what is shipped. Unless the environment
//! variable `TENURE_FAIL_POINT` names one of them, passing a point is one load of an atomic. If it
//! does, as `name` or `name:n`, the process kills itself with SIGKILL at the n-th passage: no
//! destructor runs, and nothing is flushed that was not flushed before.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The environment variable that names a point.
pub const VARIABLE: &str = "TENURE_FAIL_POINT";

/// Before the effect of a step.
pub const BEFORE_EFFECT: &str = "before_effect";
/// After the effect of a step, before anything of it is on its way to the file.
pub const AFTER_EFFECT: &str = "after_effect";
/// In the writer, before a step's record is committed.
pub const BEFORE_COMMIT: &str = "before_commit";
/// After a step's record is on the disk, before it is used.
pub const AFTER_COMMIT: &str = "after_commit";
/// Before the intent of a tool that runs at most once is recorded.
pub const BEFORE_INTENT: &str = "before_intent";
/// After that intent is on the disk, before the tool runs.
pub const AFTER_INTENT: &str = "after_intent";
/// After a question is on the disk, before anybody here is asked.
pub const ASK_OPENED: &str = "ask_opened";
/// After an answer has been decided, before it is used.
pub const ASK_ANSWERED: &str = "ask_answered";
/// After a scope that hooks have entered is on the disk.
pub const SCOPE_BEGAN: &str = "scope_began";
/// Before the end of a scope is recorded.
pub const BEFORE_SCOPE_END: &str = "before_scope_end";
/// After the end of a scope is on the disk.
pub const AFTER_SCOPE_END: &str = "after_scope_end";
/// After a run has another life on record, before anything of it runs.
pub const RECOVERY_BEGUN: &str = "recovery_begun";
/// In a run that is given up or cancelled, at the first step that is not on record.
pub const RECOVERY_HALF: &str = "recovery_half";
/// Before the end of a run is recorded.
pub const FINISH_BEFORE: &str = "finish_before";
/// After the end of a run is on the disk.
pub const FINISH_AFTER: &str = "finish_after";

/// Every point.
pub const FAIL_POINTS: [&str; 15] = [
    BEFORE_EFFECT,
    AFTER_EFFECT,
    BEFORE_COMMIT,
    AFTER_COMMIT,
    BEFORE_INTENT,
    AFTER_INTENT,
    ASK_OPENED,
    ASK_ANSWERED,
    SCOPE_BEGAN,
    BEFORE_SCOPE_END,
    AFTER_SCOPE_END,
    RECOVERY_BEGUN,
    RECOVERY_HALF,
    FINISH_BEFORE,
    FINISH_AFTER,
];

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();

struct Wanted {
    name: String,
    left: AtomicU64,
}

/// Passes a point.
#[inline]
pub(crate) fn point(name: &str) {
    if STATE.load(Ordering::Relaxed) != OFF {
        look(name);
    }
}

#[cold]
fn look(name: &str) {
    let wanted = WANTED.get_or_init(|| std::env::var(VARIABLE).ok().and_then(|text| read(&text)));
    STATE.store(if wanted.is_some() { ON } else { OFF }, Ordering::Relaxed);
    if let Some(wanted) = wanted
        && wanted.name == name
        && wanted.left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        die();
    }
}

/// A point that does not exist would never be passed, and a test that names one would show nothing.
fn read(text: &str) -> Option<Wanted> {
    let (name, count) = text.split_once(':').unwrap_or((text, "1"));
    match count.parse::<u64>() {
        Ok(count) if count > 0 && FAIL_POINTS.contains(&name) => {
            Some(Wanted { name: name.to_owned(), left: AtomicU64::new(count) })
        }
        _ => {
            tracing::warn!(
                "{VARIABLE} is `{text}`; expected a point and a number from one on, such as \
                 `after_effect:3`; the points are {}",
                FAIL_POINTS.join(", ")
            );
            None
        }
    }
}

fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    // The signal is on its way, and nothing may happen any more.
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_read_with_and_without_its_number() {
        let read = |text| read(text).map(|it| (it.name, it.left.into_inner()));
        assert_eq!(read("after_effect"), Some(("after_effect".into(), 1)));
        assert_eq!(read("after_effect:7"), Some(("after_effect".into(), 7)));
        assert_eq!(read("after_effect:0"), None);
        assert_eq!(read("after_effects"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn no_point_is_listed_twice() {
        let mut names = FAIL_POINTS.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAIL_POINTS.len());
    }
}
