//! Jobs that hand something back which is no JSON.

use crate::error::StoreError;
use crate::journal::{Job, Tx};
use crate::store::{Store, lock};
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// What a job hands back, once it is on disk.
pub(crate) struct Hand<T>(Arc<Mutex<Option<T>>>);

impl<T> Hand<T> {
    /// For a job that was acknowledged.
    pub(crate) fn take(self) -> T {
        lock(&self.0).take().expect("a job that was acknowledged has run")
    }
}

/// A job that does `work`, and where its result comes out.
pub(crate) fn hand<T: Send + 'static>(
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> (Job, Hand<T>) {
    let cell = Arc::new(Mutex::new(None));
    let result = Hand(cell.clone());
    let job: Job = Box::new(move |tx| {
        let done = work(tx)?;
        *lock(&cell) = Some(done);
        Ok(Value::Null)
    });
    (job, result)
}

impl Store {
    /// As [`Store::write`], with what `work` hands back. Blocks.
    pub(crate) fn write_with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, result) = hand(work);
        self.write(job)?;
        Ok(result.take())
    }

    /// As [`Store::write_async`], with what `work` hands back.
    pub(crate) async fn write_with_async<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, result) = hand(work);
        self.write_async(job).await?;
        Ok(result.take())
    }
}
