//! Sockets of other processes that have a path.
//!
//! A namespace of the network does not keep a process from them: a path is a path. So those that are there when a
//! process is started are hidden from one that has no network.

use crate::confinement::Confinement;
use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The list of the kernel, of the network namespace that the process is in.
const LISTED: &str = "/proc/net/unix";
/// The folder in which services have folders of their own.
const SERVICES: &str = "/run";

/// Returns the places to hide: each socket that is bound to a path now, and of a service all of its folder.
pub(crate) fn bound(rules: &Confinement) -> Vec<PathBuf> {
    let listed = std::fs::read(LISTED).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed);
    let is_needed = |folder: &Path| {
        rules.needed.iter().chain(&rules.writable).any(|path| path.starts_with(folder))
    };
    let places = listed.lines().filter_map(path_of).filter_map(|path| path.canonicalize().ok());
    let sockets = places.filter(|path| path.metadata().is_ok_and(|it| it.file_type().is_socket()));
    let places = sockets.map(|socket| match service(&socket) {
        Some(folder) if !is_needed(&folder) => folder,
        _ => socket,
    });
    places.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The path in a line of the list; none if the socket has no name, or one that is no path.
fn path_of(line: &str) -> Option<&Path> {
    let at = line.find(" /")?;
    Some(Path::new(&line[at + 1..]))
}

/// The folder of the service that a socket belongs to.
fn service(socket: &Path) -> Option<PathBuf> {
    let within = socket.strip_prefix(SERVICES).ok()?;
    let mut names = within.components();
    let first = names.next()?;
    names.next()?;
    Some(Path::new(SERVICES).join(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_has_its_path_at_the_end() {
        let line = "0000000066155689: 00000002 00000000 00010000 0001 01 21309 /run/my bus/socket";
        assert_eq!(path_of(line), Some(Path::new("/run/my bus/socket")));
        assert_eq!(path_of("000: 00000003 00000000 00000000 0001 03 2129974"), None);
        assert_eq!(path_of("000: 00000003 00000000 00000000 0001 03 2129974 @name"), None);
    }

    #[test]
    fn a_service_is_hidden_with_its_folder() {
        for (socket, expected) in [
            ("/run/dbus/system_bus_socket", Some("/run/dbus")),
            ("/run/user/1000/bus", Some("/run/user")),
            ("/run/docker.sock", None),
            ("/tmp/s", None),
        ] {
            assert_eq!(service(Path::new(socket)), expected.map(PathBuf::from), "{socket}");
        }
    }
}
