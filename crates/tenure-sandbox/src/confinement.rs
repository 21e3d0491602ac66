//! The rules that a process runs under.

use std::path::PathBuf;

/// The rules of one process, with every path absolute and free of links, but for links that are protected themselves.
///
/// What a rule names and is not there is passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// The folders and files that it may write.
    pub writable: Vec<PathBuf>,
    /// The files and folders beneath those that it may not write, rename or remove.
    pub protected: Vec<PathBuf>,
    /// The files and folders that it may not read.
    pub hidden: Vec<PathBuf>,
    /// Folders that it reads as they are, and whose changes are its own: they end with it.
    pub copied: Vec<PathBuf>,
    /// The folder for temporary files that is its own.
    pub temporary: Option<PathBuf>,
    /// What has to be seen although it is in a folder for temporary files.
    pub needed: Vec<PathBuf>,
    /// Whether it has the network of its user.
    pub network: Network,
    /// The most processes of its tree, where they can be counted: in a namespace of users.
    pub processes: u64,
    /// The most memory of each process of its tree, in bytes.
    pub memory: u64,
    /// Whether it is not started where the kernel cannot do all of this.
    pub is_required: bool,
}

/// The network of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// That of the user; a shell that a model drives has none.
    #[default]
    Users,
    /// That of the user, also for a shell that a model drives.
    Granted,
    /// None: neither sockets of the internet nor of the host's loopback.
    None,
}
