//! Instances: making one, its life, and what it weighs.

use super::Measured;
use crate::fakes::{BaseParts, Scripted, blueprint, quick};
use crate::measure::{Bench, current_thread, timed};
use crate::process::{child, resident};
use crate::report::Figure;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use tenure::agent::Agent;

const INSTANCES: usize = 2_000;
const IDLE: usize = 10_000;

pub(crate) fn measure(bench: &Bench) -> Measured {
    let mut base = || {
        bench.on_thread(async {
            let parts = BaseParts::quick(Arc::new(Scripted { steps: 0 }));
            timed(INSTANCES, async || drop(black_box(parts.agent()))).await
        })
    };
    let mut made = || {
        bench.on_thread(async {
            let blueprint = blueprint(quick(Scripted { steps: 0 }));
            timed(INSTANCES, async || drop(black_box(blueprint.instance()))).await
        })
    };
    let mut lived = || {
        bench.on_thread(async {
            let blueprint = blueprint(quick(Scripted { steps: 0 }));
            timed(INSTANCES, async || {
                let agent = black_box(blueprint.instance());
                agent.startup().await.expect("nothing can fail at startup");
                agent.shutdown().await;
            })
            .await
        })
    };
    let [base, made, lived] = bench.race([&mut base, &mut made, &mut lived]);
    Ok(vec![
        Figure::ratio("instance_ratio", 1.5, ("tenure_ns", made), ("base_ns", base)),
        Figure::ratio("instance_life_ratio", 4.0, ("tenure_ns", lived), ("base_ns", base)),
        Figure::bytes("instance_bytes", 512.0, child(&["idle-bytes"])?)
            .with("instances", IDLE as f64),
    ])
}

/// What each of many idle instances adds to the resident memory of a process with nothing else in
/// it. The list of handles is there beforehand: it belongs to whoever holds them.
pub(crate) fn idle_bytes() -> Result<f64, Box<dyn Error>> {
    current_thread()?.block_on(async {
        let blueprint = blueprint(quick(Scripted { steps: 0 }));
        let mut held: Vec<Option<Agent>> = (0..IDLE).map(|_| None).collect();
        let first = blueprint.instance();
        first.startup().await?;
        let before = resident()?;
        for place in black_box(&mut held) {
            let agent = blueprint.instance();
            agent.startup().await?;
            *place = Some(agent);
        }
        let after = resident()?;
        drop((first, held));
        Ok((after - before) / IDLE as f64)
    })
}
