//! Taking times.

use std::cell::Cell;
use std::hint::black_box;
use std::io;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

/// What every figure is measured with.
pub(crate) struct Bench {
    rounds: usize,
    runtime: Runtime,
    samples: Cell<usize>,
}

impl Bench {
    pub(crate) fn new(rounds: usize) -> io::Result<Self> {
        Ok(Self { rounds, runtime: current_thread()?, samples: Cell::new(0) })
    }

    /// Runs a sample on this thread. The sample takes the time itself, so that what it sets up and
    /// the runtime's own entry are not part of it.
    ///
    /// Where things lie in the heap is worth a few percent, and it is the same in every round if
    /// every round allocates the same. So each sample starts behind another amount of padding, and
    /// the minimum is over many layouts too.
    pub(crate) fn on_thread(&self, sample: impl Future<Output = f64>) -> f64 {
        let samples = self.samples.get();
        self.samples.set(samples + 1);
        let padding = [samples % 61, samples % 7].map(|at| vec![0_u8; 64 * at + 16]);
        let took = self.runtime.block_on(sample);
        drop(black_box(padding));
        took
    }

    /// Lets the contenders take turns, and gives the best result of each.
    ///
    /// In every round each contender takes one sample. The order is turned round by round and
    /// reversed every other time, so nobody always comes first, and nobody always comes behind the
    /// same other.
    pub(crate) fn race<const N: usize>(
        &self,
        contenders: [&mut dyn FnMut() -> f64; N],
    ) -> [f64; N] {
        race(self.rounds, contenders)
    }

    /// The same with more rounds, where a difference of one percent counts.
    pub(crate) fn close_race<const N: usize>(
        &self,
        contenders: [&mut dyn FnMut() -> f64; N],
    ) -> [f64; N] {
        race(4 * self.rounds, contenders)
    }
}

impl Bench {
    /// The same with fewer rounds, one for every `share`: where a sample takes long, because it waits
    /// for something that is not ours.
    pub(crate) fn slow_race<const N: usize>(
        &self,
        share: usize,
        contenders: [&mut dyn FnMut() -> f64; N],
    ) -> [f64; N] {
        race((self.rounds / share).max(3), contenders)
    }
}

fn race<const N: usize>(rounds: usize, contenders: [&mut dyn FnMut() -> f64; N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    for round in 0..rounds {
        for turn in 0..N {
            let turn = if round % 2 == 0 { turn } else { N - 1 - turn };
            let at = (turn + round / 2) % N;
            best[at] = best[at].min(contenders[at]());
        }
    }
    best
}

/// The runtime that everything but the concurrent runs is measured on.
pub(crate) fn current_thread() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Nanoseconds for one iteration of `body`, as the mean of a batch. A first one is not counted.
pub(crate) async fn timed(iterations: usize, mut body: impl AsyncFnMut()) -> f64 {
    body().await;
    let start = Instant::now();
    for _ in 0..iterations {
        body().await;
    }
    since(start) / iterations as f64
}

/// Nanoseconds since `start`.
pub(crate) fn since(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn contenders_take_turns_and_the_best_of_each_counts() {
        let order = RefCell::new(String::new());
        let mut times = [3.0, 1.0, 2.0].into_iter().cycle();
        let bench = Bench::new(3).unwrap();
        let best = bench.race([
            &mut || {
                order.borrow_mut().push('a');
                times.next().unwrap()
            },
            &mut || {
                order.borrow_mut().push('b');
                5.0
            },
        ]);
        assert_eq!(best, [1.0, 5.0]);
        assert_eq!(*order.borrow(), "abbaba");
    }
}
