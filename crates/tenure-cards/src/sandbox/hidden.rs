//! The places that no confined process of this user sees.

use crate::check::Loaded;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Keys, sessions and the like beneath a home: what no hook or tool reads.
const HIDDEN: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".oci",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/doctl",
    ".config/tenure",
    ".local/share/tenure",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".password-store",
    ".docker/config.json",
    ".git-credentials",
    ".netrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
];
/// Sockets by which a process could have others started that are not confined, or speak as its user: container
/// engines, machines, the service manager, its buses.
const SOCKETS: &[&str] = &[
    "/run/docker.sock",
    "/run/podman",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/libvirt",
    "/run/snapd.socket",
    "/run/dbus",
    "/run/systemd/private",
    "/run/systemd/io.systemd.Manager",
    "/run/screen",
    "/var/lib/incus/unix.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
];
/// Variables that hold the path of a file or socket that is the user's own.
const NAMED: &[&str] = &["TENURE_STORE_KEY_FILE", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"];
/// Variables that hold an address, in which such a path may be.
const ADDRESSES: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "GPG_AGENT_INFO",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "TMUX",
];
/// The ends of the files that SQLite and the lock have beside a store.
const BESIDE: &[&str] = &["", "-wal", "-shm", "-journal", ".driver"];

/// Returns the places that are hidden from every confined process of this user, those that are there.
pub fn hidden_places() -> Vec<PathBuf> {
    let home = variable("HOME");
    let beneath_home = home.iter().flat_map(|home| HIDDEN.iter().map(|place| home.join(place)));
    let own = ["XDG_DATA_HOME", "XDG_CONFIG_HOME"].into_iter().filter_map(variable);
    let own = own.map(|folder| folder.join("tenure"));
    let named = NAMED.iter().copied().filter_map(variable);
    let addressed = ADDRESSES.iter().filter_map(|name| in_address(&std::env::var(name).ok()?));
    let user = rustix::process::getuid().as_raw();
    let runtime = ["/run/user/", "/tmp/tmux-"].map(|begin| PathBuf::from(format!("{begin}{user}")));
    let sockets = SOCKETS.iter().map(PathBuf::from).chain(runtime);
    let all = beneath_home.chain(own).chain(named).chain(addressed).chain(sockets);
    let all: BTreeSet<PathBuf> = all.filter_map(|place| place.canonicalize().ok()).collect();
    all.into_iter().collect()
}

/// The path of a variable, if it is set to one.
pub(super) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The path in `unix:path=/run/bus,guid=1`, `unix:///run/engine.sock` or `/tmp/agent:7:1`.
fn in_address(address: &str) -> Option<PathBuf> {
    let path = &address[address.find('/')?..];
    let path = path.split([',', ':', ';']).next()?.trim_start_matches("//");
    Some(Path::new("/").join(path.trim_start_matches('/')))
}

/// Returns a store with all that SQLite and its lock have beside it, whether that is there yet or not.
pub fn store_files(store: &Path) -> Vec<PathBuf> {
    let real = store.canonicalize().ok().or_else(|| to_come(store));
    let real = real.unwrap_or_else(|| store.to_owned()).into_os_string();
    let beside = |end: &&str| {
        let mut path = real.clone();
        path.push(end);
        path.into()
    };
    BESIDE.iter().map(beside).collect()
}

/// Returns what is hidden for a project beside that: its store, and the files of the user's keys.
pub(super) fn of_project(loaded: &Loaded) -> Vec<PathBuf> {
    let root = &loaded.project.root;
    let mut all = vec![root.join(".tenure")];
    let store = loaded.project.config.store.path.as_deref();
    match store.and_then(|file| Some((file, file.parent()?))) {
        Some((file, folder)) if root.starts_with(folder) => all.extend(store_files(file)),
        Some((_, folder)) => all.push(folder.to_owned()),
        None => {}
    }
    all.extend(loaded.user.path.clone());
    all.extend(loaded.user.models.key_files().map(Path::to_owned));
    all.iter().filter_map(|place| place.canonicalize().ok()).collect()
}

/// The place of a file that is not there yet.
fn to_come(place: &Path) -> Option<PathBuf> {
    // The folder of a bare name has none.
    let place = std::path::absolute(place).ok()?;
    Some(place.parent()?.canonicalize().ok()?.join(place.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_socket_is_found_in_its_address() {
        for (address, expected) in [
            ("unix:path=/run/user/1000/bus", Some("/run/user/1000/bus")),
            ("unix:path=/tmp/dbus-x,guid=0f", Some("/tmp/dbus-x")),
            ("unix:///run/user/1000/docker.sock", Some("/run/user/1000/docker.sock")),
            ("/tmp/tmux-1000/default,3120,0", Some("/tmp/tmux-1000/default")),
            ("/home/me/.gnupg/S.gpg-agent:0:1", Some("/home/me/.gnupg/S.gpg-agent")),
            ("unix:abstract=x", None),
        ] {
            assert_eq!(in_address(address), expected.map(PathBuf::from), "{address}");
        }
    }
}
