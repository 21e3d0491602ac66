//! What tenure-core uses of tokio-util: a tracker, whose tasks are explored.

pub mod task {
    //! Tracked tasks.

    use shuttle::future::JoinHandle as Explored;
    use shuttle::sync::Mutex;
    use std::future::{Future, poll_fn};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    /// Tracks the tasks that it spawned.
    #[derive(Clone, Default)]
    pub struct TaskTracker(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        running: usize,
        wakers: Vec<Waker>,
    }

    impl TaskTracker {
        /// A tracker without tasks.
        pub fn new() -> Self {
            Self::default()
        }

        /// Spawns and tracks.
        pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
        where
            F: Future + Send + 'static,
            F::Output: Send + 'static,
        {
            self.0.lock().unwrap().running += 1;
            let tracker = self.clone();
            JoinHandle(shuttle::future::spawn(async move {
                let output = future.await;
                let wakers = {
                    let mut state = tracker.0.lock().unwrap();
                    state.running -= 1;
                    std::mem::take(&mut state.wakers)
                };
                wakers.into_iter().for_each(Waker::wake);
                output
            }))
        }

        /// Spawns and tracks: there is one runtime.
        pub fn spawn_on<F, H>(&self, future: F, _handle: &H) -> JoinHandle<F::Output>
        where
            F: Future + Send + 'static,
            F::Output: Send + 'static,
        {
            self.spawn(future)
        }

        /// Nothing to do: `wait` looks at the tasks alone.
        pub fn close(&self) {}

        /// Nothing to do.
        pub fn reopen(&self) {}

        /// Waits until no task is left.
        pub async fn wait(&self) {
            poll_fn(|cx| {
                let mut state = self.0.lock().unwrap();
                if state.running == 0 {
                    return Poll::Ready(());
                }
                state.wakers.push(cx.waker().clone());
                Poll::Pending
            })
            .await;
        }
    }

    /// A spawned task.
    pub struct JoinHandle<T>(Explored<T>);

    impl<T> JoinHandle<T> {
        /// Aborts it.
        pub fn abort(&self) {
            self.0.abort();
        }
    }

    impl<T> Future for JoinHandle<T> {
        type Output = Result<T, JoinError>;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            Pin::new(&mut self.0).poll(cx).map(|result| result.map_err(|_| JoinError))
        }
    }

    /// The task was aborted.
    #[derive(Debug)]
    pub struct JoinError;

    impl JoinError {
        /// A panic ends the exploration, so it never gets here.
        pub fn is_panic(&self) -> bool {
            false
        }
    }
}
