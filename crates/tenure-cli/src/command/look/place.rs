//! Which file of runs is meant, and which run in it.

use super::super::recorded::{Adoption, adopted, keys_outside, stays_inside, tell_unless_known};
use super::entry::Entry;
use crate::args::OfStore;
use crate::exit::Stop;
use crate::terminal::sink;
use crate::terminal::text::for_shell;
use anyhow::Result;
use std::path::{Path, PathBuf};
use tenure_cards::project::{CONFIG_FILE, Project};
use tenure_core::RunId;
use tenure_core::engine::{RunInfo, RunQuery, RunStatus};
use tenure_store::{Store, StoreError, StoreErrorKind, Wish};

/// The file of runs, and the project that it belongs to.
pub(super) struct Place {
    pub(super) store: Store,
    pub(super) root: PathBuf,
}

/// How a run is named that is not named: the newest.
const LAST: &str = "last";
/// So many records are read at once.
const PAGE: usize = 1000;
/// No id is shown with less of it: so much of it is the time.
const LEAST_OF_ID: usize = 8;

impl Place {
    /// Opens the file that is meant, to look at it. It has to be there. If it is not known to be the
    /// user's, that is said, unless it was agreed to adopt it.
    pub(super) fn open(of: &OfStore) -> Result<Self> {
        let place = Self::found(of)?;
        if of.adopt_store {
            return place.own(of);
        }
        tell_unless_known(&place.store);
        Ok(place)
    }

    /// Opens the file that is meant, to do something about it: it has to be the user's.
    pub(super) fn open_own(of: &OfStore) -> Result<Self> {
        Self::found(of)?.own(of)
    }

    fn own(self, of: &OfStore) -> Result<Self> {
        let store = adopted(self.store, Adoption::of(of.adopt_store))?;
        Ok(Self { store: store.redact_with(sink::redactor()), root: self.root })
    }

    fn found(of: &OfStore) -> Result<Self> {
        let place = of.project.clone().unwrap_or_else(|| PathBuf::from("."));
        if !place.exists() {
            let place = place.display();
            return Err(
                Stop::usage(format!("there is no `{place}`; name a project's folder")).into()
            );
        }
        let project = Project::find(&place);
        let file = match &of.store {
            Some(file) => file.clone(),
            None => project.config.store.file(&project.root),
        };
        let root = project.root.clone();
        // Before anything is said or written.
        if root.join(CONFIG_FILE).is_file() {
            keys_outside(&root)?;
            drop(super::super::whole::Whole::at(&root));
        }
        if of.store.is_none() {
            stays_inside(&root, &file)?;
        }
        let store = match Store::open_existing(&file) {
            Ok(store) => store,
            Err(error) if error.kind() == StoreErrorKind::Missing => return Err(none(&file, of)),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { store: store.redact_with(sink::redactor()), root })
    }

    /// The run of this id, of this beginning of one, or the newest.
    pub(super) fn run(&self, named: &str) -> Result<RunInfo> {
        if named == LAST {
            let mut newest = RunQuery::default();
            newest.limit = Some(1);
            let newest = self.store.runs(&newest)?.pop();
            return newest.ok_or_else(|| anyhow::anyhow!("{} has no run yet", self.file()));
        }
        self.info(self.store.find(named)?)
    }

    /// What is known of a run that is there.
    pub(super) fn info(&self, run: RunId) -> Result<RunInfo> {
        let info = self.store.run(run)?;
        info.ok_or_else(|| anyhow::anyhow!("run {run} is gone from {}", self.file()))
    }

    /// Hands over every record of a run behind `after`, in order.
    pub(super) fn each(
        &self,
        run: RunId,
        after: u64,
        mut each: impl FnMut(Entry) -> Result<()>,
    ) -> Result<u64> {
        let mut last = after;
        loop {
            let page = self.store.records(run, last, PAGE)?;
            let is_last = page.len() < PAGE;
            for record in page {
                last = record.seq;
                each(Entry::of(run, record))?;
            }
            if is_last {
                return Ok(last);
            }
        }
    }

    /// Every record of a run.
    pub(super) fn entries(&self, run: RunId) -> Result<Vec<Entry>> {
        let mut all = Vec::new();
        self.each(run, 0, |entry| {
            all.push(entry);
            Ok(())
        })?;
        Ok(all)
    }

    /// So much of an id that it names no other run.
    pub(super) fn short(&self, run: RunId) -> String {
        let id = run.to_string();
        let lengths = (LEAST_OF_ID..id.len()).filter(|end| id.is_char_boundary(*end));
        let found = lengths.map(|end| &id[..end]).find(|short| {
            // A bar at the end reads as if something were missing.
            !short.ends_with('-') && self.store.find(short).is_ok_and(|found| found == run)
        });
        found.unwrap_or(&id).to_owned()
    }

    /// What is wanted of a run and will not be done before somebody takes it up again. Whoever
    /// drives a run does it at once.
    pub(super) fn wanted(&self, info: &RunInfo) -> Vec<Wish> {
        if info.driven || info.status == RunStatus::Ended {
            return Vec::new();
        }
        // What else there is to say of the run does not depend on it.
        self.store.wanted(info.id).unwrap_or_default()
    }

    /// The file, as people write it.
    pub(super) fn file(&self) -> String {
        shown(self.store.path())
    }
}

fn shown(file: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here.as_deref().and_then(|here| file.strip_prefix(here).ok());
    for_shell(short.unwrap_or(file))
}

fn none(file: &Path, of: &OfStore) -> anyhow::Error {
    let file = shown(file);
    if of.store.is_some() {
        return Stop::usage(format!(
            "there is no `{file}`; name a file that runs were recorded to"
        ))
        .into();
    }
    anyhow::anyhow!(
        "no runs are recorded here: there is no {file}. `tenure run` records in a project that has \
         a {CONFIG_FILE}; for another one say -C PATH, for another file --store FILE"
    )
}

/// Whether an id names nothing, or several.
pub(super) fn is_unknown(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::Unknown | StoreErrorKind::Ambiguous)
}
