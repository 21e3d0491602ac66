//! Synchronous code on a thread that can be abandoned.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tokio::sync::oneshot;

/// Runs blocking code on a thread of its own and waits for it.
///
/// A hook that blocks its thread cannot be stopped, and holds up everything else there. Behind
/// `blocking` it can be bounded: when the hook's time is up the thread is abandoned, and that is
/// logged. The code itself runs on until it returns, so it must own everything it needs.
///
/// A panic in `code` goes on in the caller.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let sum = tenure_core::blocking(|| (1..=10).sum::<u32>()).await;
/// assert_eq!(sum, 55);
/// # })
/// ```
#[doc(alias = "to_thread")]
pub async fn blocking<T: Send + 'static>(code: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = oneshot::channel();
    let thread = std::thread::Builder::new().name("tenure-blocking".to_owned()).spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(code));
        // Nobody waits any more if the caller gave up; that was reported there.
        let _ = done.send(result);
    });
    if let Err(error) = thread {
        panic!("no thread for blocking code: {error}");
    }
    let mut waiting = Waiting { over: false };
    let result = wait.await;
    waiting.over = true;
    match result {
        Ok(Ok(value)) => value,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("the thread of blocking code ended without a result"),
    }
}

struct Waiting {
    over: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.over {
            tracing::warn!("blocking code was abandoned; its thread runs on until it returns");
        }
    }
}
