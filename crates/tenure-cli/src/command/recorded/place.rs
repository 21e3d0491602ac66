//! Where the runs of a project are recorded.

use crate::args::Recording;
use crate::exit::Stop;
use crate::terminal::text::for_shell;
use anyhow::{Context as _, Result};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use tenure_cards::project::{Durability, Project, StoreSettings};
use tenure_store::Store;

/// The folder of a project's own records.
const FOLDER: &str = ".tenure";

/// Where the runs of a project are recorded.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The project's folder: paths on record start from it.
    pub(crate) root: PathBuf,
    /// The file.
    pub(crate) file: PathBuf,
    /// What the project says of it.
    pub(crate) settings: StoreSettings,
    /// Whether the file was named on the command line.
    is_named: bool,
}

impl Place {
    /// Where a new run of a project is recorded; none if it is not. Without a `tenure.toml` nothing
    /// is, unless a file is named.
    pub(crate) fn wanted(recording: &Recording, project: &Project) -> Option<Self> {
        let settings = &project.config.store;
        let is_kept = project.config_text.is_some() && settings.record;
        match &recording.store {
            _ if recording.no_store => None,
            None if !is_kept => None,
            named => Some(Self::new(named.as_deref(), project)),
        }
    }

    /// Where runs of the project at `path` were recorded.
    pub(crate) fn of_record(recording: &Recording, path: &Path) -> Result<Self> {
        let project = Project::find(path);
        if recording.store.is_none() && project.config_text.is_none() {
            return Err(Stop::usage(format!(
                "nothing is on record here: no folder from {} upward has a tenure.toml; go to the \
                 project's folder, or name the file with --store",
                for_shell(&project.root)
            ))
            .into());
        }
        Ok(Self::new(recording.store.as_deref(), &project))
    }

    fn new(named: Option<&Path>, project: &Project) -> Self {
        let settings = project.config.store.clone();
        let file = named.map_or_else(|| settings.file(&project.root), Path::to_owned);
        Self { root: project.root.clone(), file, settings, is_named: named.is_some() }
    }

    /// What to add to a command so that it means this file.
    pub(crate) fn option(&self) -> String {
        match self.is_named {
            true => format!(" --store {}", for_shell(&self.file)),
            false => String::new(),
        }
    }

    /// Opens the file, and makes it if it is not there.
    pub(crate) fn open(&self) -> Result<Store> {
        self.make_folder()?;
        Ok(self.configured(Store::open(&self.file)?))
    }

    /// Opens the file if it is there.
    pub(crate) fn open_existing(&self) -> Result<Store> {
        if !self.file.exists() {
            return Err(Stop::usage(format!(
                "nothing is on record: there is no {}; `tenure run` records in projects with a \
                 tenure.toml, and with --store anywhere",
                for_shell(&self.file)
            ))
            .into());
        }
        Ok(self.configured(Store::open_existing(&self.file)?))
    }

    /// Nothing that the terminal hides is written either.
    fn configured(&self, store: Store) -> Store {
        let durability = match self.settings.durability {
            Durability::Relaxed => tenure_store::Durability::Relaxed,
            _ => tenure_store::Durability::Full,
        };
        store.durability(durability).redact_with(crate::terminal::sink::redactor())
    }

    /// The project's own folder is for its owner, and for no repository: what people said is in it.
    fn make_folder(&self) -> Result<()> {
        let folder = self.root.join(FOLDER);
        if !self.file.starts_with(&folder) || folder.exists() {
            return Ok(());
        }
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        let ignored = made.and_then(|()| std::fs::write(folder.join(".gitignore"), "*\n"));
        match ignored {
            // Another run of the project may have been first.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            result => result.with_context(|| {
                format!(
                    "{} cannot be made, where runs are recorded; make it writable, record elsewhere \
                     with --store FILE, or record nothing with --no-store",
                    for_shell(&folder)
                )
            }),
        }
    }
}
