//! Everything that descends from a process, and its end.
//!
//! A group alone is not enough: a process leaves it with `setsid`, and a parent that has ended is
//! no link any more. So a descendant is known by any of three things: its group, its chain of
//! parents, or the mark in its environment.

use rustix::process::{Pid, Signal, kill_process_group};

/// The variable that marks whatever was started for one call.
pub(crate) const MARK: &str = "TENURE_PROCESS";

/// Kills what is in the group of this leader.
pub(crate) fn kill_group(leader: u32) {
    if let Some(leader) = group_id(leader) {
        // The usual error is that nobody is left in it.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// Asks what is in the group of this leader to end.
pub(crate) fn terminate_group(leader: u32) {
    if let Some(leader) = group_id(leader) {
        let _ = kill_process_group(leader, Signal::TERM);
    }
}

/// A leader's id as its group's. Never our own, and never one that means "everybody".
fn group_id(leader: u32) -> Option<Pid> {
    let raw = i32::try_from(leader).ok().filter(|raw| *raw > 1)?;
    let pid = Pid::from_raw(raw)?;
    (rustix::process::getpgrp() != pid).then_some(pid)
}

/// A process for ever: its id, and when it started.
pub type Victim = (u32, u64);

#[cfg(not(target_os = "linux"))]
pub(crate) fn kill_tree(root: u32, _mark: &str) -> Vec<Victim> {
    kill_group(root);
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn kill_marked(_mark: &str, _started: u64) -> Vec<Victim> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn are_gone(_victims: &[Victim], _group: u32, _started: u64) -> bool {
    true
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn start_of(_pid: u32) -> u64 {
    0
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn own_start() -> u64 {
    0
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    are_gone, kill_all_but, kill_marked, kill_orphans, kill_tree, own_start, parent_of, start_of,
};

#[cfg(target_os = "linux")]
mod linux {
    use super::{MARK, Victim, kill_group};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    use std::collections::{HashMap, HashSet};

    /// A tree that grows faster than it is cut gives up its last shoots to the group's own end.
    const MOST_ROUNDS: usize = 32;

    /// What the system says of a process.
    #[derive(Clone, Copy)]
    struct Stat {
        pid: u32,
        parent: u32,
        group: u32,
        /// When it started. Together with its id this names a process for ever.
        start: u64,
        /// Whether it has ended and only waits to be reaped.
        is_dead: bool,
    }

    /// Kills `root`, its group and everything that descends from it.
    ///
    /// It looks before it kills, since a chain of parents breaks where one of them ends, and looks
    /// again until it finds nobody new. Returns whom it killed.
    pub(crate) fn kill_tree(root: u32, mark: &str) -> Vec<Victim> {
        let Some(started) = stat(root).map(|stat| stat.start) else {
            kill_group(root);
            return Vec::new();
        };
        cut(Some(root), mark, started)
    }

    /// Kills what has the mark, and everything that descends from it. The root itself, which
    /// started then, has been reaped: its number may be somebody else's by now. Returns whom it killed.
    pub(crate) fn kill_marked(mark: &str, started: u64) -> Vec<Victim> {
        cut(None, mark, started)
    }

    /// Kills whatever descends from this process, but for these, which may have descendants. Returns how many were
    /// alive.
    pub(crate) fn kill_all_but(spared: &HashSet<u32>) -> usize {
        let all: Vec<_> = processes().collect();
        let found = beneath(std::process::id(), &all, &HashSet::new());
        let alive = found.iter().filter(|it| !it.is_dead && !spared.contains(&it.pid));
        alive.map(|it| kill_one(it)).count()
    }

    /// Kills whatever descends from this process and not from one of these.
    pub(crate) fn kill_orphans(keepers: &HashSet<u32>) {
        let all: Vec<_> = processes().collect();
        beneath(std::process::id(), &all, keepers).iter().for_each(|it| kill_one(it));
    }

    /// Returns those of `all` that descend from a process, but for these and what descends from them.
    fn beneath<'a>(root: u32, all: &'a [Stat], without: &HashSet<u32>) -> Vec<&'a Stat> {
        let mut parents = HashSet::from([root]);
        let mut found: Vec<&Stat> = Vec::new();
        loop {
            let is_new = |it: &&Stat| {
                parents.contains(&it.parent)
                    && !parents.contains(&it.pid)
                    && !without.contains(&it.pid)
            };
            let new: Vec<&Stat> = all.iter().filter(is_new).collect();
            if new.is_empty() {
                return found;
            }
            parents.extend(new.iter().map(|it| it.pid));
            found.extend(new);
        }
    }

    /// Whether these have ended, and what is in the group of a leader who started then. One that
    /// was killed ends a moment later, and cannot be known by its mark in between.
    pub(crate) fn are_gone(victims: &[Victim], group: u32, started: u64) -> bool {
        let lives = |(pid, start): &Victim| {
            stat(*pid).is_some_and(|now| now.start == *start && !now.is_dead)
        };
        let mut all = processes().filter(|it| it.start >= started && !it.is_dead);
        !victims.iter().any(lives) && !all.any(|it| it.group == group)
    }

    fn cut(root: Option<u32>, mark: &str, started: u64) -> Vec<Victim> {
        let mark = format!("{MARK}={mark}");
        let mut strangers = HashSet::new();
        let mut killed: HashSet<Victim> = HashSet::new();
        for _ in 0..MOST_ROUNDS {
            let found = family(root, started, &mark, &killed, &mut strangers);
            if let Some(root) = root {
                kill_group(root);
            }
            let new: Vec<_> =
                found.into_iter().filter(|it| killed.insert((it.pid, it.start))).collect();
            for stat in &new {
                if Some(stat.group) != root {
                    kill_one(stat);
                }
            }
            if new.is_empty() {
                break;
            }
        }
        killed.into_iter().collect()
    }

    /// Those alive that belong to `root`, itself included, or that have the mark.
    ///
    /// `strangers` remembers whose environment has been looked at in vain.
    fn family(
        root: Option<u32>,
        started: u64,
        mark: &str,
        killed: &HashSet<Victim>,
        strangers: &mut HashSet<Victim>,
    ) -> Vec<Stat> {
        // Nothing older than the root descends from it.
        let all: Vec<_> = processes().filter(|it| it.start >= started).collect();
        let by_pid: HashMap<u32, &Stat> = all.iter().map(|it| (it.pid, it)).collect();
        let mut ours: HashSet<u32> = root.into_iter().collect();
        ours.extend(all.iter().filter(|it| Some(it.group) == root).map(|it| it.pid));
        let lives = |id: &&Victim| by_pid.get(&id.0).is_some_and(|it| it.start == id.1);
        ours.extend(killed.iter().filter(lives).map(|(pid, _)| *pid));
        for it in &all {
            let id = (it.pid, it.start);
            if !it.is_dead && !ours.contains(&it.pid) && !strangers.contains(&id) {
                if is_marked(it.pid, mark) {
                    ours.insert(it.pid);
                } else {
                    strangers.insert(id);
                }
            }
        }
        loop {
            let is_child = |it: &&Stat| ours.contains(&it.parent) && !ours.contains(&it.pid);
            let children: Vec<u32> = all.iter().filter(is_child).map(|it| it.pid).collect();
            if children.is_empty() {
                break;
            }
            ours.extend(children);
        }
        let own = std::process::id();
        ours.iter()
            .filter(|pid| **pid > 1 && **pid != own)
            .filter_map(|pid| by_pid.get(pid).map(|it| **it))
            .filter(|it| !it.is_dead)
            .collect()
    }

    /// Kills exactly the process that was looked at, not one that has its id by now.
    fn kill_one(target: &Stat) {
        let Some(pid) = i32::try_from(target.pid).ok().and_then(Pid::from_raw) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if stat(target.pid).is_some_and(|now| now.start == target.start) {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }

    fn processes() -> impl Iterator<Item = Stat> {
        std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(stat)
    }

    /// A process as `/proc/<pid>/stat` has it. Its name, in parentheses, may hold anything.
    fn stat(pid: u32) -> Option<Stat> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let behind_name = text.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(&text[behind_name..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X" | "x");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        // The start is field 22, and the group, just read, is field 5.
        let start = fields.nth(16)?.parse().ok()?;
        Some(Stat { pid, parent, group, start, is_dead })
    }

    fn is_marked(pid: u32, mark: &str) -> bool {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|it| it == mark.as_bytes()))
    }

    /// When a process started, or 0 if nobody knows.
    pub(crate) fn start_of(pid: u32) -> u64 {
        stat(pid).map_or(0, |stat| stat.start)
    }

    /// The process that started another one, or that adopted it.
    pub(crate) fn parent_of(pid: u32) -> Option<u32> {
        stat(pid).map(|stat| stat.parent)
    }

    /// When this process started.
    pub(crate) fn own_start() -> u64 {
        static START: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        *START.get_or_init(|| start_of(std::process::id()))
    }
}
