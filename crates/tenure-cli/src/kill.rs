//! The end of every process that this program started, at once.
//!
//! The hosts kill what they started when it is dropped. This is for the second Ctrl-C, when nobody
//! waits for anything to be dropped any more.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashSet;
use std::time::Duration;

/// A tree that grows faster than it is cut is given up on.
const MOST_ROUNDS: usize = 16;

/// How long the supervisor may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Kills everything that descends from this process, or that carries its mark.
pub(crate) fn kill_descendants() {
    // The supervisor knows of every process; what is left below are those that it did not start.
    tenure_hosts::end_all(PATIENCE);
    let own = std::process::id();
    // The hosts mark what they start, so that what left its parents is found too.
    let mark = format!("TENURE_PROCESS={own}-");
    let mut killed = HashSet::new();
    for _ in 0..MOST_ROUNDS {
        let all = processes();
        let mut ours: HashSet<u32> = HashSet::from([own]);
        ours.extend(all.iter().filter(|it| is_marked(it.pid, &mark)).map(|it| it.pid));
        loop {
            let before = ours.len();
            let children = all.iter().filter(|it| ours.contains(&it.parent)).map(|it| it.pid);
            ours.extend(children.collect::<Vec<_>>());
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

fn is_marked(pid: u32, mark: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|all| all.split(|byte| *byte == 0).any(|it| it.starts_with(mark.as_bytes())))
}
