//! Where the runs of a project are recorded.

use super::adopt::{Adoption, adopted};
use crate::args::Recording;
use crate::exit::Stop;
use crate::terminal::text::for_shell;
use crate::trust::is_inside;
use anyhow::{Context as _, Result};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tenure_cards::project::{Durability, Project, StoreSettings};
use tenure_cards::sandbox::store_files;
use tenure_core::RunId;
use tenure_hosts::hide;
use tenure_store::{Store, StoreKeys};

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
    adoption: Adoption,
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
            _ => Some(Self::new(recording, project)),
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
        Ok(Self::new(recording, &project))
    }

    fn new(recording: &Recording, project: &Project) -> Self {
        let settings = project.config.store.clone();
        let named = recording.store.as_deref();
        let file = named.map_or_else(|| settings.file(&project.root), Path::to_owned);
        let (root, is_named) = (project.root.clone(), named.is_some());
        let adoption = Adoption::of(recording.adopt_store);
        Self { root, file, settings, is_named, adoption }
    }

    /// What to add to a command so that it means this file.
    pub(crate) fn option(&self) -> String {
        match self.is_named {
            true => format!(" --store {}", for_shell(&self.file)),
            false => String::new(),
        }
    }

    /// Opens the file, and makes it if it is not there. One that is not known to be the user's is
    /// adopted first, if the person agrees.
    pub(crate) fn open(&self) -> Result<Store> {
        self.check_links()?;
        self.make_folder()?;
        hide(store_files(&self.file));
        Ok(self.configured(adopted(Store::open(&self.file)?, self.adoption)?))
    }

    fn check_links(&self) -> Result<()> {
        keys_outside(&self.root)?;
        match self.is_named {
            true => Ok(()),
            false => stays_inside(&self.root, &self.file),
        }
    }

    /// Opens the file if it is there, as [`Place::open`] does.
    pub(crate) fn open_existing(&self) -> Result<Store> {
        if !self.file.exists() {
            return Err(Stop::usage(format!(
                "nothing is on record: there is no {}; `tenure run` records in projects with a \
                 tenure.toml, and with --store anywhere",
                for_shell(&self.file)
            ))
            .into());
        }
        self.check_links()?;
        hide(store_files(&self.file));
        Ok(self.configured(adopted(Store::open_existing(&self.file)?, self.adoption)?))
    }

    /// Nothing that the terminal hides is written either.
    fn configured(&self, store: Store) -> Store {
        let durability = match self.settings.durability {
            Durability::Relaxed => tenure_store::Durability::Relaxed,
            _ => tenure_store::Durability::Full,
        };
        store.durability(durability).redact_with(crate::terminal::sink::redactor())
    }

    /// What people said is for the owner of the project, and for no repository: the project's own folder is closed to
    /// others whoever made it, and so is another one that is made for the file. One that is there already may have more
    /// in it, so there the file alone is kept out of repositories.
    fn make_folder(&self) -> Result<()> {
        let file = std::path::absolute(&self.file)?;
        let own = self.root.join(FOLDER);
        let made = match (file.parent(), file.file_name()) {
            _ if !file.starts_with(&self.root) || file.exists() && !file.starts_with(&own) => {
                Ok(())
            }
            _ if file.starts_with(&own) => private_folder(&own),
            (Some(folder), Some(name)) if folder.exists() => ignore(folder, &only(name)),
            (Some(folder), _) => private_folder(folder),
            (None, _) => Ok(()),
        };
        made.with_context(|| {
            format!(
                "{} cannot be kept for the user alone, where runs are recorded; make its folder writable, record \
                 elsewhere with --store FILE, or record nothing with --no-store",
                for_shell(&file)
            )
        })
    }
}

/// The pattern of a file and of what SQLite has beside it, in its own folder.
fn only(name: &OsStr) -> String {
    let mut pattern = String::from("/");
    for letter in name.to_string_lossy().chars() {
        if matches!(letter, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern + "*"
}

/// Makes a folder that only its owner may look into and that no repository takes in.
fn private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if fs::metadata(folder)?.permissions().mode() & 0o777 != 0o700 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    ignore(folder, "*")
}

/// Has repositories leave out what fits the pattern in a folder.
fn ignore(folder: &Path, pattern: &str) -> io::Result<()> {
    let ignore = folder.join(".gitignore");
    let is_link = ignore.symlink_metadata().is_ok_and(|it| it.is_symlink());
    let text = if is_link { None } else { fs::read_to_string(&ignore).ok() };
    let mut text = text.unwrap_or_default();
    if text.lines().any(|line| matches!(line.trim(), "*") || line.trim() == pattern) {
        return Ok(());
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(pattern);
    text.push('\n');
    // Whole or not at all, and never through a link.
    let draft = folder.join(format!(".gitignore.{}.part", RunId::unique()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&draft)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&draft, &ignore));
    written.inspect_err(|_| drop(fs::remove_file(&draft)))
}

/// Makes sure that the user's keys of stores are not in the project: its author could have made them, and a store that
/// is sealed with them.
pub(crate) fn keys_outside(root: &Path) -> Result<()> {
    let keys = StoreKeys::of_user();
    let Some(place) = keys.location().filter(|place| is_inside(place, root)) else { return Ok(()) };
    Err(Stop::untrusted(format!(
        "the keys of stores are in {}, which is inside the project {}, so they do not count: no store is read or \
         written. Set XDG_DATA_HOME to a folder outside the project or TENURE_STORE_KEY_FILE to a file there, move the \
         project into a folder of its own, or record nothing with --no-store",
        for_shell(place),
        for_shell(root)
    ))
    .into())
}

/// Makes sure that no link leads from a project to a file elsewhere: a project could have another
/// one's records read and written.
pub(crate) fn stays_inside(root: &Path, file: &Path) -> Result<()> {
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut place = root.to_owned();
    for part in file.strip_prefix(root).unwrap_or(Path::new("")) {
        place.push(part);
        if !place.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
            continue;
        }
        // A link to nothing says where something would be made.
        let target = place.canonicalize().or_else(|_| fs::read_link(&place))?;
        if !target.starts_with(&real_root) {
            return Err(Stop::untrusted(format!(
                "{} is a link out of the project, to {}: records are neither read nor written there. \
                 Remove the link, or name the file with --store",
                for_shell(&place),
                for_shell(&target)
            ))
            .into());
        }
    }
    Ok(())
}
