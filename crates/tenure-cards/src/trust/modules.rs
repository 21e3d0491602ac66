//! The modules that hooks and tools may import, as they were when what would run was listed.

use super::UNREADABLE;
use super::digest::{sha256_hex, sha256_of};
use super::environment::environment_of;
use super::installed::Installed;
use super::python::{Rest, importable, marks, own_interpreter};
use super::start_state::PythonStart;
use crate::project::Project;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tenure_hosts::{CheckedModules, PythonFile};

/// The most bytes of sources that are kept. What is beyond is known by its hash, and read again when it is imported.
const MOST_BYTES: u64 = 32 << 20;

/// The Python files that cards name, and those that they import from elsewhere in the project.
#[derive(Debug, Default)]
pub(crate) struct ProjectPython {
    pub(crate) hooks: BTreeMap<PathBuf, Arc<PythonFile>>,
    pub(crate) reached: BTreeSet<PathBuf>,
    modules: OnceLock<Arc<Modules>>,
}

impl ProjectPython {
    pub(crate) fn new(
        hooks: BTreeMap<PathBuf, Arc<PythonFile>>,
        reached: BTreeSet<PathBuf>,
    ) -> Self {
        Self { hooks, reached, modules: OnceLock::new() }
    }

    /// Returns the modules as they were when this was first asked for: what is listed then is what runs.
    pub(crate) fn modules(&self, project: &Project) -> &Arc<Modules> {
        self.modules.get_or_init(|| Arc::new(Modules::read(self, project)))
    }
}

/// Every file that hooks and tools may import.
#[derive(Debug)]
pub(crate) struct Modules {
    /// The folders of the files that cards name.
    pub(super) folders: BTreeSet<PathBuf>,
    /// The hashes of their contents, by the paths that they were found at.
    pub(super) hashes: BTreeMap<PathBuf, String>,
    /// Those that are too many to be read, if there are any.
    pub(super) rest: Option<Rest>,
    /// Whether the virtual environment was among the folders, and left out.
    pub(super) has_venv: bool,
    /// What is known of each, by the one path that it has for those who import it.
    files: BTreeMap<PathBuf, Known>,
    links: BTreeMap<PathBuf, PathBuf>,
    /// The packages of the project's own environment.
    installed: Installed,
    /// The interpreter, and what it runs at its start.
    pub(crate) start: PythonStart,
}

/// What is known of the contents of a file.
#[derive(Clone, Debug)]
enum Known {
    Contents(Arc<[u8]>),
    Hash(String),
    /// What changes with the contents.
    Marks(String),
}

impl Modules {
    fn read(python: &ProjectPython, project: &Project) -> Self {
        let folders: BTreeSet<PathBuf> =
            python.hooks.keys().filter_map(|file| Some(file.parent()?.to_owned())).collect();
        // Before anything is hashed for the list: what changes in between is then noticed before it runs.
        let start = PythonStart::read(project);
        let interpreter = own_interpreter(project);
        let installed = Installed::read(interpreter.as_deref(), project);
        let venv = interpreter.as_deref().and_then(environment_of);
        let found = importable(&folders, venv, &project.root);
        let mut paths = Paths::new(&project.root, &found.folders);
        let mut hashes = BTreeMap::new();
        let mut files = BTreeMap::new();
        let mut room = MOST_BYTES;
        for path in found.files.iter().chain(&python.reached).chain(python.hooks.keys()) {
            if hashes.contains_key(path) {
                continue;
            }
            let (hash, known) = match python.hooks.get(path) {
                // It was read already, and this is what runs.
                Some(file) => {
                    let text = file.source().as_bytes();
                    (sha256_hex(text), Known::Contents(text.into()))
                }
                None => known(path, &mut room),
            };
            hashes.insert(path.clone(), hash);
            if is_loadable(path) {
                files.insert(paths.only(path), known);
            }
        }
        for (path, marks) in found.others.into_iter().filter(|(path, _)| is_loadable(path)) {
            files.entry(paths.only(&path)).or_insert(Known::Marks(marks));
        }
        let links = paths.links(&files);
        files.retain(|path, _| !links.contains_key(path));
        let (rest, has_venv) = (found.rest, found.has_venv);
        Self { folders, hashes, rest, has_venv, files, links, installed, start }
    }
}

impl CheckedModules for Modules {
    fn files(&self) -> Vec<&Path> {
        self.files.keys().map(PathBuf::as_path).collect()
    }

