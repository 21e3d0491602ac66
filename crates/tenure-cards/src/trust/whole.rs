//! A virtual environment as a whole: every file in it, by its contents.

use super::UNREADABLE;
use super::digest::{sha256_hex, sha256_of};
use super::environment::CACHE;
use super::python::{Marks, Rest, SKIPPED, is_checked, marks};
use crate::project::Project;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The most bytes that are read, the small files first: sources come before large libraries.
const MOST_BYTES: u64 = 256 << 20;
/// The most files and folders that are looked at.
const MOST_LOOKED: usize = 1_000_000;

/// A hash over a virtual environment, and what it covers.
pub(super) struct Whole {
    pub(super) sha256: String,
    extent: Covered,
}

/// The extent of a hash.
enum Covered {
    All,
    /// Some files are known by their sizes and times alone.
    LargestByMarks,
    /// The folder leads out of the project, to here.
    Outside(PathBuf),
}

impl Whole {
    /// Returns the extent in words.
    pub(super) fn claim(&self) -> String {
        match &self.extent {
            Covered::All => "every file in it but compiled caches".to_owned(),
            Covered::LargestByMarks => {
                "every file in it but compiled caches, the largest by their sizes and times alone"
                    .to_owned()
            }
            Covered::Outside(real) => {
                format!("which is {}, outside the project: by its path alone", real.display())
            }
        }
    }
}

/// Returns a hash over every file of a virtual environment. Executes nothing.
///
/// Compiled code in a cache that Python holds against its source is left out: Python writes it whenever it likes. A
/// link that leads out of the project counts by where it leads, and so does an environment that is outside.
pub(super) fn hash_of(venv: &Path, project: &Project) -> Whole {
    let venv = venv.canonicalize().unwrap_or_else(|_| venv.to_owned());
    if !venv.starts_with(&project.root) {
        let sha256 = sha256_hex(venv.as_os_str().as_encoded_bytes());
        return Whole { sha256, extent: Covered::Outside(venv) };
    }
    let (mut files, mut lines) = (Vec::new(), BTreeMap::new());
    let mut seen = BTreeSet::from([venv.clone()]);
    let mut open = vec![venv.clone()];
    let mut looked = 0;
    while let Some(folder) = open.pop() {
        let is_cache = folder.file_name().is_some_and(|name| name == CACHE);
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            looked += 1;
            let path = entry.path();
            if looked > MOST_LOOKED {
                // Never the same: what is not looked at cannot be known.
                lines.insert(path, Rest::Unknown.sha256());
                open.clear();
                break;
            }
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let real = match is_link {
                true => path.canonicalize().unwrap_or_else(|_| path.clone()),
                false => path.clone(),
            };
            if is_link {
                // Where it leads decides what is imported by its name.
                lines.insert(path, format!("-> {}", project.relative(&real)));
            }
            if !real.starts_with(&project.root) {
                continue;
            }
            if real.is_dir() {
                // A link may lead to the project itself.
                let is_skipped = SKIPPED.iter().any(|name| real.ends_with(name));
                if !is_skipped && seen.insert(real.clone()) {
                    open.push(real);
                }
            } else if !(is_cache && is_checked(&real)) {
                let size = real.metadata().map_or(0, |meta| meta.len());
                files.push((size, real));
            }
        }
    }
    files.sort();
    let mut room = MOST_BYTES;
    let mut extent = Covered::All;
    for (size, path) in files {
        let hash = match room.checked_sub(size) {
            Some(left) => {
                room = left;
                remembered(&path)
            }
            None => {
                room = 0;
                extent = Covered::LargestByMarks;
                marks(&path)
            }
        };
        lines.insert(path, hash);
    }
    let line = |(path, hash): (&PathBuf, &String)| {
        format!("{:?} {hash}\n", path.strip_prefix(&venv).unwrap_or(path))
    };
    let text: String = lines.iter().map(line).collect();
    Whole { sha256: sha256_hex(text.as_bytes()), extent }
}

