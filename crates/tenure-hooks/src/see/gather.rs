//! What agents say, gathered for a thread that makes something of it.
//!
//! An agent only adds a record to a list. The thread takes the whole list, after it has let it grow
//! for a moment: to wake a thread costs more than to fill in many records.

use super::seen::lock;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Records that wait together.
pub(super) trait Batch: Default + Send + 'static {
    /// How many there are.
    fn len(&self) -> usize;

    /// Forgets them, and keeps their room if it is not too much.
    fn clear(&mut self);
}

/// A list of records that is bounded, and a thread that takes them.
pub(super) struct Gather<B: Batch> {
    shared: Arc<Shared<B>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared<B> {
    state: Mutex<State<B>>,
    wakes: Condvar,
    /// How many records may wait, those included that are being worked on.
    most: usize,
    /// How long records are gathered.
    pause: Duration,
    /// Of those that were taken, how many are not done.
    taken: AtomicUsize,
    /// How many found no room, and are not told of yet.
    lost: AtomicU64,
}

struct State<B> {
    waiting: B,
    /// Whether what waits is to be taken at once.
    is_urgent: bool,
    is_closed: bool,
    thread: Thread,
}

/// What the thread does, for whoever has to wake it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    Works,
    /// It looks again by itself.
    Pauses,
    /// It looks again once somebody says so.
    Rests,
}

/// Records that the thread has taken.
pub(super) struct Taken<'a> {
    taken: &'a AtomicUsize,
    lost: &'a AtomicU64,
}

impl Taken<'_> {
    /// So many more of them are done: there is room for others.
    pub(super) fn done(&self, records: usize) {
        self.taken.fetch_sub(records, Ordering::Relaxed);
    }

    /// How many were lost. Whoever asks tells of them.
    pub(super) fn lost(&self) -> u64 {
        // Mostly none are: looking is cheaper than changing.
        if self.lost.load(Ordering::Relaxed) == 0 {
            0
        } else {
            self.lost.swap(0, Ordering::Relaxed)
        }
    }
}

