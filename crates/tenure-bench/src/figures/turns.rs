//! A turn without tools, and what each tool step adds to it.

use super::Measured;
use crate::fakes::{BaseParts, Scripted, base_turn, quick, started, turn};
use crate::measure::{Bench, timed};
use crate::report::Figure;
use std::sync::Arc;

/// Tool steps of the long run: as many as a turn may make by default. With many more, what is
/// measured is the allocator, whose caches no longer hold what a turn gives back.
const STEPS: usize = 10;
const TURNS: usize = 1_000;
const LONG_RUNS: usize = 80;

pub(crate) fn measure(bench: &Bench) -> Measured {
    let base = |steps: usize, runs: usize| {
        bench.on_thread(async {
            let agent = BaseParts::quick(Arc::new(Scripted { steps })).agent();
            timed(runs, async || base_turn(&agent).await).await
        })
    };
    let tenure = |steps: usize, runs: usize| {
        bench.on_thread(async {
            let agent = started(quick(Scripted { steps })).await;
            timed(runs, async || turn(&agent).await).await
        })
    };
    let [base_turn, tenure_turn, base_run, tenure_run] = bench.race([
        &mut || base(0, TURNS),
        &mut || tenure(0, TURNS),
        &mut || base(STEPS, LONG_RUNS),
        &mut || tenure(STEPS, LONG_RUNS),
    ]);
    let per_step = |run: f64, turn: f64| (run - turn) / STEPS as f64;
    Ok(vec![
        Figure::ratio(
            "step_ratio",
            2.0,
            ("tenure_ns", per_step(tenure_run, tenure_turn)),
            ("base_ns", per_step(base_run, base_turn)),
        ),
        Figure::ratio("turn_ratio", 4.5, ("tenure_ns", tenure_turn), ("base_ns", base_turn)),
    ])
}
