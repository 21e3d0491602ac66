//! The keeper of one tree of processes: the parent of its root, and of every orphan in it.

use super::serve::{drain, number, wait_a_moment};
use super::wire::{Order, TERMINATE, Tag, message};
use crate::tree;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{WaitOptions, WaitStatus, wait};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tenure_sandbox::{Forked, child_signals, enter, exit_now, fork};

/// The most time that is spent on killing what does not die.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many names for a temporary folder are tried.
const TRIES: u128 = 16;

/// Starts the process that it is told of and keeps its tree, until the program lets go of it or is gone. `given` are
/// the process's three streams and the socket to the program.
pub(super) fn keep(given: Vec<OwnedFd>) -> ! {
    let Ok([stdin, stdout, stderr, tree]) = <[OwnedFd; 4]>::try_from(given) else { exit_now(1) };
    let own = rustix::process::getpid();
    let _ = rustix::process::set_child_subreaper(Some(own));
    let _ = rustix::thread::set_name(c"tenure-keeper");
    let mut tree = UnixStream::from(tree);
    let Ok(signals) = child_signals() else { exit_now(1) };
    let Ok(mut order) = Order::read(&mut tree) else { exit_now(1) };
    let temporary = own_folder(&mut order);
    if let Some(pid) = start(&mut tree, order, [stdin, stdout, stderr]) {
        watch(&mut tree, &signals, pid);
    }
    sweep(&signals);
    if let Some(temporary) = temporary {
        let _ = fs::remove_dir_all(temporary);
    }
    exit_now(0)
}

/// Makes the folder for temporary files, beneath the one that the rules name.
fn own_folder(order: &mut Order) -> Option<PathBuf> {
    let rules = order.rules.as_mut()?;
    let parent = rules.temporary.take()?;
    let pid = number(rustix::process::getpid());
    // Numbers of processes repeat, and another user may have made a name that can be guessed: one that is there is
    // never taken.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut names = (0..TRIES).map(|more| parent.join(format!("tenure-{pid}-{:x}", since + more)));
    // Without one it writes no temporary files.
    let folder = names.find(|name| fs::DirBuilder::new().mode(0o700).create(name).is_ok())?;
    rules.temporary = Some(folder.clone());
    Some(folder)
}

/// Starts the process and says so, or why not.
fn start(tree: &mut UnixStream, order: Order, streams: [OwnedFd; 3]) -> Option<u32> {
    let Ok((mut heard, told)) = io::pipe() else { exit_now(1) };
    let pid = match fork() {
        Ok(Forked::Child) => {
            drop(heard);
            run(order, streams, told)
        }
        Ok(Forked::Parent(pid)) => pid,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or_default();
            let _ = tree.write_all(&message(Tag::Refused, errno));
            return None;
        }
    };
    drop((told, streams));
    // The pipe is closed by the start of the program.
    let mut failed = Vec::new();
    let _ = heard.read_to_end(&mut failed);
    if failed.is_empty() {
        let _ = tree.write_all(&message(Tag::Started, pid.cast_signed()));
        return Some(pid);
    }
    let _ = tree.write_all(&failed);
    None
}

/// Becomes the process. What keeps it from that goes to `told`.
fn run(order: Order, [stdin, stdout, stderr]: [OwnedFd; 3], mut told: io::PipeWriter) -> ! {
    let _ = rustix::process::setsid();
    let mut command = Command::new(&order.program);
    command.args(&order.args).env_clear().envs(order.variables).current_dir(&order.dir);
    command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    if let Some(rules) = &order.rules {
        match enter(rules) {
            Ok(entered) => set_temporary(&mut command, entered.temporary.as_deref()),
            Err(why) => {
                let length = i32::try_from(why.len()).unwrap_or_default();
                let _ = told.write_all(&message(Tag::Unconfined, length));
                let _ = told.write_all(why.as_bytes());
                exit_now(127)
            }
        }
    }
    let error = command.exec();
    let _ = told.write_all(&message(Tag::Refused, error.raw_os_error().unwrap_or_default()));
    exit_now(127)
}

fn set_temporary(command: &mut Command, folder: Option<&Path>) {
    if let Some(folder) = folder {
        command.env("TMPDIR", folder).env_remove("TEMP").env_remove("TMP");
    }
}

/// Reaps the tree and tells of its root's end, until the program lets go.
fn watch(tree: &mut UnixStream, signals: &OwnedFd, root: u32) {
    let mut is_alive = true;
    loop {
        let mut ready = [PollFd::new(&*tree, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        if poll(&mut ready, None).is_err() {
            continue;
        }
        let is_told = !ready[0].revents().is_empty();
        drain(signals);
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if number(pid) == root {
                is_alive = false;
                let _ = tree.write_all(&told(status));
            }
        }
        if is_told {
            let mut byte = [0];
            match tree.read(&mut byte) {
                Ok(1) if byte[0] == TERMINATE && is_alive => tree::terminate_group(root),
                Ok(1) => {}
                _ => return,
            }
        }
    }
}

fn told(status: WaitStatus) -> [u8; super::wire::MESSAGE] {
    match status.exit_status() {
        Some(code) => message(Tag::Exited, code),
        None => message(Tag::Signalled, status.terminating_signal().unwrap_or_default()),
    }
}

/// Kills the tree. Whatever its processes did to leave it, this process is the nearest ancestor that takes orphans.
fn sweep(signals: &OwnedFd) {
    let since = Instant::now();
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let is_done = wait(WaitOptions::NOHANG).is_err();
        if is_done || since.elapsed() > PATIENCE {
            return;
        }
        tree::kill_all_but(&Default::default());
        wait_a_moment(signals);
        drain(signals);
    }
}
