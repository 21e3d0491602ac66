//! The start of a Python of the project: the interpreter, and what the virtual environment around it has run.

use super::digest::{sha256_hex, sha256_of};
use super::python::{Rest, added_folders, entries, importable, is_importable, marks};
use super::{Item, ItemKind, UNREADABLE, whole};
use crate::project::Project;
use crate::source::read_bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where Python keeps what it compiled.
pub(super) const CACHE: &str = "__pycache__";

/// The extent to which a virtual environment is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The files that run whenever its Python starts: often, and before each start.
    Start,
    /// Every file, for a person who is asked to trust it.
    Whole,
}

/// An interpreter or another program that the project brings along, and the virtual environment
/// that it belongs to.
pub(super) fn program(path: &Path, kind: ItemKind, project: &Project, extent: Extent) -> Vec<Item> {
    let mut what = project.relative(path);
    let target = path.canonicalize().ok();
    let sha256 = match &target {
        // What the system brings along is not the project's. It counts by its path and its version.
        Some(target) if !target.starts_with(&project.root) => {
            if *target != path {
                what = format!("{what} -> {}", target.display());
            }
            if let Some(version) = version_in(target) {
                what = format!("{what} (version {version})");
            }
            None
        }
        _ => Some(sha256_of(path).unwrap_or_else(|_| UNREADABLE.into())),
    };
    let mut items = vec![Item { kind, what, sha256, used_by: Vec::new() }];
    if let Some(folder) = environment_of(path) {
        let mut what = project.relative(folder);
        let mut hash = environment(path, folder, project);
        if extent == Extent::Whole {
            let found = whole::hash_of(folder, project);
            what = format!("{what}, {}", found.claim());
            hash = sha256_hex(format!("{hash}\n{}", found.sha256).as_bytes());
        }
        let unread = path_files(&site_packages(folder)).find(|file| path_lines(file).is_none());
        if let Some(name) = unread.as_deref().and_then(Path::file_name) {
            let name = name.to_string_lossy();
            what = format!("{what}, asked about each time: {name} is larger than 1 MiB or no file");
        }
        items.push(Item { kind: ItemKind::Venv, what, sha256: Some(hash), used_by: Vec::new() });
    }
    items
}

/// The version in the path of a program, as in `/opt/cpython-3.12.3/bin/python3.12`. Nothing is run to know it.
fn version_in(target: &Path) -> Option<String> {
    let parts: Vec<_> =
        target.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    let versions =
        parts.iter().flat_map(|part| part.split(|c: char| !c.is_ascii_digit() && c != '.'));
    let versions = versions.map(|text| text.trim_matches('.'));
    let version =
        versions.filter(|text| text.contains('.')).max_by_key(|text| text.matches('.').count());
    version.map(str::to_owned)
}

/// The virtual environment that an interpreter belongs to.
pub(super) fn environment_of(interpreter: &Path) -> Option<&Path> {
    let folder = interpreter.parent().and_then(Path::parent);
    folder.filter(|folder| folder.join("pyvenv.cfg").is_file())
}

/// Returns the files and folders of an interpreter: itself, and the virtual environment that it belongs to.
pub(crate) fn interpreter_files(interpreter: &Path) -> Vec<PathBuf> {
    let folder = environment_of(interpreter).map(Path::to_owned);
    [Some(interpreter.to_owned()), folder].into_iter().flatten().collect()
}

/// Returns what stands for an interpreter and all that it runs at its start, by file, as it is now. Executes nothing.
///
/// It is what [`program`] says, file by file, and the caches of what is imported at the start: nothing holds those
/// against their sources but Python itself, by a time and a size that anyone can write.
pub(super) fn start_of(interpreter: &Path, project: &Project) -> BTreeMap<String, String> {
    let target = interpreter.canonicalize().unwrap_or_else(|_| interpreter.to_owned());
    let mut all = BTreeMap::new();
    let mut own = None;
    if target.starts_with(&project.root) {
        own = Some(sha256_of(&target).unwrap_or_else(|_| UNREADABLE.into()));
    }
    let own = own.unwrap_or_else(|| target.display().to_string());
    all.insert(project.relative(interpreter), own);
    let Some(folder) = environment_of(interpreter) else { return all };
    for (file, hash) in started(interpreter, folder, project) {
        for cache in caches(&file) {
            all.insert(project.relative(&cache), marks(&cache));
        }
        all.insert(project.relative(&file), hash);
    }
    all
}