/// The hash of a file's contents, which are read again only if its marks are others.
fn remembered(path: &Path) -> String {
    static KNOWN: Mutex<Option<HashMap<PathBuf, (Marks, String)>>> = Mutex::new(None);
    let now = Marks::of(path);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let (Some((marks, hash)), Some(now)) = (known.get(path), &now)
        && marks == now
    {
        return hash.clone();
    }
    let hash = sha256_of(path).unwrap_or_else(|_| UNREADABLE.into());
    if let Some(now) = now {
        known.insert(path.to_owned(), (now, hash.clone()));
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A project with a virtual environment that has a package with a compiled cache.
    fn project() -> (tempfile::TempDir, Project, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fs::write(dir.path().join("tenure.toml"), "").expect("written");
        let project = Project::find(dir.path());
        let package = project.root.join(".venv/lib/python3.12/site-packages/pkg");
        fs::create_dir_all(package.join(CACHE)).expect("made");
        fs::write(package.join("deep.py"), "x = 1\n").expect("written");
        fs::write(package.join("data.json"), "{}").expect("written");
        fs::write(package.join(CACHE).join("deep.cpython-312.pyc"), [0; 32]).expect("written");
        (dir, project, package)
    }

    #[test]
    fn a_file_deep_in_a_package_counts_and_a_cache_that_python_writes_does_not() {
        let (_dir, project, package) = project();
        let hash = || hash_of(&project.root.join(".venv"), &project).sha256;
        let before = hash();
        assert_eq!(hash(), before);
        let unchecked = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        fs::write(package.join(CACHE).join("deep.cpython-312.pyc"), [0; 40]).expect("written");
        assert_eq!(hash(), before);
        fs::write(package.join(CACHE).join("deep.cpython-313.pyc"), unchecked).expect("written");
        assert_ne!(hash(), before, "code that nothing is held against");
        fs::remove_file(package.join(CACHE).join("deep.cpython-313.pyc")).expect("removed");
        for (file, text) in [("deep.py", "x = 2\n"), ("data.json", "[]"), ("new.sh", "")] {
            let was = hash();
            fs::write(package.join(file), text).expect("written");
            assert_ne!(hash(), was, "{file}");
        }
        let was = hash();
        fs::remove_file(package.join("data.json")).expect("removed");
        assert_ne!(hash(), was);
    }

    #[test]
    fn links_are_followed_once_and_not_out_of_the_project() {
        let (_dir, project, package) = project();
        let venv = project.root.join(".venv");
        std::os::unix::fs::symlink("lib", venv.join("lib64")).expect("linked");
        std::os::unix::fs::symlink("/", package.join("all")).expect("linked");
        let before = hash_of(&venv, &project).sha256;
        fs::remove_file(package.join("all")).expect("removed");
        std::os::unix::fs::symlink("/usr", package.join("all")).expect("linked");
        assert_ne!(hash_of(&venv, &project).sha256, before);
    }

    #[test]
    fn an_environment_that_is_elsewhere_is_not_claimed_to_be_hashed() {
        let (_dir, project, package) = project();
        let inside = hash_of(&project.root.join(".venv"), &project);
        assert_eq!(inside.claim(), "every file in it but compiled caches");
        let elsewhere = tempfile::tempdir().expect("a temporary folder");
        let linked = project.root.join("linked");
        std::os::unix::fs::symlink(elsewhere.path(), &linked).expect("linked");
        let found = hash_of(&linked, &project);
        assert!(
            found.claim().contains("outside the project: by its path alone"),
            "{}",
            found.claim()
        );
        // A name that leads to a package that is there already is another name.
        std::os::unix::fs::symlink(&package, project.root.join(".venv/again")).expect("linked");
        assert_ne!(hash_of(&project.root.join(".venv"), &project).sha256, inside.sha256);
    }
}
