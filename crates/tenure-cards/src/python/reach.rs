//! The files of the project that hooks import, by what their imports say.
//!
//! Every file beneath the folder of a hook can be imported, so it is checked whether it is named or not. A file
//! elsewhere in the project is checked if an import leads there. Nothing is executed.

use super::files::{Parsed, PythonFiles};
use super::imports::{Import, Made, Taken};
use crate::diagnostic::{Code, Diagnostic, Report, Severity};
use crate::project::{Project, shown};
use crate::trust::{MOST_FILES, added_folders};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Follows the imports of every file that was read, through the project. Returns the files that they lead to; an
/// import that leads nowhere, and can only lead into the project, is reported.
pub(crate) fn reach(
    python: &PythonFiles,
    project: &Project,
    report: &mut Report,
) -> BTreeSet<PathBuf> {
    let finder = Finder { project, added: OnceCell::new(), listings: RefCell::default() };
    let here = std::env::current_dir().ok();
    let mut reached = BTreeSet::new();
    // Those that run for sure come first: what is wrong with them is graver.
    let mut open: BTreeSet<(Made, PathBuf)> =
        python.paths().map(|path| (Made::Always, path.to_owned())).collect();
    while let Some((made, path)) = open.pop_first() {
        if reached.len() >= MOST_FILES || !reached.insert(path.clone()) {
            continue;
        }
        let Some(parsed) = python.peek(&path, shown(&path, here.as_deref())) else {
            continue;
        };
        for import in &parsed.module.imports {
            let made = made.max(import.made);
            let found = finder.follow(import, &path);
            if let Some(wrong) = found.wrong.filter(|_| made < Made::Guarded) {
                report.push(told(import, made, wrong, &parsed));
            }
            open.extend(found.files.into_iter().map(|file| (made, file)));
        }
    }
    reached
}

fn told(import: &Import, made: Made, wrong: String, parsed: &Parsed) -> Diagnostic {
    let written = format!("{}{}", ".".repeat(import.level), import.module);
    let names: Vec<&str> = import.names.iter().map(|taken| &*taken.name).collect();
    let message = format!("`from {written} import {}` {wrong}", names.join(", "));
    let help = "the dots start from the folder of this file, which is one dot, and go up to the project's; correct \
                the import, or create the file";
    let severity = match made {
        Made::Always => Severity::Error,
        _ => Severity::Warning,
    };
    Diagnostic::new(Code::RelativeImport, &parsed.source, parsed.placed(import.span), message)
        .help(help)
        .severity(severity)
}

/// The files that an import leads to.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    /// The reason why it cannot be made, as far as that is known.
    wrong: Option<String>,
}

/// The meaning of a name in a folder.
enum Entry {
    /// A package with a file of its own.
    Package(PathBuf, PathBuf),
    /// A folder that holds modules.
    Folder(PathBuf),
    /// A module.
    File(PathBuf),
}

impl Entry {
    fn file(&self) -> Option<&Path> {
        match self {
            Self::Package(_, file) | Self::File(file) => Some(file),
            Self::Folder(_) => None,
        }
    }

    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Package(folder, _) | Self::Folder(folder) => Some(folder),
            Self::File(_) => None,
        }
    }
}

struct Finder<'a> {
    project: &'a Project,
    added: OnceCell<Vec<PathBuf>>,
    listings: RefCell<HashMap<PathBuf, Rc<BTreeSet<OsString>>>>,
}

