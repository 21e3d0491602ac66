//! The right to drive the runs of a project.

use super::super::ground::Ground;
use super::{Life, Place, Recorded};
use crate::exit::Stop;
use crate::terminal::question::is_anybody_there;
use anyhow::{Result, anyhow};
use tenure_core::RunId;
use tenure_core::engine::{NewRun, RunInfo};
use tenure_core::step::WhenWaiting;
use tenure_store::{Begun, Driver, Resume, RunLog, Store};

/// A file of runs that this process may drive. Dropping it gives the right back.
pub(crate) struct Keeper {
    place: Place,
    driver: Driver,
}

impl Keeper {
    /// Takes the right to drive the runs of a project; `what` tells others what for. The file is made
    /// if it is not there.
    pub(crate) fn open(place: Place, what: &str) -> Result<Self> {
        let store = place.open()?;
        Self::drive(place, &store, what)
    }

    /// The same of a file that has to be there.
    pub(crate) fn open_existing(place: Place, what: &str) -> Result<Self> {
        let store = place.open_existing()?;
        Self::drive(place, &store, what)
    }

    fn drive(place: Place, store: &Store, what: &str) -> Result<Self> {
        let driver = store.drive(what).map_err(|error| match error.is_driven() {
            true => anyhow!(
                "{error}\n  wait:      until that is done, and say it again\n  elsewhere: --store FILE \
                 records in a file of its own\n  not:       --no-store records nothing"
            ),
            false => anyhow!(error),
        })?;
        Ok(Self { place, driver })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn store(&self) -> &Store {
        self.driver.store()
    }

    /// The runs that are not over, oldest first.
    pub(crate) fn unfinished(&self) -> Result<Vec<RunInfo>> {
        let mut runs = self.driver.unfinished()?;
        runs.reverse();
        Ok(runs)
    }

    /// A run, by its id or enough of the beginning of it; `last` is the newest that is not over.
    pub(crate) fn find(&self, named: &str) -> Result<RunInfo> {
        if named == "last" {
            let newest = self.driver.unfinished()?.into_iter().next();
            return newest.ok_or_else(|| {
                Stop::usage("the last run is over, and so is every other; see `tenure runs`").into()
            });
        }
        let run = self.store().find(named)?;
        self.store().run(run)?.ok_or_else(|| anyhow!("there is no run {run}"))
    }

    /// Begins a run.
    pub(crate) fn begin(&self, ground: &Ground, run: NewRun, recorded: Recorded) -> Result<Life> {
        let id = run.id;
        match ground.wait(self.driver.begin(run))? {
            Begun::New(log) => Ok(self.life(log, recorded)),
            _ => Err(anyhow!("there is a run {id} already")),
        }
    }

    /// Takes a run up again.
    pub(crate) fn resume(
        &self,
        ground: &Ground,
        run: RunId,
        mode: Resume,
        recorded: Recorded,
    ) -> Result<Life> {
        let log = ground.wait(self.driver.resume(run, mode))?;
        Ok(self.life(log, recorded))
    }

    /// Makes a new run that begins with the record of another one, up to a step.
    pub(crate) fn fork(&self, ground: &Ground, run: RunId, from: &str) -> Result<RunId> {
        Ok(ground.wait(self.driver.fork(run, from))?)
    }

    fn life(&self, log: RunLog, recorded: Recorded) -> Life {
        let when = match is_anybody_there() {
            true => WhenWaiting::Stay,
            false => WhenWaiting::Park,
        };
        Life::new(log, self.store().clone(), self.place.option(), recorded, when)
    }
}