impl<B: Batch> Gather<B> {
    /// Starts the thread. `work` gets what was gathered, in its order, and once more nothing if
    /// something was lost at last.
    pub(super) fn start(
        name: &str,
        (most, pause): (usize, Duration),
        work: impl FnMut(&mut B, &Taken<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let state = State {
            waiting: B::default(),
            is_urgent: false,
            is_closed: false,
            thread: Thread::Works,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            wakes: Condvar::new(),
            most,
            pause,
            taken: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        });
        let own = shared.clone();
        let thread =
            std::thread::Builder::new().name(name.to_owned()).spawn(move || own.run(work))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Adds one record if there is room for it, else counts it as lost and gives it back. What is
    /// urgent is taken at once, with all that is before it.
    ///
    /// `add` adds exactly one. Others wait while it does, so it does nothing else.
    pub(super) fn put<F: FnOnce(&mut B)>(&self, is_urgent: bool, add: F) -> Result<(), F> {
        let shared = &*self.shared;
        let mut state = lock(&shared.state);
        let count = state.waiting.len() + 1;
        if state.is_closed || count + shared.taken.load(Ordering::Relaxed) > shared.most {
            shared.lost.fetch_add(1, Ordering::Relaxed);
            return Err(add);
        }
        add(&mut state.waiting);
        let is_urgent = is_urgent || count >= shared.most.div_ceil(2);
        state.is_urgent |= is_urgent;
        let wakes = match state.thread {
            Thread::Works => false,
            Thread::Pauses => is_urgent,
            Thread::Rests => true,
        };
        if wakes {
            // Nobody else has to.
            state.thread = Thread::Works;
            drop(state);
            shared.wakes.notify_one();
        }
        Ok(())
    }

    /// How many records found no room, and are not told of yet.
    pub(super) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Has the thread end, once it has worked on everything that is there.
    fn end(&self) {
        lock(&self.shared.state).is_closed = true;
        self.shared.wakes.notify_one();
    }

    /// Works on everything that is there, and stops. It blocks.
    pub(super) fn close(&self) {
        self.end();
        if let Some(thread) = lock(&self.thread).take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

/// Nobody is left who could add anything. What is there is still worked on.
impl<B: Batch> Drop for Gather<B> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<B: Batch> Shared<B> {
    fn run(&self, mut work: impl FnMut(&mut B, &Taken<'_>)) {
        let told = Taken { taken: &self.taken, lost: &self.lost };
        let mut batch = B::default();
        loop {
            // Also after work: whoever says much does not have to wake this thread each time.
            let mut state = self.gathered(lock(&self.state));
            if state.waiting.len() == 0 && !state.is_closed {
                state.thread = Thread::Rests;
                let nothing = |state: &mut State<B>| state.waiting.len() == 0 && !state.is_closed;
                state =
                    self.wakes.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
                state = self.gathered(state);
            }
            let is_over = state.is_closed;
            state.thread = Thread::Works;
            state.is_urgent = false;
            std::mem::swap(&mut batch, &mut state.waiting);
            let count = batch.len();
            self.taken.store(count, Ordering::Relaxed);
            drop(state);
            // At last it is told once more, if there is something to say of what was lost.
            if count > 0 || (is_over && self.lost.load(Ordering::Relaxed) > 0) {
                let worked = catch_unwind(AssertUnwindSafe(|| work(&mut batch, &told)));
                if worked.is_err() {
                    // Its records are lost, and others are not.
                    self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
                    tracing::warn!("what an agent did could not be told: the work panicked");
                }
                batch.clear();
                self.taken.store(0, Ordering::Relaxed);
            }
            if count == 0 && is_over {
                return;
            }
        }
    }

    /// Lets records come for a moment, unless there are enough, or one cannot wait.
    fn gathered<'a>(&self, mut state: MutexGuard<'a, State<B>>) -> MutexGuard<'a, State<B>> {
        let not_yet = |state: &mut State<B>| !state.is_urgent && !state.is_closed;
        if not_yet(&mut state) {
            state.thread = Thread::Pauses;
            let waited = self.wakes.wait_timeout_while(state, self.pause, not_yet);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;

    impl Batch for Vec<u32> {
        fn len(&self) -> usize {
            Self::len(self)
        }

        fn clear(&mut self) {
            Self::clear(self);
        }
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(5);

    /// One that hands on what it takes.
    /// What was worked off together, and how much was lost before it.
    type Told = (Vec<u32>, u64);

    fn told(most: usize, pause: Duration) -> (Gather<Vec<u32>>, Receiver<Told>) {
        let (tells, heard) = channel();
        let work = move |batch: &mut Vec<u32>, taken: &Taken<'_>| {
            // Whoever does not listen any more is not told.
            let _ = tells.send((batch.clone(), taken.lost()));
        };
        (Gather::start("test", (most, pause), work).unwrap(), heard)
    }

    #[test]
    fn records_are_taken_in_their_order_and_all_of_them_before_the_end() {
        for pause in [Duration::ZERO, SHORT, LONG] {
            let (gather, heard) = told(5000, pause);
            let began = Instant::now();
            for number in 0..2000 {
                assert!(gather.put(false, |batch| batch.push(number)).is_ok());
            }
            gather.close();
            assert!(began.elapsed() < Duration::from_secs(30), "the end did not wake it");
            let all: Vec<u32> = heard.try_iter().flat_map(|(batch, _)| batch).collect();
            assert_eq!(all, (0..2000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_said_together_is_taken_together_and_soon() {
        let (gather, heard) = told(5000, SHORT);
        for round in 0..3 {
            // So that it rests.
            std::thread::sleep(SHORT * 6);
            let began = Instant::now();
            for number in 0..100 {
                assert!(gather.put(false, |batch| batch.push(number)).is_ok());
            }
            let put = began.elapsed();
            let (batch, _) = heard.recv_timeout(Duration::from_secs(10)).unwrap();
            // On a machine that is busy the first ones may be taken before the last ones are there.
            assert!(batch.len() == 100 || put > SHORT / 2, "{round}: {} of 100", batch.len());
            let mut count = batch.len();
            while count < 100 {
                count += heard.recv_timeout(Duration::from_secs(10)).unwrap().0.len();
            }
        }
    }

    #[test]
    fn what_is_urgent_does_not_wait_and_neither_does_a_list_that_is_half_full() {
        let (gather, heard) = told(100, LONG);
        for round in 0..2 {
            assert!(gather.put(false, |batch| batch.push(1)).is_ok());
            assert!(heard.recv_timeout(SHORT * 4).is_err(), "it did not gather: {round}");
            assert!(gather.put(true, |batch| batch.push(2)).is_ok());
            assert_eq!(heard.recv_timeout(LONG / 2).unwrap().0, [1, 2]);
        }
        for number in 0..50 {
            assert!(gather.put(false, |batch| batch.push(number)).is_ok());
        }
        assert_eq!(heard.recv_timeout(LONG / 2).unwrap().0.len(), 50);
    }

    #[test]
    fn what_finds_no_room_is_counted_and_told_of() {
        let (tells, heard): (Sender<u64>, _) = channel();
        let (begun, begins) = channel();
        let (goes_on, waits) = channel::<()>();
        let work = move |batch: &mut Vec<u32>, taken: &Taken<'_>| {
            let _ = begun.send(batch.len());
            let _ = waits.recv();
            let _ = tells.send(taken.lost());
        };
        let gather: Gather<Vec<u32>> = Gather::start("test", (4, LONG), work).unwrap();
        for number in 0..2 {
            assert!(gather.put(false, |batch| batch.push(number)).is_ok());
        }
        // Half of the room is taken, and being worked on. It counts as long as it is not done.
        assert_eq!(begins.recv_timeout(LONG / 2).unwrap(), 2);
        let room = (0..10).filter(|_| gather.put(false, |batch| batch.push(0)).is_ok()).count();
        assert_eq!((room, gather.lost()), (2, 8));
        // It is given back, for whoever can do something else with it.
        let (mut alone, refused) =
            (Vec::new(), gather.put(false, |batch: &mut Vec<u32>| batch.push(3)));
        refused.unwrap_err()(&mut alone);
        assert_eq!((alone, gather.lost()), (vec![3], 9));
        drop(goes_on);
        gather.close();
        assert_eq!(heard.iter().sum::<u64>(), 9);
        assert_eq!(gather.lost(), 0);
    }

    #[test]
    fn one_that_is_dropped_still_works_on_what_is_there() {
        let (gather, heard) = told(100, LONG);
        assert!(gather.put(false, |batch| batch.push(7)).is_ok());
        drop(gather);
        assert_eq!(heard.recv_timeout(LONG / 2).unwrap().0, [7]);
        assert!(heard.recv_timeout(LONG / 2).is_err(), "its thread goes on");
    }

    #[test]
    fn what_is_lost_need_not_be_asked_for() {
        let gather = Gather::start("test", (1, Duration::ZERO), |_: &mut Vec<u32>, _: &_| {
            std::thread::sleep(Duration::from_millis(20));
        });
        let gather = gather.unwrap();
        let room = (0..10).filter(|it| gather.put(true, |list| list.push(*it)).is_ok()).count();
        assert!(room < 10);
        gather.close();
        assert!(gather.lost() > 0);
        assert!(gather.put(false, |list| list.push(1)).is_err(), "nobody would work on it");
    }

    #[test]
    fn work_that_panics_loses_its_own_records_only() {
        let (tells, told) = channel();
        let work = move |batch: &mut Vec<u32>, _: &Taken<'_>| {
            assert!(!batch.contains(&1), "this is what is tested");
            let _ = tells.send(batch.clone());
        };
        let gather = Gather::start("test", (8, Duration::ZERO), work).unwrap();
        for record in 1..4 {
            gather.put(true, |list: &mut Vec<u32>| list.push(record)).map_err(drop).unwrap();
            // Each by itself.
            std::thread::sleep(Duration::from_millis(20));
        }
        gather.close();
        assert_eq!(told.try_iter().flatten().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(gather.lost(), 1);
    }
}
