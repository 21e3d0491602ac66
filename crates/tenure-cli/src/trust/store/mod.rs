//! The file that remembers what was agreed to.

mod owner;

pub(crate) use owner::is_inside;

use crate::time::rfc3339;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The form of the file that this program writes.
const VERSION: u32 = 1;

/// The most projects whose records are hidden from what is started: each costs every start a little.
const MOST_HIDDEN: usize = 32;

/// One thing that a project would execute, or that it lets its models or hooks do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Item {
    /// What kind of thing it is, in words.
    pub(crate) kind: String,
    /// What it is: a file relative to the project, a command line, a name.
    pub(crate) what: String,
    /// The hash of its contents, if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    /// What it is used for.
    #[serde(default)]
    pub(crate) used_by: Vec<String>,
}

impl Item {
    /// What makes it the same thing, whatever its contents and uses.
    fn identity(&self) -> (&str, &str) {
        (&self.kind, &self.what)
    }

    /// Whether this, once agreed to, covers `now`: the same contents, and no new use.
    fn covers(&self, now: &Item) -> bool {
        self.identity() == now.identity()
            && self.sha256 == now.sha256
            && now.used_by.iter().all(|used| self.used_by.contains(used))
    }
}

impl From<&tenure_cards::trust::Item> for Item {
    fn from(item: &tenure_cards::trust::Item) -> Self {
        Self {
            kind: item.kind.as_str().to_owned(),
            what: item.what.clone(),
            sha256: item.sha256.clone(),
            used_by: item.used_by.clone(),
        }
    }
}

/// What a person agreed to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Accepted {
    /// When.
    pub(crate) at: String,
    /// To what.
    pub(crate) items: Vec<Item>,
}

/// A difference between what was agreed to and what is there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is new.
    Added(Item),
    /// Its contents or its uses are other ones.
    Changed {
        /// What it is now.
        now: Item,
        /// What was agreed to.
        was: Item,
    },
}

/// Where a project stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All of it was agreed to, or it executes nothing.
    Trusted,
    /// Nobody was ever asked.
    Unknown,
    /// Some of it was not agreed to, or not as it is now.
    Changed(Vec<Change>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    projects: BTreeMap<String, Accepted>,
}

/// The store. Reading it creates nothing.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    projects: BTreeMap<String, Accepted>,
}

impl Store {
    /// Where the store of this user is.
    pub(crate) fn locate() -> Result<PathBuf> {
        let absolute =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let data = absolute("XDG_DATA_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
            .context("there is no place for the trust store: set HOME, or XDG_DATA_HOME")?;
        Ok(data.join("tenure").join("trust.json"))
    }

    /// Opens the store of this user, for a decision about the project at `root`. A store in the project itself does
    /// not count: the author of the project would decide.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        let path = Self::locate()?;
        owner::ensure_outside(&path, root)?;
        Self::at(path)
    }

