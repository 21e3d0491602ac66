//! The program's own process: its descriptors, and its privacy.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use std::ffi::CString;
use tenure_hosts::PROCESS_NAME;

/// The descriptors that are asked for. Each agent with hooks in Python takes four of them.
const DESCRIPTORS: u64 = 1 << 16;

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
}
