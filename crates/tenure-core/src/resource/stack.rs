//! The stack of what was acquired.

use crate::BoxFuture;
use crate::error::BoxError;
use crate::kernel::{caught, panic_message};
use crate::sync::Mutex;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::sleep;

type Release = Box<dyn FnOnce() -> BoxFuture<'static, Result<(), BoxError>> + Send>;

/// How long the release of one resource may take, where nothing else is said.
pub(crate) const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// What was acquired and has to be released.
#[derive(Clone, Default)]
pub struct ResourceStack {
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    last_id: u64,
    resources: Vec<Resource>,
    /// What could not be released, and why, until that is reported.
    leaked: Vec<Leak>,
}

type Leak = (Arc<str>, String);

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
        ResourceHandle { stack: self.clone(), id }
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
    pub(crate) async fn release_all(&self, owner: &str, limit: Duration) -> Vec<Leak> {
        loop {
            let Some(Resource { name, release, .. }) = self.held.lock().resources.pop() else {
                return std::mem::take(&mut self.held.lock().leaked);
            };
            let mut releasing = Releasing { stack: self, owner, name: Some(name) };
            match run(release, limit).await {
                Ok(()) => releasing.name = None,
                Err(reason) => releasing.leaked(reason),
            }
        }
    }

    /// Drops everything without waiting. Each release gets one poll, so that what can be released
    /// at once is; the rest is reported.
    pub(crate) fn abandon(&self, owner: &str) -> Vec<Leak> {
        let resources = std::mem::take(&mut self.held.lock().resources);
        for Resource { name, release, .. } in resources.into_iter().rev() {
            let mut releasing = Releasing { stack: self, owner, name: Some(name) };
            let cx = &mut Context::from_waker(Waker::noop());
            match caught(|| release().as_mut().poll(cx)) {
                Poll::Ready(Ok(Ok(()))) => releasing.name = None,
                Poll::Ready(Ok(Err(error))) => releasing.leaked(error.to_string()),
                Poll::Ready(Err(panic)) => releasing.leaked(panicked(&panic)),
                Poll::Pending => {}
            }
        }
        std::mem::take(&mut self.held.lock().leaked)
    }

    fn forget(&self, id: u64) -> Option<Release> {
        let mut held = self.held.lock();
        let at = held.resources.iter().position(|resource| resource.id == id)?;
        Some(held.resources.remove(at).release)
    }
}

/// A resource on its way out. One that is dropped before it is released has leaked.
struct Releasing<'a> {
    stack: &'a ResourceStack,
    owner: &'a str,
    name: Option<Arc<str>>,
}

impl Releasing<'_> {
    fn leaked(&mut self, reason: String) {
        if let Some(name) = self.name.take() {
            tracing::warn!(agent = self.owner, resource = &*name, "leaked: {reason}");
            self.stack.held.lock().leaked.push((name, reason));
        }
    }
}

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        self.leaked("no time was left to release it".to_owned());
    }
}

fn panicked(message: &str) -> String {
    format!("its release panicked: {message}")
}

async fn run(release: Release, limit: Duration) -> Result<(), String> {
    let mut future = match catch_unwind(AssertUnwindSafe(release)) {
        Ok(future) => future,
        Err(panic) => return Err(panicked(&panic_message(&*panic))),
    };
    // Armed when it is pending: what is released at once needs no runtime.
    let mut timer = None;
    let released = poll_fn(|cx| match caught(|| future.as_mut().poll(cx)) {
        Poll::Ready(released) => Poll::Ready(Some(released)),
        Poll::Pending => {
            let timer = timer.get_or_insert_with(|| Box::pin(sleep(limit)));
            timer.as_mut().poll(cx).map(|()| None)
        }
    });
    match released.await {
        Some(Ok(Ok(()))) => Ok(()),
        Some(Ok(Err(error))) => Err(error.to_string()),
        Some(Err(panic)) => Err(panicked(&panic)),
        None => Err(format!("its release took longer than {limit:?}")),
    }
}

impl fmt::Debug for ResourceStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held.lock();
        f.debug_list().entries(held.resources.iter().map(|resource| &resource.name)).finish()
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
            Some(release) => run(release, RELEASE_LIMIT).await.map_err(Into::into),
            None => Ok(()),
        }
    }

    /// Takes it off the stack without releasing it: somebody else owns it now.
    pub fn forget(self) {
        self.stack.forget(self.id);
    }
}
