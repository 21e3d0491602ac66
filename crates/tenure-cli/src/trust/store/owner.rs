//! The owner of the trust store: it counts only if no other user and no project can write it.

use anyhow::{Result, bail};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Refuses a store that is in the project whose trust it would decide.
pub(super) fn ensure_outside(store: &Path, root: &Path) -> Result<()> {
    if is_inside(store, root) {
        bail!(
            "the trust store {} is inside the project {}, so it does not count and nothing is trusted; set \
             XDG_DATA_HOME to a folder outside the project, or move the project into a folder of its own",
            store.display(),
            root.display()
        );
    }
    Ok(())
}

/// Whether a path, or what links lead to on the way to it, is in a folder.
pub(crate) fn is_inside(path: &Path, root: &Path) -> bool {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = path.ancestors().find_map(|at| at.canonicalize().ok());
    path.starts_with(root) || there.is_some_and(|at| at.starts_with(root))
}

/// Refuses a store that another user owns, or can write or replace. What is not there yet is not looked at.
pub(super) fn ensure_own(store: &Path) -> Result<()> {
    let own = rustix::process::geteuid().as_raw();
    for at in store.ancestors() {
        let Ok(meta) = at.metadata() else { continue };
        let is_ours = at == store || Some(at) == store.parent();
        let why = if meta.uid() != own && (is_ours || !is_of_system(&meta)) {
            format!("belongs to another user (uid {}, and you are {own})", meta.uid())
        } else if is_ours && meta.mode() & 0o022 != 0 || !is_ours && is_open(&meta) {
            "can be written by others".to_owned()
        } else {
            continue;
        };
        bail!(
            "the trust store {} does not count and nothing is trusted: {} {why}; look into it, then make it yours \
             alone with `chown` and `chmod go-w`, or set XDG_DATA_HOME to a folder that is",
            store.display(),
            at.display()
        );
    }
    Ok(())
}

/// Whether something belongs to root, who can do everything anyway, or to no user that is known here: in a container
/// root is one of those.
fn is_of_system(meta: &Metadata) -> bool {
    const NOBODY: u32 = 65534;
    meta.uid() == 0 || meta.uid() == NOBODY && !is_root_known()
}

/// Whether the users of this process are those of the machine.
fn is_root_known() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.lines().any(|line| line.split_whitespace().next() == Some("0"))
        && map.split_whitespace().nth(2) == Some("4294967295")
}

/// Whether others can replace what is in a folder: any user, or a group that is not the user's own.
fn is_open(meta: &Metadata) -> bool {
    const STICKY: u32 = 0o1000;
    let by_group = meta.mode() & 0o020 != 0 && meta.gid() != rustix::process::getegid().as_raw();
    let by_any = meta.mode() & 0o002 != 0;
    meta.mode() & STICKY == 0 && (by_any || by_group && meta.gid() != 0)
}
