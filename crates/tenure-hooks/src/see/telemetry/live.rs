//! The exporters, for as long as an agent uses them.

use super::super::seen::lock;
use super::pipe::Pipe;
use super::{Config, Pipeline};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tenure_core::{Error, InstanceId};

/// The exporters that several agents share. They are there while one of the agents is.
#[derive(Default)]
pub(super) struct Live {
    users: Mutex<HashSet<InstanceId>>,
    pipe: RwLock<Option<Pipeline>>,
}

impl Live {
    /// What spans go into, if there is anything.
    #[inline]
    pub(super) fn pipe(&self) -> Option<Pipeline> {
        self.pipe.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An instance starts. The first one opens the exporters.
    pub(super) fn enter(&self, config: &Arc<Config>, user: InstanceId) -> Result<Pipeline, Error> {
        let mut users = lock(&self.users);
        let known = self.pipe();
        let pipe = match known {
            Some(pipe) => pipe,
            None => {
                let pipe = Arc::new(Pipe::open(config.clone())?);
                *self.pipe.write().unwrap_or_else(PoisonError::into_inner) = Some(pipe.clone());
                pipe
            }
        };
        users.insert(user);
        Ok(pipe)
    }

    /// An instance is over. The last one gets the exporters, to close them.
    pub(super) fn leave(&self, user: InstanceId) -> Option<Pipeline> {
        let mut users = lock(&self.users);
        if !users.remove(&user) || !users.is_empty() {
            return None;
        }
        self.pipe.write().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("users", &lock(&self.users).len()).finish_non_exhaustive()
    }
}
