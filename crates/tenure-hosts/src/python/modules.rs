//! The files that functions import from their project.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a module: in a frame some of them take six times as much.
const MOST_SOURCE: usize = super::frame::MOST_FRAME / 8;

/// The files of a project that functions may import, beside what is installed.
///
/// An import means the file beside the one that imports, then one in the project's folder. A module is
/// loaded once in each worker, whatever name it is imported by.
#[derive(Clone, Debug, Default)]
pub enum PythonModules {
    /// Any file that is there, as it is when it is imported. A team of cards takes those that were checked
    /// in place of this.
    #[default]
    Any,
    /// The files that were checked, as they were then. No other file beneath the project is imported.
    Checked(Arc<dyn CheckedModules>),
}

/// The Python files of a project as they were checked.
pub trait CheckedModules: fmt::Debug + Send + Sync + 'static {
    /// Returns the absolute paths of all files.
    fn files(&self) -> Vec<&Path>;

    /// Returns the files and folders that are one of [`files`](Self::files), or the folder of one, under
    /// another name: the other name, and the path that is listed.
    fn links(&self) -> Vec<(&Path, &Path)>;

    /// Returns the contents of one of the files as they were checked. The error says why they are not to be
    /// had; a file that was too large to be kept may have changed. It may read from the disk.
    fn contents(&self, file: &Path) -> Result<Arc<[u8]>, String>;

    /// Returns the folders of installed packages that are checked file by file, each as it really is. They are beneath
    /// the project: what the system brings along is not asked for.
    fn installed(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// Says why a file in one of those folders must not be loaded, if it must not. It may look at the disk.
    fn check_installed(&self, _file: &Path) -> Result<(), String> {
        Err("it was not checked".to_owned())
    }
}

impl PythonModules {
    /// Returns what a worker is told when it starts: the files by folder, but not what is in them.
    pub(super) fn told(&self, root: &Path) -> Value {
        let Self::Checked(modules) = self else {
            return json!({ "root": root.to_string_lossy(), "files": null });
        };
        let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for file in modules.files() {
            // A name that is no text cannot be imported.
            if let (Some(folder), Some(name)) = (file.parent(), file.file_name())
                && let (Some(folder), Some(name)) = (folder.to_str(), name.to_str())
            {
                folders.entry(folder).or_default().push(name);
            }
        }
        let links: BTreeMap<_, _> = modules
            .links()
            .into_iter()
            .filter_map(|(other, path)| Some((other.to_str()?, path.to_str()?)))
            .collect();
        let installed: Vec<&str> =
            modules.installed().into_iter().filter_map(Path::to_str).collect();
        json!({ "root": root.to_string_lossy(), "files": folders, "links": links, "installed": installed })
    }

    /// Returns the answer to a worker that imports a file: its source, or why it may not be run. Of compiled
    /// code it is only that it is as it was checked.
    pub(super) async fn answer(&self, path: String) -> Value {
        let Self::Checked(modules) = self else {
            return json!({ "module": path, "refused": "it was not checked" });
        };
        let (modules, file) = (modules.clone(), PathBuf::from(&path));
        if modules.installed().iter().any(|folder| file.starts_with(folder)) {
            let checked = tokio::task::spawn_blocking(move || modules.check_installed(&file)).await;
            let checked = checked.unwrap_or_else(|error| Err(error.to_string()));
            return match checked {
                Err(why) => json!({ "module": path, "refused": format!("not imported: {why}") }),
                Ok(()) => json!({ "module": path }),
            };
        }
        let read = tokio::task::spawn_blocking(move || modules.contents(&file)).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        match read {
            Err(why) => {
                json!({ "module": path, "refused": format!("{path} is not imported: {why}") })
            }
            Ok(_) if !path.ends_with(".py") => json!({ "module": path }),
            Ok(source) if source.len() > MOST_SOURCE => {
                let why = format!("{path} is not imported: it is larger than {MOST_SOURCE} bytes");
                json!({ "module": path, "refused": why })
            }
            Ok(source) => match std::str::from_utf8(&source) {
                Ok(text) => json!({ "module": path, "source": text }),
                // Its first lines say what it is written in; a byte is a character until that is known.
                Err(_) => {
                    let text: String = source.iter().copied().map(char::from).collect();
                    json!({ "module": path, "source": text, "encoding": "latin-1" })
                }
            },
        }
    }
}
