//! The project: the folder that every path must stay beneath, and its `tenure.toml`.

mod config;
mod confine;
mod databases;
mod fast_agent;
mod models;
mod owner;
mod reader;
mod servers;
mod store;

pub use config::{ContextSettings, ProjectConfig};
pub(crate) use confine::plain;
pub use confine::{ConfineError, confine, confine_new};
pub use fast_agent::{Conversion, FastAgentConfig, convert};
pub(crate) use fast_agent::{TOOL_CARDS, card_folders, is_own, report_stray, sibling_cards};
pub use models::ModelSettings;
pub(crate) use models::{
    ALIASES, DEFAULT_MODEL, Owner, PRICES, PROVIDERS, SYSTEM_DEFAULT, read as read_models,
};
pub use reader::Written;
pub(crate) use reader::{Settings, span, url_problem};
pub use store::{Durability, OnMessage, OnStart, StoreSettings};

use crate::diagnostic::Report;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of a project's configuration file.
pub const CONFIG_FILE: &str = "tenure.toml";

/// A folder of cards with everything they may name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Project {
    /// The folder, absolute and with its links resolved.
    pub root: PathBuf,
    /// What `tenure.toml` says, or in its place the configuration of fast-agent; the defaults if
    /// there is neither.
    pub config: ProjectConfig,
    /// The text of `tenure.toml`, if there is one.
    pub config_text: Option<Arc<str>>,
    /// The configuration of fast-agent, if it counts.
    pub fast_agent: Option<FastAgentConfig>,
    pub(crate) report: Report,
}

impl Project {
    /// The project that `path` belongs to: the nearest folder upward with a `tenure.toml`, if that does not belong to
    /// another user than the path's folder and this process; else,
    /// within the working directory, the nearest one with files of fast-agent; else the working
    /// directory if it holds the path, else the path's folder.
    ///
    /// What is wrong with the configuration is in [`Project::report`].
    pub fn find(path: &Path) -> Self {
        let here = std::env::current_dir().ok();
        let start = folder(path, here.as_deref());
        let mut report = Report::new();
        for dir in start.ancestors() {
            let file = dir.join(CONFIG_FILE);
            if file.is_file() && owner::is_foreign(&file, &start) {
                owner::report_foreign(&file, here.as_deref(), &mut report);
            } else if file.is_file() {
                return Self::configured(dir.to_owned(), &file, here.as_deref(), report);
            }
        }
        let outermost = match here.as_ref().and_then(|here| here.canonicalize().ok()) {
            Some(here) if start.starts_with(&here) => here,
            _ => start.clone(),
        };
        let workspace = fast_agent::workspace(&start, &outermost);
        let (config, fast_agent) = match &workspace {
            Some(root) => fast_agent::read(root, here.as_deref(), &mut report),
            None => (ProjectConfig::default(), None),
        };
        let root = workspace.unwrap_or(outermost);
        Self { root, config, config_text: None, fast_agent, report }
    }

    /// What is wrong with `tenure.toml`.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The file that `path` means when it is written in `base`, which must be beneath the project.
    pub fn confine(&self, base: &Path, path: &Path) -> Result<PathBuf, ConfineError> {
        confine(&self.root, base, path)
    }

    /// The same for a file that need not be there yet: what is there of the way to it is beneath the
    /// project, links resolved.
    pub fn confine_new(&self, base: &Path, path: &Path) -> Result<PathBuf, ConfineError> {
        confine_new(&self.root, base, path)
    }

    /// The file relative to the project's folder, with `/` between its parts.
    pub fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect::<Vec<_>>()
            .join("/")
    }

    fn configured(root: PathBuf, file: &Path, here: Option<&Path>, mut report: Report) -> Self {
        let (config, config_text) = config::read(&root, file, here, &mut report);
        fast_agent::report_unread(&root, here, &mut report);
        Self { root, config, config_text, fast_agent: None, report }
    }
}

/// The folder that `path` is in, or is; resolved as far as it exists. A file is in the folder where
/// its name is, also if it is a link to somewhere else.
fn folder(path: &Path, here: Option<&Path>) -> PathBuf {
    let full = match here {
        Some(here) => here.join(path),
        None => path.to_owned(),
    };
    let found = full.ancestors().find(|at| at.is_dir()).and_then(|at| at.canonicalize().ok());
    found.unwrap_or(full)
}

/// The path as people in `here` would write it.
pub(crate) fn shown(path: &Path, here: Option<&Path>) -> PathBuf {
    let short = here.and_then(|here| path.strip_prefix(here).ok());
    short.filter(|short| !short.as_os_str().is_empty()).unwrap_or(path).to_owned()
}
