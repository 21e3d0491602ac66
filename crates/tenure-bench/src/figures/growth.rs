//! Whether a step costs more the longer the conversation is, while a hook keeps every request.
//!
//! The long run and the short runs make the same number of steps in a sample. What is kept is let
//! go between the runs, outside of the time taken, and the hook's list has its room beforehand: the
//! question is what the agent costs, not what a list does.

use super::Measured;
use crate::fakes::{BaseParts, INPUT, Scripted, quick, started};
use crate::measure::{Bench, since};
use crate::report::Figure;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tenure::context::TurnCx;
use tenure::hook::{AgentLifecycle, Flow, HookError, Registration};
use tenure::lifecycle;
use tenure::model::ModelRequest;

const LONG: usize = 400;
const SHORT: usize = 50;
const TURNS: usize = LONG / SHORT;

/// Keeps every request it sees.
struct Keep(Mutex<Vec<ModelRequest>>);

impl Keep {
    fn let_go(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[lifecycle]
impl AgentLifecycle for Keep {
    async fn before_model(
        &self,
        _cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        Ok(Flow::Continue)
    }
}

pub(crate) fn measure(bench: &Bench) -> Measured {
    let tenure = |steps: usize, runs: usize| {
        bench.on_thread(async {
            let keep = Arc::new(Keep(Mutex::new(Vec::with_capacity(LONG + 1))));
            let hook = Registration::shared(keep.clone());
            let agent = started(quick(Scripted { steps }).with_lifecycle(hook)).await;
            let mut took = 0.0;
            for _ in 0..runs {
                let start = Instant::now();
                let report = agent.run(INPUT).await.expect("the turn succeeds");
                took += since(start);
                drop(black_box(report));
                keep.let_go();
            }
            took / runs as f64
        })
    };
    let base = |steps: usize, runs: usize| {
        bench.on_thread(async {
            let agent = BaseParts::quick(Arc::new(Scripted { steps })).agent();
            let mut took = 0.0;
            for _ in 0..runs {
                let start = Instant::now();
                let reply = agent.run(INPUT).await.expect("the turn succeeds");
                took += since(start);
                drop(black_box(reply));
            }
            took / runs as f64
        })
    };
    let [turn, short, long, base_turn, base_short, base_long] = bench.race([
        &mut || tenure(0, TURNS),
        &mut || tenure(SHORT, TURNS),
        &mut || tenure(LONG, 1),
        &mut || base(0, TURNS),
        &mut || base(SHORT, TURNS),
        &mut || base(LONG, 1),
    ]);
    let per_step = |run: f64, turn: f64, steps: usize| (run - turn) / steps as f64;
    let figure = Figure::ratio(
        "growth_ratio",
        1.15,
        ("long_step_ns", per_step(long, turn, LONG)),
        ("short_step_ns", per_step(short, turn, SHORT)),
    );
    // The loop by hand keeps nothing; it shows what the allocator alone does to a long run.
    Ok(vec![
        figure
            .with("base_long_step_ns", per_step(base_long, base_turn, LONG))
            .with("base_short_step_ns", per_step(base_short, base_turn, SHORT)),
    ])
}