    fn links(&self) -> Vec<(&Path, &Path)> {
        self.links.iter().map(|(other, path)| (other.as_path(), path.as_path())).collect()
    }

    fn contents(&self, file: &Path) -> Result<Arc<[u8]>, String> {
        let changed =
            || "it changed since it was checked; start again to be asked about it".to_owned();
        match self.files.get(file) {
            None => Err("it was not checked".to_owned()),
            Some(Known::Contents(contents)) => Ok(contents.clone()),
            Some(Known::Hash(hash)) => {
                let contents = contents(file)?;
                (sha256_hex(&contents) == *hash).then_some(contents).ok_or_else(changed)
            }
            // Looked at before and behind the contents, so that they were not changed in between.
            Some(Known::Marks(was)) if marks(file) == *was => {
                let contents = contents(file)?;
                (marks(file) == *was).then_some(contents).ok_or_else(changed)
            }
            Some(Known::Marks(_)) => Err(changed()),
        }
    }

    fn installed(&self) -> Vec<&Path> {
        self.installed.folders()
    }

    fn check_installed(&self, file: &Path) -> Result<(), String> {
        self.installed.check(file)
    }
}

/// The hash of a file, and its contents if it is a source and there is room for them.
fn known(path: &Path, room: &mut u64) -> (String, Known) {
    let size = path.metadata().map_or(0, |meta| meta.len());
    if is_source(path)
        && size <= *room
        && let Ok(contents) = contents(path)
    {
        *room = room.saturating_sub(contents.len() as u64);
        return (sha256_hex(&contents), Known::Contents(contents));
    }
    let hash = sha256_of(path).unwrap_or_else(|_| UNREADABLE.into());
    (hash.clone(), Known::Hash(hash))
}

/// Reads a regular file: nothing here waits for a pipe.
fn contents(path: &Path) -> Result<Arc<[u8]>, String> {
    let meta = path.metadata().map_err(|error| format!("it cannot be read: {error}"))?;
    if !meta.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    std::fs::read(path).map(Arc::from).map_err(|error| format!("it cannot be read: {error}"))
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "py")
}

/// Whether a worker may load it: bytecode is never run.
fn is_loadable(path: &Path) -> bool {
    is_source(path) || path.extension().is_some_and(|end| end == "so")
}

/// The one path that every folder and every file has, however many links lead there: the real one, or one that is
/// beneath the project.
struct Paths<'a> {
    root: &'a Path,
    real: HashMap<PathBuf, PathBuf>,
    links: BTreeMap<PathBuf, PathBuf>,
}

impl<'a> Paths<'a> {
    /// `folders` are paths of folders, each with its real one.
    fn new(root: &'a Path, folders: &[(PathBuf, PathBuf)]) -> Self {
        let mut paths = Self { root, real: HashMap::new(), links: BTreeMap::new() };
        for (folder, real) in folders {
            paths.folder(folder, real);
        }
        paths
    }

    fn folder(&mut self, folder: &Path, real: &Path) -> PathBuf {
        let only = self.real.entry(real.to_owned()).or_insert_with(|| {
            if real.starts_with(self.root) { real.to_owned() } else { folder.to_owned() }
        });
        if only != folder {
            self.links.insert(folder.to_owned(), only.clone());
        }
        only.clone()
    }

    fn only(&mut self, file: &Path) -> PathBuf {
        let folder = file.parent().unwrap_or(self.root);
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.folder(folder, &real).join(file.file_name().unwrap_or_default())
    }

    /// Every link, also those of files to others of these.
    fn links(mut self, files: &BTreeMap<PathBuf, Known>) -> BTreeMap<PathBuf, PathBuf> {
        for file in files.keys() {
            if let Ok(real) = file.canonicalize()
                && real != *file
                && files.contains_key(&real)
            {
                self.links.insert(file.clone(), real);
            }
        }
        self.links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A project with a hook in `hooks`.
    fn project() -> (TempDir, Project, ProjectPython) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(dir.path().join("hooks")).expect("made");
        fs::write(dir.path().join("tenure.toml"), "").expect("written");
        let project = Project::find(dir.path());
        let path = project.root.join("hooks/hook.py");
        fs::write(&path, "on disk").expect("written");
        let hook = Arc::new(PythonFile::new(&path, "as it was read"));
        let python = ProjectPython::new(BTreeMap::from([(path, hook)]), BTreeSet::new());
        (dir, project, python)
    }

