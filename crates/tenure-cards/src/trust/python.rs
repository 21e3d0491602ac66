//! What Python would run beside the files that cards name: which interpreter, and what can be
//! imported.

use super::UNREADABLE;
use super::digest::sha256_hex;
use super::environment::{CACHE, environment_of, path_files, path_lines, site_packages};
pub(crate) use crate::limit::MAX_IMPORTABLE as MOST_FILES;
use crate::limit::{MAX_LOOKED_AT, MAX_OUTSIDE};
use crate::project::{Project, plain};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tenure_hosts::find_program;

/// Folders that are not searched: they hold what the tools of a project keep there. Every other one,
/// `node_modules` too, is a package to a Python that is told to import it.
pub(super) const SKIPPED: &[&str] = &[".git", ".tenure"];
/// What Python can import, by suffix.
const IMPORTABLE: &[&str] = &["py", "pyc", "so", "pyd"];
static FRESH: AtomicU64 = AtomicU64::new(0);

/// The interpreter that runs hooks and tools, if the project brings it along or names it: that of
/// `tenure.toml`, of its `.venv` or `venv`, or of the active environment if that is in the project.
/// Executes nothing.
pub fn own_interpreter(project: &Project) -> Option<PathBuf> {
    let found = found_interpreter(project)?;
    match &project.config.interpreter {
        Some(_) => Some(found),
        None => beneath(&found, project),
    }
}

/// The interpreter that runs hooks and tools, by the path that it is found at. Executes nothing.
pub(super) fn found_interpreter(project: &Project) -> Option<PathBuf> {
    let root = &project.root;
    if let Some(path) = &project.config.interpreter {
        return Some(plain(&root.join(path)));
    }
    let own = [".venv", "venv"].map(|name| root.join(name));
    let active = std::env::var_os("VIRTUAL_ENV").filter(|it| !it.is_empty()).map(PathBuf::from);
    let pythons = own.into_iter().chain(active).map(|folder| folder.join("bin").join("python"));
    let mut pythons = pythons.filter(|python| python.exists());
    pythons.next().or_else(|| find_program(&["python3", "python"], &std::env::var_os("PATH")?))
}

/// The program that one of these bare names means, if the search path leads into the project.
pub(super) fn on_path(names: &[&str], project: &Project) -> Option<PathBuf> {
    beneath(&find_program(names, &std::env::var_os("PATH")?)?, project)
}

/// The file as the project knows it, if its folder is in the project. A link in a project counts,
/// wherever it leads.
fn beneath(file: &Path, project: &Project) -> Option<PathBuf> {
    let folder = file.parent()?.canonicalize().ok()?;
    folder.starts_with(&project.root).then(|| folder.join(file.file_name().unwrap_or_default()))
}

/// The folders of the project that its own virtual environment adds to what is imported: packages that are developed
/// in it.
pub(crate) fn added_folders(project: &Project) -> Vec<PathBuf> {
    let interpreter = own_interpreter(project);
    let Some(venv) = interpreter.as_deref().and_then(environment_of) else { return Vec::new() };
    let sites = site_packages(venv);
    let lines = path_files(&sites).filter_map(|file| path_lines(&file)).flatten();
    let folders = lines.filter_map(|line| Path::new(line.trim()).canonicalize().ok());
    folders
        .filter(|it| it.starts_with(&project.root) && !it.starts_with(venv) && it.is_dir())
        .collect()
}

/// Files that are too many to be read.
#[derive(Clone, Debug)]
pub(super) enum Rest {
    /// A hash over their names, sizes, times and numbers on disk, of which at least one changes with
    /// whatever is done to a file.
    Hashed(String),
    /// There are more than are looked at.
    Unknown,
}

impl Rest {
    /// What stands for the contents of all of them. That of files nobody looked at is another one
    /// each time, so that they are never taken for the same as before.
    pub(super) fn sha256(self) -> String {
        match self {
            Self::Hashed(hash) => hash,
            Self::Unknown => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let fresh = FRESH.fetch_add(1, Ordering::Relaxed);
                sha256_hex(format!("{} {} {fresh}", now.as_nanos(), process::id()).as_bytes())
            }
        }
    }
}

/// Files that can be imported.
#[derive(Default)]
pub(super) struct Importable {
    /// Those that are to be read, at most [`MOST_FILES`].
    pub(super) files: BTreeSet<PathBuf>,
    /// The others, each with what changes with its contents.
    pub(super) others: Vec<(PathBuf, String)>,
    /// What stands for the contents of all others, if there are any.
    pub(super) rest: Option<Rest>,
    /// Every folder that was come to, with the one that it really is.
    pub(super) folders: Vec<(PathBuf, PathBuf)>,
    /// Whether the virtual environment was among the folders, and left out.
    pub(super) has_venv: bool,
}

