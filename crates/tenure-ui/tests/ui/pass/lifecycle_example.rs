//! The example in the documentation of `#[lifecycle]`.

use std::sync::atomic::{AtomicUsize, Ordering};
use tenure::context::{PhaseCx, TurnCx};
use tenure::drive::Input;
use tenure::hook::{AgentLifecycle, Flow, HookError, Point};
use tenure::lifecycle;

#[derive(Default)]
struct CountTurns {
    turns: AtomicUsize,
}

#[lifecycle]
impl AgentLifecycle for CountTurns {
    async fn before_agent(&self, _cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        self.turns.fetch_add(1, Ordering::Relaxed);
        Ok(Flow::Continue)
    }

    #[cfg(debug_assertions)] // and so in the mask of debug builds only
    async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        eprintln!("{} -> {}", cx.from(), cx.to());
        Ok(())
    }
}

fn main() {
    let points = CountTurns::default().points();
    assert!(points.contains(Point::BeforeAgent));
    assert!(!points.contains(Point::OnStart));
    assert_eq!(points.contains(Point::OnTransition), cfg!(debug_assertions));
}
