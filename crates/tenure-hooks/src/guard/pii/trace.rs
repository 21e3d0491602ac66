//! Where a pattern may still match when a text goes on.

use regex_automata::nfa::thompson::{NFA, State, WhichCaptures};
use regex_automata::util::primitives::StateID;

/// Follows a pattern through a text, byte by byte, and knows where the earliest match begins that is
/// not decided yet.
///
/// This is what a matcher does, with only the beginnings kept. What a pattern says about its
/// surroundings counts as true, so it may take something for undecided that is not, and never the
/// other way round.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    nfa: NFA,
    /// The states that are reached, and where the earliest match began that is there.
    live: Vec<(StateID, usize)>,
    /// Where in `live` a state is.
    places: Vec<usize>,
}

const NOWHERE: usize = usize::MAX;

impl Trace {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let config = NFA::config().which_captures(WhichCaptures::None);
        let nfa = NFA::compiler().configure(config).build(pattern);
        let nfa = nfa.map_err(|error| error.to_string())?;
        let places = vec![NOWHERE; nfa.states().len()];
        Ok(Self { nfa, live: Vec::new(), places })
    }

    /// Goes on with what stands at `from`.
    pub(super) fn follow(&mut self, piece: &[u8], from: usize) {
        for (offset, byte) in piece.iter().enumerate() {
            self.reach(self.nfa.start_anchored(), from + offset);
            let reached = std::mem::take(&mut self.live);
            reached.iter().for_each(|(state, _)| self.places[state.as_usize()] = NOWHERE);
            for (state, begun) in reached {
                let next = match self.nfa.state(state) {
                    State::ByteRange { trans } => trans.matches_byte(*byte).then_some(trans.next),
                    State::Sparse(sparse) => sparse.matches_byte(*byte),
                    State::Dense(dense) => dense.matches_byte(*byte),
                    _ => None,
                };
                if let Some(next) = next {
                    self.reach(next, begun);
                }
            }
        }
    }

    /// Where the earliest match begins that more text may still change.
    pub(super) fn open(&self) -> Option<usize> {
        self.live.iter().map(|(_, begun)| *begun).min()
    }

    /// Takes a state, and all that follow from it without a byte.
    fn reach(&mut self, state: StateID, begun: usize) {
        let mut left = vec![state];
        while let Some(state) = left.pop() {
            let place = self.places[state.as_usize()];
            match self.live.get_mut(place) {
                Some((_, earlier)) if *earlier <= begun => continue,
                Some((_, earlier)) => *earlier = begun,
                None => {
                    self.places[state.as_usize()] = self.live.len();
                    self.live.push((state, begun));
                }
            }
            match self.nfa.state(state) {
                State::Union { alternates } => left.extend(alternates.iter()),
                State::BinaryUnion { alt1, alt2 } => left.extend([*alt1, *alt2]),
                State::Look { next, .. } | State::Capture { next, .. } => left.push(*next),
                _ => {}
            }
        }
    }
}