/// Every importable file beneath the folders, except in the virtual environment `venv`, which is an
/// item of its own. Of what links lead to outside of `root`, no more than [`MAX_OUTSIDE`] entries are looked at: a link
/// to `/` would take as long as the whole disk.
pub(super) fn importable(
    folders: &BTreeSet<PathBuf>,
    venv: Option<&Path>,
    root: &Path,
) -> Importable {
    let mut found = Importable::default();
    let venv = venv.and_then(|venv| venv.canonicalize().ok());
    let mut seen = BTreeSet::new();
    let mut open: Vec<PathBuf> = folders.iter().rev().cloned().collect();
    let inside = |real: &Path| {
        real.starts_with(root) || folders.iter().any(|folder| real.starts_with(folder))
    };
    let (mut looked, mut looked_outside) = (0, 0);
    while let Some(folder) = open.pop() {
        // Links are followed as Python follows them, each folder once.
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if venv.as_ref() == Some(&real) {
            found.has_venv = true;
            continue;
        }
        found.folders.push((folder.clone(), real.clone()));
        if !seen.insert(real.clone()) {
            continue;
        }
        let is_outside = !inside(&real);
        if is_outside && looked_outside > MAX_OUTSIDE {
            continue;
        }
        let is_cache = folder.file_name().is_some_and(|name| name == CACHE);
        let mut deeper = Vec::new();
        for path in entries(&folder) {
            looked += 1;
            looked_outside += usize::from(is_outside);
            if looked > MAX_LOOKED_AT {
                found.rest = Some(Rest::Unknown);
                return found;
            }
            if looked_outside > MAX_OUTSIDE && is_outside {
                found.rest = Some(Rest::Unknown);
                break;
            }
            if path.is_dir() {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if !SKIPPED.contains(&&*name) {
                    deeper.push(path);
                }
                continue;
            }
            if !is_importable(&path) || is_cache && is_checked(&path) {
                continue;
            }
            if found.files.len() < MOST_FILES {
                found.files.insert(path);
            } else if !found.files.contains(&path) {
                let marks = marks(&path);
                found.others.push((path, marks));
            }
        }
        open.extend(deeper.into_iter().rev());
    }
    if found.rest.is_none() && !found.others.is_empty() {
        let line = |(path, marks): &(PathBuf, String)| format!("{path:?} {marks}\n");
        let lines: String = found.others.iter().map(line).collect();
        found.rest = Some(Rest::Hashed(sha256_hex(lines.as_bytes())));
    }
    found
}

pub(super) fn is_importable(path: &Path) -> bool {
    let end = path.extension();
    end.is_some_and(|end| IMPORTABLE.iter().any(|known| end.eq_ignore_ascii_case(known)))
}

/// The marks of a file, which are known without reading it. At least one of it changes with whatever is done to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    size: u64,
    modified: Option<SystemTime>,
    more: Numbers,
}

/// The device, the number on it, and the time of the last change, which cannot be set.
#[cfg(unix)]
type Numbers = (u64, u64, i64, i64);
#[cfg(not(unix))]
type Numbers = ();

impl Marks {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let meta = path.metadata().ok()?;
        #[cfg(unix)]
        let more = {
            use std::os::unix::fs::MetadataExt;
            (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec())
        };
        #[cfg(not(unix))]
        let more = ();
        Some(Self { size: meta.len(), modified: meta.modified().ok(), more })
    }
}

/// Returns the marks of a file as a text.
pub(super) fn marks(path: &Path) -> String {
    match Marks::of(path) {
        Some(Marks { size, modified, more }) => format!("{size} {modified:?} {more:?}"),
        None => UNREADABLE.into(),
    }
}

/// Whether this is compiled code of a cache that Python would not take as it is.
///
/// The worker reads no cache that lies in the project. A Python that a command starts does: it
/// compares most of that code with the source, which is in the inventory, but takes the code that
/// says of itself that nobody need compare it. What is in a cache and no entry of it (`x.py`,
/// `x.pyc`: a module of the package `__pycache__`) is like any other file.
pub(super) fn is_checked(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_code = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("pyc"));
    is_code && stem.contains('.') && !is_unchecked(path)
}

/// Whether this is compiled code that Python takes without looking at the source that it claims to
/// come from.
fn is_unchecked(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut head = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head[4] & 0b11 == 0b01
}

/// What is in a folder, sorted.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    paths.sort();
    paths
}
