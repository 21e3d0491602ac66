//! Files that a test writes.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary folder of files, which is removed when this is dropped.
///
/// Names are relative to the folder, and the folders that they name are made. Everything here panics if the disk says
/// no: a test cannot go on then.
///
/// ```
/// use tenure_testkit::TestFolder;
///
/// let folder = TestFolder::new(&[("cards/a.md", "You are kind.\n")]);
/// folder.write("bin/check", "#!/bin/sh\necho '{}'\n");
/// # #[cfg(unix)]
/// folder.make_executable("bin/check");
/// assert!(folder.path().join("cards/a.md").is_file());
/// assert_eq!(folder.read("log.txt"), "", "what is not there is empty");
/// ```
#[derive(Debug)]
pub struct TestFolder(TempDir);

impl TestFolder {
    /// Creates a folder with these files: name and text of each.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder can be made"));
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, in place of one that is there, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        let parent = path.parent().expect("a file is in a folder");
        fs::create_dir_all(parent).expect("a folder can be made");
        fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Makes a file executable.
    #[cfg(unix)]
    pub fn make_executable(&self, name: &str) {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.path().join(name), mode).expect("the file is ours");
    }

    /// Returns the text of a file, empty if there is none.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }
}
