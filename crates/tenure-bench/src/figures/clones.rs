//! A detached clone for one turn.

use super::Measured;
use crate::fakes::{Scripted, quick, started, turn};
use crate::measure::{Bench, timed};
use crate::report::Figure;

const TURNS: usize = 500;

pub(crate) fn measure(bench: &Bench) -> Measured {
    let mut turns = || {
        bench.on_thread(async {
            let agent = started(quick(Scripted { steps: 0 })).await;
            timed(TURNS, async || turn(&agent).await).await
        })
    };
    let mut clones = || {
        bench.on_thread(async {
            let agent = started(quick(Scripted { steps: 0 })).await;
            timed(TURNS, async || {
                let spawned = agent.spawn_detached_instance(None).await;
                let clone = spawned.expect("nothing can fail at startup");
                turn(&clone).await;
                clone.shutdown().await;
            })
            .await
        })
    };
    let [turn, clone] = bench.race([&mut turns, &mut clones]);
    Ok(vec![Figure::ratio("clone_ratio", 2.0, ("clone_ns", clone), ("turn_ns", turn))])
}
