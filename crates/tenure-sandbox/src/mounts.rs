//! Files by a mount namespace.

use crate::abilities::succeeds;
use crate::confinement::{Confinement, Network};
use crate::devices::{self, SHARED_MEMORY, memory_folder};
use crate::privileges::Counted;
use crate::system::{self, Namespaces, make_read_only};
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind_recursive,
    mount_change, move_mount, open_tree,
};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The folder that programs write temporary files to if they ask no one.
const TEMPORARY: &str = "/tmp";

/// Puts the process into a namespace of mounts, as root if it may, else in a namespace of users.
///
/// A network that is not to be had is left with it.
pub(crate) fn leave(network: Network) -> io::Result<Counted> {
    let network = network == Network::None;
    if system::unshare(Namespaces { user: false, network }).is_ok() {
        return Ok(Counted::User);
    }
    // A namespace of users cannot be left again, and where its maps are refused its owner has no rights in it. So it is
    // tried elsewhere first.
    if !succeeds(|| own_users(network).is_ok())? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    own_users(network)?;
    Ok(Counted::in_namespace())
}

/// Puts the process into a namespace of users in which it is who it was.
fn own_users(network: bool) -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // Only who may be looked at may say who it is.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?;
    system::unshare(Namespaces { user: true, network })?;
    // A namespace that has not heard of them has no rights to give to groups, which a mapping of one's own needs.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1", user = user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1", group = group.as_raw()))
}

/// The mounts of a process that are taken and not yet put: nothing is lost where they cannot be.
pub(crate) struct Taken {
    writable: Vec<(PathBuf, OwnedFd)>,
    devices: Vec<(PathBuf, OwnedFd)>,
    /// The memory that all processes share, for a project that is in there.
    shared: Option<OwnedFd>,
    temporary: Option<PathBuf>,
}

/// Takes what may be written and makes all read-only, in a namespace that was left to. A kernel that refuses mounts
/// refuses the first of this, and nothing has changed for the process then.
pub(crate) fn take(rules: &Confinement) -> io::Result<Taken> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Taken while they are as they were: a mount beneath that is read-only stays so.
    let mut writable = Vec::new();
    for path in rules.writable.iter().filter(|path| path.exists()) {
        writable.push((path.clone(), taken(path)?));
    }
    let mut temporary = None;
    if let Some(path) = &rules.temporary {
        let place = temporary_place(rules, path);
        writable.push((place.clone(), taken(path)?));
        temporary = Some(place);
    }
    let mut devices = Vec::new();
    for path in devices::granted() {
        devices.push((path.clone(), taken(&path)?));
    }
    make_read_only(Path::new("/"))?;
    let mut needed = rules.needed.iter().chain(&rules.writable).chain(&temporary);
    let is_inside = needed.any(|path| path.starts_with(SHARED_MEMORY));
    let shared = is_inside.then(|| taken(Path::new(SHARED_MEMORY))).transpose()?;
    Ok(Taken { writable, devices, shared, temporary })
}

/// Mounts what the rules say, and returns where the temporary folder is.
///
/// Everything is read-only but what may be written; beneath that, what is protected is again, and hangs in folders
/// that cannot be renamed. What is hidden is empty, and so are the sockets of others.
pub(crate) fn arrange(
    rules: &Confinement,
    taken: Taken,
    sockets: &[PathBuf],
) -> io::Result<Option<PathBuf>> {
    let Taken { writable, devices, shared, temporary } = taken;
    devices::replace(devices, shared)?;
    for (path, tree) in writable {
        put(&tree, &path)?;
    }
    protect(rules)?;
    for path in &rules.copied {
        if let Some(upper) = &rules.temporary {
            copy(path, upper, temporary.as_deref().unwrap_or(upper))?;
        }
    }
    hide(&rules.hidden)?;
    hide(sockets)?;
    Ok(temporary)
}