impl Finder<'_> {
    fn follow(&self, import: &Import, path: &Path) -> Found {
        let mut found = match import.level {
            0 => self.absolute(import, path),
            _ => self.relative(import, path),
        };
        // What a link leads out of the project to is not imported, and neither is the file itself.
        let confined = |file: PathBuf| self.project.confine(&self.project.root, &file).ok();
        found.files = found.files.into_iter().filter_map(confined).collect();
        found
    }

    fn absolute(&self, import: &Import, path: &Path) -> Found {
        let (head, rest) = match import.module.split_once('.') {
            Some((head, rest)) => (head, Some(rest)),
            None => (&*import.module, None),
        };
        let root = &self.project.root;
        let own = path.parent().unwrap_or(root);
        let src = root.join("src");
        let added = self.added.get_or_init(|| added_folders(self.project));
        let first = [own, root, &src].into_iter().chain(added.iter().map(PathBuf::as_path));
        let around = own.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
        let folders: Vec<&Path> = first.chain(around).collect();
        let entries = || folders.iter().filter_map(|folder| self.entry(folder, head));
        let entry = entries().find(|entry| entry.file().is_some()).or_else(|| entries().next());
        match entry {
            // Something that is installed may be meant.
            Some(entry) => Found { wrong: None, ..self.inside(entry, rest, &import.names) },
            None => Found::default(),
        }
    }

    fn relative(&self, import: &Import, path: &Path) -> Found {
        let root = &self.project.root;
        let base = path.ancestors().nth(import.level).filter(|base| base.starts_with(root));
        let Some(base) = base else {
            let wrong = Some("leads out of the project".to_owned());
            return Found { wrong, ..Found::default() };
        };
        // A package runs before what is in it.
        let packages = base.ancestors().take_while(|folder| folder.starts_with(root));
        let packages: Vec<PathBuf> = packages.filter_map(|folder| self.package(folder)).collect();
        let entry = match self.package(base) {
            Some(file) => Entry::Package(base.to_owned(), file),
            None => Entry::Folder(base.to_owned()),
        };
        let module = Some(&*import.module).filter(|module| !module.is_empty());
        let mut found = self.inside(entry, module, &import.names);
        found.files.extend(packages);
        found
    }

    /// Goes on from an entry, by the rest of a dotted name and the names that are taken of it.
    fn inside(&self, entry: Entry, rest: Option<&str>, names: &[Taken]) -> Found {
        let mut found = Found::default();
        found.files.extend(entry.file().map(Path::to_owned));
        let mut at = entry;
        for part in rest.into_iter().flat_map(|rest| rest.split('.')) {
            let next = at.folder().and_then(|folder| self.entry(folder, part));
            let Some(next) = next else {
                found.wrong = Some(match at.folder() {
                    Some(folder) => self.nothing(part, folder),
                    None => format!("leads nowhere: a module has no `{part}`"),
                });
                return found;
            };
            found.files.extend(next.file().map(Path::to_owned));
            at = next;
        }
        let Some(folder) = at.folder() else { return found };
        for Taken { name, .. } in names {
            if name == "*" {
                let names = self.listing(folder);
                let modules = names
                    .iter()
                    .filter(|name| Path::new(name).extension().is_some_and(|end| end == "py"));
                found.files.extend(modules.map(|name| folder.join(name)));
                continue;
            }
            match (self.entry(folder, name), &at) {
                (Some(entry), _) => found.files.extend(entry.file().map(Path::to_owned)),
                // A package's own file may define it.
                (None, Entry::Package(..)) => {}
                (None, _) => found.wrong = Some(self.nothing(name, folder)),
            }
        }
        found
    }

    fn nothing(&self, name: &str, folder: &Path) -> String {
        let folder = match &*self.project.relative(folder) {
            "" => "the project's folder".to_owned(),
            folder => format!("`{folder}`"),
        };
        format!("leads nowhere: there is no `{name}.py` and no folder `{name}` in {folder}")
    }

    /// The file of a folder that is a package.
    fn package(&self, folder: &Path) -> Option<PathBuf> {
        self.file(folder, "__init__")
    }

    fn entry(&self, folder: &Path, name: &str) -> Option<Entry> {
        let inner = folder.join(name);
        let is_listed = self.listing(folder).contains(&OsString::from(name));
        let is_folder = is_listed && inner.is_dir();
        if is_folder && let Some(file) = self.package(&inner) {
            return Some(Entry::Package(inner, file));
        }
        let file = self.file(folder, name).map(Entry::File);
        file.or_else(|| is_folder.then_some(Entry::Folder(inner)))
    }

    /// The module of this name in a folder: Python, or compiled.
    fn file(&self, folder: &Path, name: &str) -> Option<PathBuf> {
        let listing = self.listing(folder);
        let source = OsString::from(format!("{name}.py"));
        let is_compiled = |file: &&OsString| {
            let file = file.to_string_lossy();
            let end = file.strip_prefix(name).filter(|end| end.starts_with('.'));
            end.is_some_and(|end| end.ends_with(".so"))
        };
        let file = listing.get(&source).or_else(|| listing.iter().find(is_compiled))?;
        let path = folder.join(file);
        path.is_file().then_some(path)
    }

    fn listing(&self, folder: &Path) -> Rc<BTreeSet<OsString>> {
        let mut listings = self.listings.borrow_mut();
        let read = || {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            Rc::new(entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect())
        };
        listings.entry(folder.to_owned()).or_insert_with(read).clone()
    }
}