    #[test]
    fn what_is_hashed_is_what_is_given_and_a_hook_is_what_was_read() {
        let (_dir, project, python) = project();
        let helper = project.root.join("hooks/helper.py");
        fs::write(&helper, "first").expect("written");
        let modules = python.modules(&project);
        fs::write(&helper, "second").expect("written");
        fs::write(project.root.join("hooks/late.py"), "").expect("written");
        let given = |name: &str| modules.contents(&project.root.join(name));
        assert_eq!(*given("hooks/helper.py").expect("it was read"), *b"first");
        assert_eq!(modules.hashes[&helper], sha256_hex(b"first"));
        assert_eq!(*given("hooks/hook.py").expect("it was read"), *b"as it was read");
        assert_eq!(given("hooks/late.py"), Err("it was not checked".to_owned()));
    }

    #[test]
    fn what_is_too_much_to_be_kept_is_read_again_and_has_to_be_the_same() {
        let (_dir, project, python) = project();
        let name = |number: u64| project.root.join(format!("hooks/m{number:02}.py"));
        let size = 1 << 20;
        for number in 0..=MOST_BYTES / size {
            fs::write(name(number), vec![b'#'; size as usize]).expect("written");
        }
        fs::write(project.root.join("hooks/fast.so"), "compiled").expect("written");
        let modules = python.modules(&project);
        let (kept, large) = (name(0), name(MOST_BYTES / size));
        let compiled = project.root.join("hooks/fast.so");
        assert!(matches!(modules.files[&kept], Known::Contents(_)));
        for file in [&large, &compiled] {
            assert!(matches!(modules.files[file], Known::Hash(_)), "{}", file.display());
            modules.contents(file).expect("it is as it was");
        }
        for file in [&kept, &large, &compiled] {
            fs::write(file, "evil").expect("written");
        }
        modules.contents(&kept).expect("it was kept");
        for file in [&large, &compiled] {
            let why = modules.contents(file).expect_err("it is another one");
            assert!(why.contains("changed since it was checked"), "{why}");
        }
    }

    #[test]
    fn of_too_many_files_none_is_given_that_was_touched() {
        let (_dir, project, python) = project();
        let name = |number: usize| project.root.join(format!("hooks/m{number:04}.py"));
        for number in 0..super::super::MOST_FILES {
            fs::write(name(number), "x").expect("written");
        }
        let modules = python.modules(&project);
        let last = name(super::super::MOST_FILES - 1);
        assert!(matches!(modules.files[&last], Known::Marks(_)));
        assert_eq!(*modules.contents(&last).expect("it is as it was"), *b"x");
        let time = last.metadata().and_then(|meta| meta.modified()).expect("there");
        fs::write(&last, "y").expect("written");
        let file = fs::File::options().write(true).open(&last).expect("opened");
        file.set_modified(time).expect("as old as before");
        assert!(modules.contents(&last).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn every_file_has_one_path_however_many_links_lead_there() {
        use std::os::unix::fs::symlink;
        let (_dir, project, python) = project();
        let outside = tempfile::tempdir().expect("a temporary folder");
        fs::write(outside.path().join("far.py"), "").expect("written");
        let at = |name: &str| project.root.join(name);
        fs::create_dir(at("hooks/real")).expect("made");
        fs::write(at("hooks/real/x.py"), "").expect("written");
        symlink(at("hooks/real"), at("hooks/again")).expect("linked");
        symlink(at("hooks/real/x.py"), at("hooks/x_again.py")).expect("linked");
        symlink(outside.path(), at("hooks/away")).expect("linked");
        symlink(outside.path(), at("hooks/away_again")).expect("linked");
        let modules = python.modules(&project);
        let names: Vec<String> = modules.files().iter().map(|it| project.relative(it)).collect();
        assert_eq!(names, ["hooks/away/far.py", "hooks/hook.py", "hooks/real/x.py"]);
        let mut links = modules.links();
        links.sort();
        let links: Vec<_> =
            links.into_iter().map(|(a, b)| (project.relative(a), project.relative(b))).collect();
        let expected = [
            ("hooks/again", "hooks/real"),
            ("hooks/away_again", "hooks/away"),
            ("hooks/x_again.py", "hooks/real/x.py"),
        ];
        assert_eq!(links, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