/// Takes a mount with all beneath it, to be put elsewhere.
fn taken(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(CWD, path, flags)?)
}

/// Puts a mount that was taken.
pub(crate) fn put(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Returns where the process finds its temporary folder: in place of everyone's, unless something that it needs is
/// beneath that.
fn temporary_place(rules: &Confinement, own: &Path) -> PathBuf {
    let needed = rules.needed.iter().chain(&rules.writable);
    let is_free = !needed.into_iter().any(|path| path.starts_with(TEMPORARY));
    let is_folder = fs::symlink_metadata(TEMPORARY).is_ok_and(|found| found.is_dir());
    if is_free && is_folder { PathBuf::from(TEMPORARY) } else { own.to_owned() }
}

/// Makes what is protected read-only, and every folder on the way to it a mount: one that could be renamed would be
/// renamed, and another put in its place.
fn protect(rules: &Confinement) -> io::Result<()> {
    let mut mounted: BTreeSet<&Path> = rules.writable.iter().map(PathBuf::as_path).collect();
    let mut protected: Vec<&Path> = rules.protected.iter().map(PathBuf::as_path).collect();
    protected.sort_unstable();
    protected.dedup();
    let mut last: Option<&Path> = None;
    for path in protected {
        let beneath = |folder: &&PathBuf| path.starts_with(folder);
        let Some(root) =
            rules.writable.iter().filter(beneath).max_by_key(|it| it.as_os_str().len())
        else {
            continue;
        };
        let is_inside = last.is_some_and(|folder| path.starts_with(folder));
        if is_inside || fs::symlink_metadata(path).is_err() {
            continue;
        }
        let between = path.ancestors().skip(1).take_while(|folder| *folder != root.as_path());
        let mut between: Vec<&Path> = between.collect();
        between.reverse();
        for folder in between {
            if mounted.insert(folder) {
                mount_bind_recursive(folder, folder)?;
            }
        }
        if path.is_symlink() {
            pin(path);
            continue;
        }
        mount_bind_recursive(path, path)?;
        make_read_only(path)?;
        last = Some(path);
    }
    Ok(())
}

/// Makes a mount of a link, which can then be neither removed nor replaced. Where a kernel cannot, the link stays as it
/// is: what it leads to is protected by itself.
fn pin(link: &Path) {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let _ = open_tree(CWD, link, flags).map(|tree| put(&tree, link));
}

/// Lays a folder of the process's own over one that it may read. Where the kernel or the file system cannot, the
/// folder stays read-only.
fn copy(path: &Path, own: &Path, seen: &Path) -> io::Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    let name = path.to_string_lossy().replace(['/', ',', ':', '\\'], "_");
    let (upper, work) = (seen.join(format!(".upper{name}")), seen.join(format!(".work{name}")));
    let is_odd = |path: &Path| path.to_string_lossy().contains([',', ':', '\\']);
    if is_odd(path) || is_odd(own) {
        return Ok(());
    }
    fs::create_dir_all(&upper)?;
    fs::create_dir_all(&work)?;
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr",
        path.display(),
        upper.display(),
        work.display()
    );
    let options = std::ffi::CString::new(options)?;
    // Not every file system can be the upper one; what is read-only then can be granted by name.
    let _ = mount("overlay", path, "overlay", MountFlags::NOSUID, options.as_c_str());
    Ok(())
}

/// Covers files and folders with nothing.
fn hide(hidden: &[PathBuf]) -> io::Result<()> {
    for path in hidden {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => memory_folder(path, c"size=4k,mode=000,nr_inodes=1")?,
            Ok(found) if !found.is_symlink() => match mount_bind_recursive("/dev/null", path) {
                // A socket may be gone by now, and nothing is left to hide then.
                Err(_) if fs::symlink_metadata(path).is_err() => continue,
                done => done?,
            },
            _ => continue,
        }
        make_read_only(path)?;
    }
    Ok(())
}
