//! What this kernel can do.

#[cfg(target_os = "linux")]
use crate::{calls, confinement::Confinement, confinement::Network, listed, mounts, system};
#[cfg(target_os = "linux")]
use std::{io, path::Path};

/// What this kernel lets this user do, found out by trying it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Mount namespaces: exceptions beneath a folder, folders of one's own.
    pub mounts: bool,
    /// Namespaces of the network.
    pub network: bool,
    /// Landlock.
    pub landlock: bool,
    /// Filters of calls of the system.
    pub seccomp: bool,
}

impl Abilities {
    /// Tries each in a process of its own, which has to be forked from one with one thread.
    #[cfg(target_os = "linux")]
    pub fn probe() -> io::Result<Self> {
        let rules = Confinement::default();
        Ok(Self {
            mounts: succeeds(|| {
                mounts::leave(Network::Users).is_ok()
                    && system::make_read_only(Path::new("/")).is_ok()
            })?,
            network: succeeds(|| mounts::leave(Network::None).is_ok())?,
            landlock: succeeds(|| {
                let _ = rustix::thread::set_no_new_privs(true);
                listed::restrict(&rules, None, listed::Before::Mounts) == Ok(true)
            })?,
            seccomp: succeeds(|| calls::refuse(Network::Users) == Ok(true))?,
        })
    }

    /// These as bits, for a message.
    pub fn bits(self) -> u8 {
        let all = [self.mounts, self.network, self.landlock, self.seccomp];
        all.iter().enumerate().map(|(at, is)| u8::from(*is) << at).sum()
    }

    /// Those that the bits stand for.
    pub fn from_bits(bits: u8) -> Self {
        let has = |at: u8| bits & (1 << at) != 0;
        Self { mounts: has(0), network: has(1), landlock: has(2), seccomp: has(3) }
    }
}

/// Returns `true` if something works in a process of its own, forked from one with one thread.
#[cfg(target_os = "linux")]
pub(crate) fn succeeds(what: impl FnOnce() -> bool) -> io::Result<bool> {
    match system::fork()? {
        system::Forked::Child => system::exit_now(i32::from(!what())),
        system::Forked::Parent(pid) => {
            let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            let ended = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())?;
            Ok(ended.is_some_and(|(_, status)| status.exit_status() == Some(0)))
        }
    }
}
