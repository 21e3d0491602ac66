//! Capabilities and limits.

use crate::confinement::Confinement;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

/// What root keeps: rights over files and over whom its processes run as.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Takes every other capability from what this process will run. A kernel that has not heard of one says so.
pub(crate) fn drop_capabilities() {
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        // Who is not root has none to drop, and gets none by running a program.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let _ = rustix::thread::clear_ambient_capability_set();
}

/// The first Linux that counts the processes of a namespace of users by themselves.
const COUNTS_TREES: (u32, u32) = (5, 14);

/// Whose processes count for a limit on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Those of the tree: it has a namespace of users of its own.
    Tree,
    /// All of the user's, so that a limit would be one on what else the user runs.
    User,
}

impl Counted {
    /// Returns whose processes this kernel counts in a namespace of users.
    pub(crate) fn in_namespace() -> Self {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        if version(&release) >= COUNTS_TREES { Self::Tree } else { Self::User }
    }
}

/// The first two numbers of a kernel's name; zeros if it begins with none.
fn version(release: &str) -> (u32, u32) {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|it| it.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Sets the limits on processes and memory, and has no core written. One that is lower already stays.
pub(crate) fn limit(rules: &Confinement, counted: Counted) {
    let processes = match counted {
        Counted::Tree => rules.processes,
        Counted::User => u64::MAX,
    };
    for (resource, most) in
        [(Resource::Nproc, processes), (Resource::Data, rules.memory), (Resource::Core, 0)]
    {
        let now = getrlimit(resource);
        let most = now.maximum.map_or(most, |maximum| maximum.min(most));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        // To lower a limit is refused to no one.
        let _ = setrlimit(resource, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_counts_all_of_the_user_has_no_limit_on_a_tree() {
        for (release, counts) in [
            ("5.13.19-generic", false),
            ("5.4.0-150", false),
            ("5.14.0", true),
            ("6.1.0-rc1", true),
            ("odd", false),
        ] {
            assert_eq!(version(release) >= COUNTS_TREES, counts, "{release}");
        }
    }
}