    /// Opens the store at a path. A store that is not there yet is empty; one that cannot be read,
    /// or that others could have written, is an error, and then nothing is trusted.
    pub(crate) fn at(path: PathBuf) -> Result<Self> {
        owner::ensure_own(&path)?;
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { path, projects: BTreeMap::new() });
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("the trust store {} cannot be read; nothing is trusted", path.display())
                });
            }
        };
        let contents: Contents = serde_json::from_str(&text).with_context(|| {
            format!(
                "the trust store {} is damaged, so nothing is trusted; mend it, or delete it to \
                 forget every project",
                path.display()
            )
        })?;
        if contents.version != VERSION {
            bail!(
                "the trust store {} has version {}, and this program reads {VERSION}; nothing is \
                 trusted; use the newer program, or delete the file to forget every project",
                path.display(),
                contents.version
            );
        }
        Ok(Self { path, projects: contents.projects })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything was ever written to it, as far as this process sees.
    pub(crate) fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// The projects that were accepted, by root.
    pub(crate) fn projects(&self) -> &BTreeMap<String, Accepted> {
        &self.projects
    }

    /// Hides the records of the projects that were accepted last from what is started: they are as readable to it as
    /// all of the user's home.
    pub(crate) fn hide_records(&self) {
        let mut known: Vec<(&String, &Accepted)> = self.projects.iter().collect();
        known.sort_by(|(_, a), (_, b)| b.at.cmp(&a.at));
        let folders = known.into_iter().map(|(root, _)| Path::new(root).join(".tenure"));
        tenure_hosts::hide(folders.filter(|folder| folder.is_dir()).take(MOST_HIDDEN));
    }

    /// Where the project at `root` stands, if these items are what it would execute now.
    pub(crate) fn standing(&self, root: &Path, items: &[Item]) -> Standing {
        if items.is_empty() {
            return Standing::Trusted;
        }
        let Some(accepted) = self.projects.get(&key(root)) else {
            return Standing::Unknown;
        };
        let changes = differences(&accepted.items, items);
        if changes.is_empty() { Standing::Trusted } else { Standing::Changed(changes) }
    }

    /// Agrees to these items of the project at `root`, as they are now. What was agreed to for its
    /// other cards still is: one project has many entrances.
    pub(crate) fn accept(&mut self, root: &Path, items: &[Item]) -> Result<()> {
        let mut all = items.to_vec();
        self.change(|projects| {
            let before = projects.remove(&key(root)).map(|accepted| accepted.items);
            for old in before.into_iter().flatten() {
                match all.iter_mut().find(|it| it.identity() == old.identity()) {
                    None => all.push(old),
                    Some(new) if new.sha256 == old.sha256 => new.used_by.extend(old.used_by),
                    Some(_) => {}
                }
            }
            for item in &mut all {
                item.used_by.sort();
                item.used_by.dedup();
            }
            all.sort();
            projects.insert(key(root), Accepted { at: rfc3339(SystemTime::now()), items: all });
        })
    }

    /// Forgets the project at `root`. Says whether there was anything to forget.
    pub(crate) fn revoke(&mut self, root: &Path) -> Result<bool> {
        let mut was = false;
        if self.projects.contains_key(&key(root)) {
            self.change(|projects| was = projects.remove(&key(root)).is_some())?;
        }
        Ok(was)
    }

    /// Changes the file as it is now, not as it was when it was opened, and under a lock: two
    /// programs that accept at the same time both count.
    fn change(&mut self, change: impl FnOnce(&mut BTreeMap<String, Accepted>)) -> Result<()> {
        let folder = self.path.parent().context("the trust store has no folder")?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(|| {
            format!("the folder {} of the trust store cannot be made", folder.display())
        })?;
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        let _lock = lock(&folder.join("trust.lock"))?;
        let mut projects = Self::at(self.path.clone())?.projects;
        change(&mut projects);
        let contents = Contents { version: VERSION, projects };
        let mut text = serde_json::to_string_pretty(&contents)?;
        text.push('\n');
        write_whole(&self.path, &text).with_context(|| {
            format!("the trust store {} cannot be written", self.path.display())
        })?;
        self.projects = contents.projects;
        Ok(())
    }
}

fn key(root: &Path) -> String {
    root.to_string_lossy().into_owned()
}

/// Held until it is dropped.
fn lock(path: &Path) -> Result<File> {
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
        .with_context(|| format!("{} cannot be locked", path.display()))?;
    Ok(file)
}

/// Writes the file whole or not at all.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension(format!("json.{}", std::process::id()));
    let written = (|| {
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    })();
    if written.is_err() {
        // What is left of a failed write is of no use to anybody.
        drop(std::fs::remove_file(&new));
    }
    written
}

/// What is now and was not accepted as it is.
pub(crate) fn differences(accepted: &[Item], now: &[Item]) -> Vec<Change> {
    let mut changes = Vec::new();
    for item in now {
        if accepted.iter().any(|it| it.covers(item)) {
            continue;
        }
        changes.push(match accepted.iter().find(|it| it.identity() == item.identity()) {
            Some(was) => Change::Changed { now: item.clone(), was: was.clone() },
            None => Change::Added(item.clone()),
        });
    }
    changes
}

#[cfg(test)]
mod tests;
