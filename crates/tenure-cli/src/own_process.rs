//! The program's own process: its descriptors, its privacy, and the signal that limits send.

use anyhow::{Context as _, Result, bail};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use std::ffi::CString;
use std::sync::Arc;
use tenure_hosts::PROCESS_NAME;

/// The descriptors that are asked for. Each agent with hooks in Python takes four of them.
const DESCRIPTORS: u64 = 1 << 16;

/// The descriptors that a run cannot do without: the store, the runtime, its signals, and the pipes of one process.
const NEEDED: usize = 40;

/// Starts the process that ends what this one started, however this one ends.
pub(crate) fn supervise() -> Result<()> {
    tenure_hosts::supervise().context(
        "the process that would end what this one starts cannot be started; allow more open files and \
         processes, as with `ulimit -n 1024` and `ulimit -u 4096`",
    )
}

/// Prepares the process, as far as the system lets it.
///
/// Other processes of the user may neither read its memory nor open its pipes: a tool could answer in a guard's
/// place there.
pub(crate) fn prepare() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS);
    if limit.current.is_some_and(|current| current < most) {
        let raised = Rlimit { current: Some(most), maximum: limit.maximum };
        // With fewer of them fewer agents live at the same time, which those say that cannot.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // By this name what it starts knows whom it descends from, whatever the file is called.
    let _ = rustix::thread::set_name(&CString::new(PROCESS_NAME).unwrap_or_default());
    // A file that may not grow would end the program without a word. With a handler, which no child inherits, the write
    // fails instead. If there can be none it is as it was.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Fails, in words, if there are too few descriptors for a run. Libraries below panic where one is missing.
pub(crate) fn check_descriptors() -> Result<()> {
    let mut open = Vec::with_capacity(NEEDED);
    while open.len() < NEEDED {
        match std::fs::File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(error) => {
                let free = open.len();
                drop(open);
                bail!(
                    "this process can open {free} more files, and a run needs {NEEDED} ({error}); \
                     allow more of them, as with `ulimit -n 1024`"
                )
            }
        }
    }
    Ok(())
}