/// A hash over what a virtual environment runs whenever its Python starts, and what says where its
/// library is.
fn environment(interpreter: &Path, folder: &Path, project: &Project) -> String {
    let mut text = String::new();
    for (file, hash) in started(interpreter, folder, project) {
        let name = file.strip_prefix(folder).or_else(|_| file.strip_prefix(&project.root));
        let name = name.unwrap_or(&file).to_string_lossy().into_owned();
        text.push_str(&format!("{name:?} {hash}\n"));
    }
    sha256_hex(text.as_bytes())
}

/// The files and packages that an interpreter reads and runs at its start, with hashes of their contents.
fn started(
    interpreter: &Path,
    folder: &Path,
    project: &Project,
) -> impl Iterator<Item = (PathBuf, String)> {
    let mut files = BTreeSet::from([folder.join("pyvenv.cfg")]);
    // Beside it, these decide where its library is before anything else is read.
    let beside = entries(interpreter.parent().unwrap_or(folder));
    files.extend(beside.into_iter().filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with("._pth") || matches!(&*name, "pyvenv.cfg" | "pybuilddir.txt")
    }));
    let sites = site_packages(folder);
    let (mut named, mut unread) = (BTreeSet::new(), BTreeSet::new());
    for path in path_files(&sites) {
        match path_lines(&path) {
            Some(lines) => named.extend(imported_by(&lines).map(str::to_owned)),
            None => drop(unread.insert(path.clone())),
        }
        files.insert(path);
    }
    for site in sites.into_iter().chain(added_folders(project)) {
        files.extend(entries(&site).into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let module = name.split('.').next().unwrap_or_default();
            let is_named = is_custom(module) || named.contains(module);
            is_named && (path.is_dir() || is_importable(path))
        }));
    }
    files.into_iter().map(move |file| {
        let hash = match file.is_dir() {
            true => all_of(&file),
            // What it has imported is not known, so it is never the same.
            false if unread.contains(&file) => Rest::Unknown.sha256(),
            false => sha256_of(&file).unwrap_or_else(|_| UNREADABLE.into()),
        };
        (file, hash)
    })
}

/// The folders of a virtual environment that packages are installed in.
pub(super) fn site_packages(folder: &Path) -> Vec<PathBuf> {
    let versions = ["lib", "lib64"].into_iter().flat_map(|lib| entries(&folder.join(lib)));
    versions.map(|version| version.join("site-packages")).collect()
}

/// The files of a virtual environment that add folders to what is imported, and import modules at the start.
pub(super) fn path_files(sites: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let files = sites.iter().flat_map(|site| entries(site));
    files.filter(|path| path.extension().is_some_and(|end| end == "pth"))
}

/// Whether Python imports a module of this name at its start, if there is one.
fn is_custom(module: &str) -> bool {
    matches!(module, "sitecustomize" | "usercustomize")
}

/// The lines of a `.pth` file; none if it is no regular file, or larger than files are read.
pub(super) fn path_lines(file: &Path) -> Option<Vec<String>> {
    let text = read_bytes(file).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some(text.trim_start_matches('\u{feff}').lines().map(str::to_owned).collect())
}

/// Returns every name in the lines of a `.pth` file that are executed: those that are modules are imported at the start.
fn imported_by(lines: &[String]) -> impl Iterator<Item = &str> {
    let is_run = |line: &&String| line.starts_with("import ") || line.starts_with("import\t");
    let lines = lines.iter().filter(is_run);
    let names = lines.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
    names.filter(|name| !name.is_empty())
}

/// The compiled code that Python may take in place of a source, or of those of a package.
fn caches(file: &Path) -> Vec<PathBuf> {
    if file.is_dir() {
        let inner = entries(file).into_iter();
        let inner = inner.filter(|path| path.is_dir() && !path.is_symlink());
        let (own, deeper): (Vec<_>, Vec<_>) =
            inner.partition(|path| path.file_name().is_some_and(|name| name == CACHE));
        let own = own.iter().flat_map(|cache| entries(cache));
        return own.chain(deeper.iter().flat_map(|folder| caches(folder))).collect();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let cached = entries(&file.with_file_name(CACHE)).into_iter();
    let is_own = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(&*stem).is_some_and(|rest| rest.starts_with('.'))
    };
    cached.filter(is_own).collect()
}

/// A hash over everything importable in a folder.
fn all_of(folder: &Path) -> String {
    let found = importable(&BTreeSet::from([folder.to_owned()]), None, folder);
    let line = |file: &PathBuf| {
        let hash = sha256_of(file).unwrap_or_else(|_| UNREADABLE.into());
        format!("{:?} {hash}\n", file.strip_prefix(folder).unwrap_or(file))
    };
    let mut text: String = found.files.iter().map(line).collect();
    text.extend(found.rest.map(Rest::sha256));
    sha256_hex(text.as_bytes())
}
