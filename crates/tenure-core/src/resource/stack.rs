//! The stack of what was acquired.

use crate::BoxFuture;
use crate::error::BoxError;
use crate::kernel::caught;
use crate::sync::Mutex;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

type Release = Box<dyn FnOnce() -> BoxFuture<'static, Result<(), BoxError>> + Send>;

/// How long the release of one resource may take.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// What was acquired and has to be released.
#[derive(Clone, Default)]
pub struct ResourceStack {
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    last_id: u64,
    resources: Vec<Resource>,
}

struct Resource {
    id: u64,
    name: Arc<str>,
    release: Release,
}

impl ResourceStack {
    /// Registers something with the way to release it.
    pub fn register<F, Fut>(&self, name: impl Into<Arc<str>>, release: F) -> ResourceHandle
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let mut held = self.held.lock();
        held.last_id += 1;
        let id = held.last_id;
        held.resources.push(Resource {
            id,
            name: name.into(),
            release: Box::new(move || Box::pin(release())),
        });
        ResourceHandle {
            stack: self.clone(),
            id,
        }
    }

    /// How many resources are held.
    pub fn len(&self) -> usize {
        self.held.lock().resources.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Releases everything, last to first, each within its limit. Returns what leaked, and why.
    pub(crate) async fn release_all(&self, owner: &str) -> Vec<(Arc<str>, String)> {
        let mut leaked = Vec::new();
        loop {
            let Some(resource) = self.held.lock().resources.pop() else {
                return leaked;
            };
            if let Err(reason) = release(resource.release).await {
                tracing::warn!(
                    agent = owner,
                    resource = &*resource.name,
                    "leaked: {reason}"
                );
                leaked.push((resource.name, reason));
            }
        }
    }

    /// Drops everything without waiting. Each release gets one poll, so that what can be released
    /// at once is; the rest is reported.
    pub(crate) fn abandon(&self, owner: &str) -> Vec<(Arc<str>, String)> {
        let resources = std::mem::take(&mut self.held.lock().resources);
        let mut leaked = Vec::new();
        for resource in resources.into_iter().rev() {
            let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
            let polled = caught(|| (resource.release)().as_mut().poll(cx));
            let reason = match polled {
                std::task::Poll::Ready(Ok(Ok(()))) => continue,
                std::task::Poll::Ready(Ok(Err(error))) => error.to_string(),
                std::task::Poll::Ready(Err(panic)) => format!("its release panicked: {panic}"),
                std::task::Poll::Pending => "no time was left to release it".to_owned(),
            };
            tracing::warn!(
                agent = owner,
                resource = &*resource.name,
                "leaked: {reason}"
            );
            leaked.push((resource.name, reason));
        }
        leaked
    }

    fn forget(&self, id: u64) -> Option<Release> {
        let mut held = self.held.lock();
        let at = held
            .resources
            .iter()
            .position(|resource| resource.id == id)?;
        Some(held.resources.remove(at).release)
    }
}

async fn release(release: Release) -> Result<(), String> {
    let mut future = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(release)) {
        Ok(future) => future,
        Err(panic) => {
            return Err(format!(
                "its release panicked: {}",
                crate::kernel::panic_message(&*panic)
            ));
        }
    };
    let guarded = poll_fn(|cx| caught(|| future.as_mut().poll(cx)));
    match tokio::time::timeout(RELEASE_LIMIT, guarded).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(panic)) => Err(format!("its release panicked: {panic}")),
        Err(_) => Err(format!("its release took longer than {RELEASE_LIMIT:?}")),
    }
}

impl fmt::Debug for ResourceStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held.lock();
        f.debug_list()
            .entries(held.resources.iter().map(|resource| &resource.name))
            .finish()
    }
}

/// One registered resource. Dropping the handle changes nothing; the instance still releases it.
#[derive(Debug)]
pub struct ResourceHandle {
    stack: ResourceStack,
    id: u64,
}

impl ResourceHandle {
    /// Releases it now, ahead of the others. Does nothing if that has already happened.
    pub async fn release(self) -> Result<(), BoxError> {
        match self.stack.forget(self.id) {
            Some(run) => release(run).await.map_err(Into::into),
            None => Ok(()),
        }
    }

    /// Takes it off the stack without releasing it: somebody else owns it now.
    pub fn forget(self) {
        self.stack.forget(self.id);
    }
}
