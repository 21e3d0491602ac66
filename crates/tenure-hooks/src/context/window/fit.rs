//! Results that are cut because there is no room for the whole of them.

use super::super::tokens::Counter;
use super::summary::shortened;
use tenure_core::message::Message;

/// A result of fewer tokens is left alone: what is said in its place takes as many.
const SMALL: u64 = 40;

/// Cuts the largest results of tools until all messages together have no more than `most` tokens.
/// The error is how many they have with all results cut.
pub(super) async fn cut_results(
    counter: &Counter,
    messages: &mut [Message],
    most: u64,
) -> Result<(), u64> {
    let mut counts = Vec::with_capacity(messages.len());
    for message in &*messages {
        counts.push(counter.message(message).await);
    }
    let mut was_cut = vec![false; messages.len()];
    loop {
        let total: u64 = counts.iter().sum();
        let Some(excess) = total.checked_sub(most).filter(|excess| *excess > 0) else {
            return Ok(());
        };
        let largest = (0..messages.len())
            .filter(|at| matches!(messages[*at], Message::Tool(_)))
            .filter(|at| !was_cut[*at] && counts[*at] > SMALL)
            .max_by_key(|at| counts[*at]);
        let Some(at) = largest else { return Err(total) };
        was_cut[at] = true;
        let target = counts[at].saturating_sub(excess).max(SMALL / 2);
        if let Message::Tool(result) = &mut messages[at] {
            result.content = shortened(counter, result.content.text(), target).await.into();
        }
        counts[at] = counter.message(&messages[at]).await;
    }
}
