//! What one more hook costs: at a point, around a call, and where it has nothing to do.
//!
//! The first hook at a point pays for what all of them need, so the price of one more is the slope
//! from one hook to six, on both sides.

use super::Measured;
use crate::base::{self, NoPoint, Point, Wrapper};
use crate::fakes::{
    AroundModel, AtModel, BaseParts, Elsewhere, Scripted, base_turn, quick, started, turn,
    with_hooks,
};
use crate::measure::{Bench, timed};
use crate::report::Figure;
use std::hint::black_box;
use std::sync::Arc;
use tenure::agent::AgentBuilder;

const FEW: usize = 1;
const MANY: usize = 6;
const TURNS: usize = 500;
const CALLS: usize = 2_000;
/// Points that a hook at the model has: before and after.
const POINTS: usize = 2;
const IDLE: usize = 5;
const IDLE_STEPS: usize = 10;
const IDLE_RUNS: usize = 50;

fn slope(many: f64, few: f64) -> f64 {
    (many - few) / (MANY - FEW) as f64
}

/// Turns of an agent without tool calls.
fn turns(bench: &Bench, agent: impl FnOnce() -> AgentBuilder) -> f64 {
    bench.on_thread(async {
        let agent = started(agent()).await;
        timed(TURNS, async || turn(&agent).await).await
    })
}

pub(crate) fn points(bench: &Bench) -> Measured {
    let base = |count: usize| {
        bench.on_thread(async {
            let points: Vec<Arc<dyn Point>> =
                (0..count).map(|_| Arc::new(NoPoint) as Arc<dyn Point>).collect();
            let points = black_box(points);
            let mut messages = Vec::new();
            timed(CALLS, async || {
                for point in &points {
                    point.before(&mut messages).await.expect("it does nothing");
                }
            })
            .await
        })
    };
    let tenure =
        |count: usize| turns(bench, || with_hooks(quick(Scripted { steps: 0 }), count, || AtModel));
    let [base_few, tenure_few, base_many, tenure_many] =
        bench.race([&mut || base(FEW), &mut || tenure(FEW), &mut || base(MANY), &mut || {
            tenure(MANY)
        }]);
    let figure = Figure::ratio(
        "hook_point_ratio",
        1.5,
        ("tenure_ns", slope(tenure_many, tenure_few) / POINTS as f64),
        ("base_ns", slope(base_many, base_few)),
    );
    Ok(vec![figure.with("turn_one_hook_ns", tenure_few).with("turn_six_hooks_ns", tenure_many)])
}

pub(crate) fn wraps(bench: &Bench) -> Measured {
    let base = |count: usize| {
        bench.on_thread(async {
            let innermost: Arc<dyn base::Model> = Arc::new(Scripted { steps: 0 });
            let model = (0..count).fold(innermost, |inner, _| Arc::new(Wrapper(inner)));
            let agent = BaseParts::quick(model).agent();
            timed(TURNS, async || base_turn(&agent).await).await
        })
    };
    let tenure = |count: usize| {
        turns(bench, || with_hooks(quick(Scripted { steps: 0 }), count, || AroundModel))
    };
    let [base_few, tenure_few, base_many, tenure_many] =
        bench.race([&mut || base(FEW), &mut || tenure(FEW), &mut || base(MANY), &mut || {
            tenure(MANY)
        }]);
    let figure = Figure::ratio(
        "wrap_ratio",
        2.5,
        ("tenure_ns", slope(tenure_many, tenure_few)),
        ("base_ns", slope(base_many, base_few)),
    );
    Ok(vec![figure.with("turn_one_hook_ns", tenure_few).with("turn_six_hooks_ns", tenure_many)])
}

pub(crate) fn idle(bench: &Bench) -> Measured {
    // Both agents are there in every sample: what building the hooks leaves behind in the heap
    // changes the allocator's way by more than the hooks' own cost, which is what is asked here.
    let sample = |hooks: usize| {
        bench.on_thread(async {
            let agent =
                |hooks| with_hooks(quick(Scripted { steps: IDLE_STEPS }), hooks, || Elsewhere);
            let (without, with) = (started(agent(0)).await, started(agent(IDLE)).await);
            let driven = if hooks == 0 { &without } else { &with };
            timed(IDLE_RUNS, async || turn(driven).await).await
        })
    };
    let [without, with] = bench.close_race([&mut || sample(0), &mut || sample(IDLE)]);
    Ok(vec![Figure::percent(
        "idle_hooks_pct",
        1.0,
        ("five_hooks_ns", with),
        ("no_hooks_ns", without),
    )])
}
