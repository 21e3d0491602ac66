//! The supervisor's own process.

use super::keeper;
use super::wire::{PROBE, SPAWN, Tag, message};
use crate::tree;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{DumpableBehavior, Pid, WaitOptions, set_dumpable_behavior, wait};
use std::collections::HashSet;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use tenure_sandbox::{Abilities, Forked, child_signals, exit_now, fork};

/// The most time that is spent on ending what will not end.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked whether all has ended.
const LOOK: Duration = Duration::from_millis(2);

/// Serves requests until the program is gone, and then ends everything that was started.
pub(super) fn serve(control: OwnedFd) -> ! {
    // A signal to the program's group is not for those who clean up behind it.
    let _ = rustix::process::setsid();
    // It has the environment of the program, keys included, and so has every keeper.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let own = rustix::process::getpid();
    let _ = rustix::process::set_child_subreaper(Some(own));
    let _ = rustix::thread::set_name(c"tenure-supervis");
    let Ok(signals) = child_signals() else { exit_now(1) };
    let mut keepers = HashSet::new();
    let mut abilities = None;
    loop {
        let mut ready =
            [PollFd::new(&control, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        let (asked, ended) = (ready[0].revents(), ready[1].revents());
        if !ended.is_empty() {
            drain(&signals);
            reap(&mut keepers);
            // A child that is no keeper was left by one that was killed.
            if has_children_but(&keepers) {
                tree::kill_orphans(&keepers);
            }
        }
        if asked.is_empty() {
            continue;
        }
        let Some((request, mut given)) = receive(&control) else { break };
        match request {
            SPAWN if given.len() == 4 => match fork() {
                Ok(Forked::Child) => {
                    drop((control, signals));
                    keeper::keep(given)
                }
                Ok(Forked::Parent(pid)) => {
                    keepers.insert(pid);
                }
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(Errno::AGAIN.raw_os_error());
                    let _ = rustix::io::write(&given[3], &message(Tag::Refused, errno));
                }
            },
            PROBE if given.len() == 1 => {
                let found =
                    *abilities.get_or_insert_with(|| Abilities::probe().unwrap_or_default());
                let _ = rustix::io::write(&given[0], &[found.bits()]);
            }
            _ => {}
        }
        given.clear();
    }
    end(&signals, &mut keepers)
}

/// Takes a request with the descriptors that came along; `None` if the program is gone.
fn receive(control: &OwnedFd) -> Option<(u8, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(control, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            received => break received.ok()?,
        }
    };
    let mut given = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            given.extend(rights);
        }
    }
    (received.bytes > 0).then_some((byte[0], given))
}

/// Empties a descriptor of signals.
pub(super) fn drain(signals: &OwnedFd) {
    let mut buffer = [0; 1024];
    while rustix::io::read(signals, &mut buffer).is_ok_and(|read| read > 0) {}
}

/// Waits until something can be read, or for a moment.
pub(super) fn wait_a_moment(signals: &impl AsFd) {
    let moment = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&moment));
}

fn reap(keepers: &mut HashSet<u32>) {
    while let Ok(Some((pid, _))) = wait(WaitOptions::NOHANG) {
        keepers.remove(&number(pid));
    }
}

pub(super) fn number(pid: Pid) -> u32 {
    pid.as_raw_pid().unsigned_abs()
}

/// Whether this process has a child that is none of these, which is looked at without walking all processes.
fn has_children_but(keepers: &HashSet<u32>) -> bool {
    let own = std::process::id();
    match std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")) {
        Ok(children) => {
            let mut children = children.split_ascii_whitespace().filter_map(|it| it.parse().ok());
            children.any(|pid: u32| !keepers.contains(&pid))
        }
        Err(_) => true,
    }
}

/// Ends everything. Keepers end by themselves: each of them sees that the program is gone. They are waited for, so that
/// no other process has to reap them.
fn end(signals: &OwnedFd, keepers: &mut HashSet<u32>) -> ! {
    let since = Instant::now();
    while since.elapsed() < PATIENCE && (tree::kill_all_but(keepers) > 0 || !keepers.is_empty()) {
        wait_a_moment(signals);
        drain(signals);
        reap(keepers);
    }
    exit_now(0)
}
