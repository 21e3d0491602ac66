//! The calls of the system that no crate wraps safely.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The two sides of a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The one that forked, with the id of its child.
    Parent(u32),
    /// The child.
    Child,
}

/// Forks a process that has one thread.
///
/// The child goes on where its parent was, with copies of all that it had. It ends by [`exit_now`], so that nothing
/// of its parent is run or written twice.
///
/// # Errors
///
/// If the process has more than one thread: a lock that another thread holds would be held in the child for ever.
pub fn fork() -> io::Result<Forked> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process that has threads cannot be forked"));
    }
    // SAFETY: there is no other thread, so every lock and the allocator are as the child may use them.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid.unsigned_abs())),
    }
}

/// Ends the process without running anything of it.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: it takes no pointer and does not return.
    unsafe { libc::_exit(code) }
}

/// Returns a descriptor that can be read whenever a child of this process has ended.
///
/// The signal is blocked from then on; `exec` by the standard library unblocks it.
pub fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by the first call, and outlives the two that read it.
    let raw = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to no one else.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Closes every descriptor from `first` on.
pub fn close_from(first: u32) {
    // SAFETY: it takes no pointer. Owners of these descriptors are copies of another process's, and never dropped.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, u32::MAX, 0);
    }
}

/// The namespaces that a process may leave its parent's for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Namespaces {
    pub(crate) user: bool,
    pub(crate) network: bool,
}

/// Puts the process into a mount namespace of its own, and into these.
pub(crate) fn unshare(namespaces: Namespaces) -> io::Result<()> {
    let mut flags = libc::CLONE_NEWNS;
    if namespaces.user {
        flags |= libc::CLONE_NEWUSER;
    }
    if namespaces.network {
        flags |= libc::CLONE_NEWNET;
    }
    // SAFETY: it takes no pointer, and unshares neither memory nor descriptors.
    if unsafe { libc::unshare(flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Makes a mount and all beneath it read-only.
pub(crate) fn make_read_only(path: &Path) -> io::Result<()> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: both pointers outlive the call, and the size is that of the second.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
