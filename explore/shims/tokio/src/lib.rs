//! What tenure-core uses of tokio, for exploring schedules: there is always a runtime, and no
//! timer ever fires. So whoever waits for something that never comes is found as a deadlock.

pub use real::sync;

pub mod runtime {
    //! There is always a runtime.

    /// A handle to it.
    #[derive(Clone)]
    pub struct Handle;

    impl Handle {
        /// The runtime.
        pub fn try_current() -> Result<Handle, std::convert::Infallible> {
            Ok(Handle)
        }
    }
}

pub mod time {
    //! Time that passes without anything being due.

    use std::future::Future;
    use std::ops::Add;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    /// A point in time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Instant(std::time::Instant);

    impl Instant {
        /// Now.
        pub fn now() -> Self {
            Self(std::time::Instant::now())
        }

        /// No time passes while a schedule is explored, so that a seed gives the same run.
        pub fn elapsed(&self) -> Duration {
            Duration::ZERO
        }

        /// The time between two points; no time passes, so there is none but what was added.
        pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
            self.0.saturating_duration_since(earlier.0)
        }

        /// A point in time so much later, if there is one.
        pub fn checked_add(&self, more: Duration) -> Option<Self> {
            self.0.checked_add(more).map(Self)
        }

        /// As the standard library has it.
        pub fn into_std(self) -> std::time::Instant {
            self.0
        }
    }

    impl Add<Duration> for Instant {
        type Output = Self;

        fn add(self, more: Duration) -> Self {
            Self(self.0 + more)
        }
    }

    /// Never due.
    pub struct Sleep;

    impl Sleep {
        /// Still never due.
        pub fn reset(self: Pin<&mut Self>, _deadline: Instant) {}
    }

    impl Future for Sleep {
        type Output = ();

        fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }

    /// Never due.
    pub fn sleep(_duration: Duration) -> Sleep {
        Sleep
    }

    /// Never due.
    pub fn sleep_until(_deadline: Instant) -> Sleep {
        Sleep
    }

    /// Never times out.
    pub async fn timeout<F: Future>(
        _duration: Duration,
        future: F,
    ) -> Result<F::Output, std::convert::Infallible> {
        Ok(future.await)
    }
}
