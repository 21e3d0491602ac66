//! The end of every process that this program started, at once.
//!
//! The hosts kill what they started when it is dropped. This is for the second Ctrl-C, when nobody
//! waits for anything to be dropped any more. What the supervisor started ends a moment after the program, by its
//! keepers; to kill those would leave what they keep.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashSet;

/// A tree that grows faster than it is cut is given up on.
const MOST_ROUNDS: usize = 16;

/// Kills everything that descends from this process and not from the supervisor.
pub(crate) fn kill_descendants() {
    let supervisor = tenure_hosts::supervisor_id();
    let own = std::process::id();
    let mut killed = HashSet::new();
    for _ in 0..MOST_ROUNDS {
        let all = processes();
        let mut ours: HashSet<u32> = HashSet::from([own]);
        loop {
            let before = ours.len();
            let children = all.iter().filter(|it| ours.contains(&it.parent)).map(|it| it.pid);
            let children: Vec<u32> = children.filter(|pid| Some(*pid) != supervisor).collect();
            ours.extend(children);
            if ours.len() == before {
                break;
            }
        }
        let new: Vec<u32> =
            ours.into_iter().filter(|pid| *pid != own && killed.insert(*pid)).collect();
        if new.is_empty() {
            return;
        }
        for pid in new {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // The usual error is that it has ended in the meantime.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

struct Process {
    pid: u32,
    parent: u32,
}

fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let behind = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(&stat[behind..]).ok()?;
        let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(Process { pid, parent })
    })
    .collect()
}
