//! The devices of a confined process: those that programs count on, and none of the machine's own.

use crate::system::make_read_only;
use rustix::mount::{MountFlags, mount};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The folder of devices.
pub(crate) const FOLDER: &str = "/dev";
/// The folder of memory that processes share.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
const TERMINALS: &str = "/dev/pts";

/// The devices of every program.
const USUAL: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// The beginnings of the names of devices that compute.
const COMPUTING: &[&str] = &["nvidia", "dri", "kfd", "dxg"];
const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Returns the devices that a process may have, those that are there.
pub(crate) fn granted() -> Vec<PathBuf> {
    let names = fs::read_dir(FOLDER).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let is_granted =
        |name: &str| USUAL.contains(&name) || COMPUTING.iter().any(|begin| name.starts_with(begin));
    let names = names.filter(|name| name.to_str().is_some_and(is_granted));
    names.map(|name| Path::new(FOLDER).join(name)).collect()
}

/// Returns the places by which a process has terminals, where they are those of all.
pub(crate) fn terminals() -> [PathBuf; 2] {
    [TERMINALS.into(), Path::new(FOLDER).join("ptmx")]
}

/// Lays a folder over that of devices which holds these alone, with terminals and shared memory of its own.
pub(crate) fn replace(devices: Vec<(PathBuf, OwnedFd)>, shared: Option<OwnedFd>) -> io::Result<()> {
    let folder = Path::new(FOLDER);
    memory_folder(folder, c"mode=755,size=64k")?;
    for (path, tree) in devices {
        if rustix::fs::fstat(&tree).is_ok_and(|found| is_folder(&found)) {
            fs::create_dir(&path)?;
        } else {
            fs::write(&path, "")?;
        }
        crate::mounts::put(&tree, &path)?;
    }
    for (name, target) in LINKS {
        symlink(target, folder.join(name))?;
    }
    fs::create_dir(TERMINALS)?;
    fs::create_dir(SHARED_MEMORY)?;
    make_read_only(folder)?;
    // Terminals of its own: into those of the user it could write what looks like a question of ours. Where they are
    // refused it has none.
    let options = c"newinstance,ptmxmode=0666,mode=620";
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let _ = mount("devpts", TERMINALS, "devpts", flags, options);
    match shared {
        Some(tree) => crate::mounts::put(&tree, Path::new(SHARED_MEMORY)),
        None => memory_folder(Path::new(SHARED_MEMORY), c"mode=1777"),
    }
}

fn is_folder(found: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir()
}

/// Mounts an empty folder.
pub(crate) fn memory_folder(path: &Path, options: &std::ffi::CStr) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount("tmpfs", path, "tmpfs", flags, options)?)
}
