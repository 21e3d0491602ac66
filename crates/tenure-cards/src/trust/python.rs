//! What Python would run beside the files that cards name: its interpreter, and what can be
//! imported.

use super::digest::{sha256_hex, sha256_of};
use super::{Item, ItemKind, UNREADABLE};
use crate::project::{Project, plain};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Folders that are not searched: they hold what the tools of a project keep there. Every other one,
/// `node_modules` too, is a package to a Python that is told to import it.
const SKIPPED: &[&str] = &[".git", ".tenure"];
/// What Python can import, by suffix.
const IMPORTABLE: &[&str] = &["py", "pyc", "so", "pyd"];
/// The most files that are read.
pub(super) const MOST_FILES: usize = 5000;
/// The most files and folders that are looked at.
const MOST_LOOKED: usize = 200_000;
static FRESH: AtomicU64 = AtomicU64::new(0);
/// Where Python keeps what it compiled.
const CACHE: &str = "__pycache__";

/// The interpreter that runs hooks and tools, if the project brings it along or names it: that of
/// `tenure.toml`, of its `.venv` or `venv`, or of the active environment if that is in the project.
/// Executes nothing.
pub fn own_interpreter(project: &Project) -> Option<PathBuf> {
    let root = &project.root;
    if let Some(path) = &project.config.interpreter {
        return Some(plain(&root.join(path)));
    }
    let own = [".venv", "venv"].map(|name| root.join(name));
    let active = std::env::var_os("VIRTUAL_ENV").filter(|it| !it.is_empty()).map(PathBuf::from);
    let pythons = own.into_iter().chain(active).map(|folder| folder.join("bin").join("python"));
    match pythons.into_iter().find(|python| python.exists()) {
        Some(python) => beneath(&python, project),
        None => on_path(&["python3", "python"], project),
    }
}

/// The program that one of these bare names means, if the search path leads into the project. A relative folder
/// of it is never searched.
pub(super) fn on_path(names: &[&str], project: &Project) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut programs = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let found = programs.find(|program| program.is_file())?;
    beneath(&found, project)
}

/// The file as the project knows it, if its folder is in the project. A link in a project counts,
/// wherever it leads.
fn beneath(file: &Path, project: &Project) -> Option<PathBuf> {
    let folder = file.parent()?.canonicalize().ok()?;
    folder.starts_with(&project.root).then(|| folder.join(file.file_name().unwrap_or_default()))
}

/// An interpreter or another program that the project brings along, and the virtual environment
/// that it belongs to.
pub(super) fn program(path: &Path, kind: ItemKind, project: &Project) -> Vec<Item> {
    let mut what = project.relative(path);
    let target = path.canonicalize().ok();
    let sha256 = match &target {
        // What the system brings along is not the project's, and changes with the system.
        Some(target) if !target.starts_with(&project.root) => {
            if path.starts_with(&project.root) {
                what = format!("{what} -> {}", target.display());
            }
            None
        }
        _ => Some(sha256_of(path).unwrap_or_else(|_| UNREADABLE.into())),
    };
    let mut items = vec![Item { kind, what, sha256, used_by: Vec::new() }];
    if let Some(folder) = environment_of(path) {
        let what = format!("{}, with every package in it", project.relative(folder));
        let sha256 = Some(environment(folder));
        items.push(Item { kind: ItemKind::Venv, what, sha256, used_by: Vec::new() });
    }
    items
}

/// The virtual environment that an interpreter belongs to.
pub(super) fn environment_of(interpreter: &Path) -> Option<&Path> {
    let folder = interpreter.parent().and_then(Path::parent);
    folder.filter(|folder| folder.join("pyvenv.cfg").is_file())
}

