//! What of a conversation stays: pure, so that it can be tested with any conversation.

use super::summary::is_summary;
use std::ops::Range;
use tenure_core::message::Message;

/// Messages that stay or go together: one, or a call of tools with all its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) messages: Range<usize>,
    pub(super) tokens: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    User,
    Summary,
    System,
    Other,
}

/// The units of a conversation, oldest first.
pub(super) fn units<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    counts: &[u64],
) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for (at, (message, tokens)) in messages.into_iter().zip(counts).enumerate() {
        if matches!(message, Message::Tool(_))
            && let Some(last) = units.last_mut()
        {
            last.messages.end = at + 1;
            last.tokens += tokens;
            continue;
        }
        let kind = match message {
            Message::User { .. } if is_summary(message) => Kind::Summary,
            Message::User { .. } => Kind::User,
            Message::System { .. } => Kind::System,
            _ => Kind::Other,
        };
        units.push(Unit { messages: at..at + 1, tokens: *tokens, kind });
    }
    units
}

/// How much of the end is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keep {
    Messages(usize),
    Tokens(u64),
}

/// What is asked of a cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// The most tokens that all messages together may have.
    pub(super) room: u64,
    /// What of that is left free, if anything goes.
    pub(super) reserve: u64,
    /// How much of the end is kept, if there is room for it.
    pub(super) keep: Keep,
    /// Whether the first message of the user stays.
    pub(super) pin_first: bool,
}

/// What stays and what goes, as places in the list of units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// What stays before a summary.
    pub(super) head: Vec<usize>,
    /// What stays behind it.
    pub(super) tail: Vec<usize>,
    /// What goes.
    pub(super) gone: Vec<usize>,
}

impl Cut {
    /// The units that stay, in order.
    pub(super) fn kept(&self) -> impl Iterator<Item = usize> {
        self.head.iter().chain(&self.tail).copied()
    }

    pub(super) fn tokens(&self, units: &[Unit]) -> u64 {
        self.kept().map(|at| units[at].tokens).sum()
    }
}

/// Why a conversation cannot be cut so that it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TooMuch {
    /// What has to stay in any case.
    pub(super) cut: Cut,
    /// How many tokens that has.
    pub(super) needed: u64,
}

/// Decides what stays. The newest unit, the last message of the user and what the system says first
/// stay in any case, and then as much of the end as there is room for and `keep` says.
pub(super) fn cut(units: &[Unit], wanted: Wanted) -> Result<Cut, TooMuch> {
    let Some(last) = units.len().checked_sub(1) else { return Ok(Cut::default()) };
    let is = |at: usize, kind: Kind| units[at].kind == kind;
    let asked = (0..=last).rev().find(|at| is(*at, Kind::User));
    let systems = (0..=last).take_while(|at| is(*at, Kind::System)).count();
    let first = (0..=last).find(|at| wanted.pin_first && is(*at, Kind::User));
    let stays = |at: usize| at == last || at < systems || Some(at) == asked || Some(at) == first;
    let needed: u64 = (0..=last).filter(|at| stays(*at)).map(|at| units[at].tokens).sum();
    // Whether it stands at the beginning: what is summarised came later, or partly so.
    let leads = |at: usize| at < systems || (Some(at) == first && Some(at) != asked);
    let made = |start: usize| {
        let mut cut = Cut::default();
        for at in 0..=last {
            match at < start && !stays(at) {
                true => cut.gone.push(at),
                false if at < start && leads(at) => cut.head.push(at),
                false => cut.tail.push(at),
            }
        }
        cut
    };
    if needed > wanted.room {
        return Err(TooMuch { cut: made(last), needed });
    }
    let end = |room: u64| {
        let mut left = room.saturating_sub(needed);
        let (mut messages, mut tokens) = (units[last].messages.len(), units[last].tokens);
        let mut start = last;
        for at in (0..last).rev() {
            let unit = &units[at];
            let is_wanted = match wanted.keep {
                // A unit that begins within them is one of them.
                Keep::Messages(most) => messages < most,
                Keep::Tokens(most) => tokens + unit.tokens <= most,
            };
            let price = if stays(at) { 0 } else { unit.tokens };
            if !is_wanted || price > left {
                break;
            }
            left -= price;
            messages += unit.messages.len();
            tokens += unit.tokens;
            start = at;
        }
        start
    };
    let mut start = end(wanted.room);
    if (0..start).any(|at| !stays(at)) && wanted.reserve > 0 {
        start = end(wanted.room.saturating_sub(wanted.reserve));
    }
    // A conversation begins with what somebody said to the model, not with what it said itself.
    let opens = |at: usize| is(at, Kind::User) || is(at, Kind::Summary) || stays(at);
    let is_opened = (0..start).any(|at| stays(at) && !is(at, Kind::System));
    let is_opened = is_opened || asked.is_none() || wanted.reserve > 0;
    while !is_opened && !opens(start) {
        start += 1;
    }
    Ok(made(start))
}

#[cfg(test)]
mod tests;
