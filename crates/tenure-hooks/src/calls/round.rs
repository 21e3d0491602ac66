//! What a fallback and the retries within it know of each other.

use std::cell::Cell;
use std::pin::pin;
use tenure_core::RunId;
use tenure_core::context::TurnCx;

/// A model's turn to answer a call, where a fallback can have others answer.
struct Round {
    /// Whose call it is. A model may run other agents, which have calls of their own.
    run: RunId,
    /// How often the model was asked for this answer.
    made: Cell<u32>,
}

tokio::task_local! {
    static ROUND: Round;
}

/// Has a model answer that was asked `made` times for this answer already, and learns how often it
/// was by then. So it is not asked more often than a retry allows, though it may have several turns.
pub(super) async fn turn<F: Future>(cx: TurnCx<'_>, made: &mut u32, call: F) -> F::Output {
    let round = Round { run: cx.run_id(), made: Cell::new(*made) };
    let mut call = pin!(ROUND.scope(round, call));
    let result = call.as_mut().await;
    if let Some(round) = call.take_value() {
        *made = round.made.get();
    }
    result
}

/// How often the model was asked for this answer in its earlier turns; nothing, if there is no
/// fallback around that gives it turns.
pub(super) fn made(cx: TurnCx<'_>) -> Option<u32> {
    let own = |round: &Round| (round.run == cx.run_id()).then(|| round.made.get());
    ROUND.try_with(own).ok().flatten()
}

/// The turn ends though the model may be asked again: so often it was asked.
pub(super) fn pass(cx: TurnCx<'_>, made: u32) {
    // Without a fallback there is nobody to tell.
    let _ = ROUND.try_with(|round| {
        if round.run == cx.run_id() {
            round.made.set(made);
        }
    });
}