/// A hash over what a virtual environment runs whenever its Python starts, and what says where its
/// library is. The packages in it are too many to be read.
fn environment(folder: &Path) -> String {
    let mut files = BTreeSet::from([folder.join("pyvenv.cfg")]);
    for lib in ["lib", "lib64"] {
        for version in entries(&folder.join(lib)) {
            files.extend(entries(&version.join("site-packages")).into_iter().filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let is_custom = ["sitecustomize", "usercustomize"].iter().any(|custom| {
                    name.strip_prefix(custom)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                });
                is_custom || name.ends_with(".pth")
            }));
        }
    }
    let mut text = String::new();
    for file in files {
        let name = file.strip_prefix(folder).unwrap_or(&file).to_string_lossy().into_owned();
        let hash = match file.is_dir() {
            true => all_of(&file),
            false => sha256_of(&file).unwrap_or_else(|_| UNREADABLE.into()),
        };
        text.push_str(&format!("{name:?} {hash}\n"));
    }
    sha256_hex(text.as_bytes())
}

/// A hash over everything importable in a folder.
fn all_of(folder: &Path) -> String {
    let found = importable(&BTreeSet::from([folder.to_owned()]), None);
    let line = |file: &PathBuf| {
        let hash = sha256_of(file).unwrap_or_else(|_| UNREADABLE.into());
        format!("{:?} {hash}\n", file.strip_prefix(folder).unwrap_or(file))
    };
    let mut text: String = found.files.iter().map(line).collect();
    text.extend(found.rest.map(Rest::sha256));
    sha256_hex(text.as_bytes())
}

/// Files that are too many to be read.
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
    /// The others, if there are any.
    pub(super) rest: Option<Rest>,
    /// Whether the virtual environment was among the folders, and left out.
    pub(super) has_venv: bool,
}

/// Every importable file beneath the folders, except in the virtual environment `venv`, which is an
/// item of its own.
pub(super) fn importable(folders: &BTreeSet<PathBuf>, venv: Option<&Path>) -> Importable {
    let mut found = Importable::default();
    let venv = venv.and_then(|venv| venv.canonicalize().ok());
    let mut seen = BTreeSet::new();
    let mut open: Vec<PathBuf> = folders.iter().rev().cloned().collect();
    let mut rest = String::new();
    let mut looked = 0;
    while let Some(folder) = open.pop() {
        // Links are followed as Python follows them, each folder once.
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if venv.as_ref() == Some(&real) {
            found.has_venv = true;
            continue;
        }
        if !seen.insert(real) {
            continue;
        }
        let is_cache = folder.file_name().is_some_and(|name| name == CACHE);
        let mut deeper = Vec::new();
        for path in entries(&folder) {
            looked += 1;
            if looked > MOST_LOOKED {
                found.rest = Some(Rest::Unknown);
                return found;
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
                rest.push_str(&format!("{path:?} {}\n", marks(&path)));
            }
        }
        open.extend(deeper.into_iter().rev());
    }
    found.rest = (!rest.is_empty()).then(|| Rest::Hashed(sha256_hex(rest.as_bytes())));
    found
}

fn is_importable(path: &Path) -> bool {
    let end = path.extension();
    end.is_some_and(|end| IMPORTABLE.iter().any(|known| end.eq_ignore_ascii_case(known)))
}

/// What is known of a file without reading it.
fn marks(path: &Path) -> String {
    let Ok(meta) = path.metadata() else { return UNREADABLE.into() };
    #[cfg(unix)]
    let more = {
        use std::os::unix::fs::MetadataExt;
        (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec())
    };
    #[cfg(not(unix))]
    let more = ();
    format!("{} {:?} {more:?}", meta.len(), meta.modified().ok())
}

/// Whether this is compiled code of a cache that Python would not take as it is.
///
/// The worker reads no cache that lies in the project. A Python that a command starts does: it
/// compares most of that code with the source, which is in the inventory, but takes the code that
/// says of itself that nobody need compare it. What is in a cache and no entry of it (`x.py`,
/// `x.pyc`: a module of the package `__pycache__`) is like any other file.
fn is_checked(path: &Path) -> bool {
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
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    paths.sort();
    paths
}
