//! Very many runs at the same time, on all cores.
//!
//! Every run has an agent of its own, built, started, used and shut down inside the time taken; on
//! the other side an agent is built by hand. The tool suspends once in every step, so all runs are
//! under way at the same time.

use super::Measured;
use crate::fakes::{BaseParts, Scripted, base_turn, blueprint, slow, turn};
use crate::measure::{Bench, since};
use crate::process::{child, peak_resident};
use crate::report::Figure;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tenure::agent::Blueprint;
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::TaskTracker;

const RUNS: usize = 10_000;
const STEPS: usize = 10;

#[derive(Clone, Copy)]
pub(crate) enum Side {
    Base,
    Tenure,
}

pub(crate) fn measure(bench: &Bench) -> Measured {
    let runtime = all_cores()?;
    let mut base = || runtime.block_on(base_runs());
    let mut tenure = || runtime.block_on(tenure_runs());
    let [base, tenure] = bench.race([&mut base, &mut tenure]);
    let per_run = |ns: f64| ns / RUNS as f64;
    let figure = Figure::ratio(
        "concurrent_ratio",
        2.0,
        ("tenure_ns", per_run(tenure)),
        ("base_ns", per_run(base)),
    );
    Ok(vec![
        figure
            .with("tenure_peak_bytes", child(&["peak", "tenure"])?)
            .with("base_peak_bytes", child(&["peak", "base"])?),
    ])
}

/// The most memory that a process takes which does all the runs once and nothing else.
pub(crate) fn peak(side: Side) -> Result<f64, Box<dyn Error>> {
    let runtime = all_cores()?;
    match side {
        Side::Base => runtime.block_on(base_runs()),
        Side::Tenure => runtime.block_on(tenure_runs()),
    };
    peak_resident()
}

fn all_cores() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

async fn base_runs() -> f64 {
    let parts = Arc::new(BaseParts::slow(Arc::new(Scripted { steps: STEPS })));
    all(|| {
        let parts = parts.clone();
        async move {
            let agent = parts.agent();
            base_turn(&agent).await;
        }
    })
    .await
}

async fn tenure_runs() -> f64 {
    let blueprint = blueprint(slow(Scripted { steps: STEPS }));
    all(|| tenure_run(blueprint.clone())).await
}

async fn tenure_run(blueprint: Blueprint) {
    let agent = blueprint.instance();
    agent.startup().await.expect("nothing can fail at startup");
    turn(&agent).await;
    agent.shutdown().await;
}

/// Nanoseconds from the start of the first run to the end of the last.
async fn all<F>(run: impl Fn() -> F) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    let tracker = TaskTracker::new();
    let start = Instant::now();
    for _ in 0..RUNS {
        tracker.spawn(run());
    }
    tracker.close();
    tracker.wait().await;
    since(start)
}
