//! The table of legal transitions. The only one.

use super::Phase;
use std::fmt;

/// Bit `n` of row `p` says that phase `p` may go to phase `n`.
static LEGAL: [u16; 15] = legal();

const fn bits(phases: &[Phase]) -> u16 {
    let mut set = 0;
    let mut at = 0;
    while at < phases.len() {
        set |= 1 << phases[at] as u16;
        at += 1;
    }
    set
}

const fn legal() -> [u16; 15] {
    use Phase::*;
    let stop = bits(&[ShuttingDown]);
    let mut table = [0; 15];
    table[Uninitialized as usize] = bits(&[Bootstrapping]) | stop;
    table[Bootstrapping as usize] = bits(&[Idle, Error]) | stop;
    table[Idle as usize] = bits(&[ProcessingUserInput, Paused]) | stop;
    table[Paused as usize] = bits(&[Idle]) | stop;
    table[ProcessingUserInput as usize] =
        bits(&[AwaitingLlmResponse, AwaitingUserInput, Idle, Error]) | stop;
    table[AwaitingLlmResponse as usize] =
        bits(&[AnalyzingLlmResponse, AwaitingUserInput, Idle, Error]) | stop;
    table[AnalyzingLlmResponse as usize] = bits(&[
        AwaitingToolApproval,
        AwaitingUserInput,
        ExecutingTool,
        ToolDenied,
        ProcessingToolResult,
        AwaitingLlmResponse,
        Idle,
        Error,
    ]) | stop;
    table[AwaitingToolApproval as usize] =
        bits(&[ExecutingTool, ToolDenied, ProcessingToolResult, AwaitingUserInput, Idle, Error])
            | stop;
    // A person may be asked from every phase of a turn, and the turn goes back to the phase that
    // asked, or on to what the tool rule gives.
    table[AwaitingUserInput as usize] = bits(&[
        ProcessingUserInput,
        AwaitingLlmResponse,
        AnalyzingLlmResponse,
        AwaitingToolApproval,
        ExecutingTool,
        ToolDenied,
        ProcessingToolResult,
        Idle,
        Error,
    ]) | stop;
    table[ExecutingTool as usize] =
        bits(&[ProcessingToolResult, AwaitingToolApproval, AwaitingUserInput, Idle, Error]) | stop;
    table[ToolDenied as usize] =
        bits(&[ProcessingToolResult, AwaitingUserInput, Idle, Error]) | stop;
    table[ProcessingToolResult as usize] =
        bits(&[AwaitingLlmResponse, AwaitingUserInput, Idle, Error]) | stop;
    table[Error as usize] = stop;
    table[ShuttingDown as usize] = bits(&[Terminated]);
    table
}

impl Phase {
    /// Whether the table allows going from this phase to `to`.
    #[inline]
    pub const fn may_go_to(self, to: Phase) -> bool {
        LEGAL[self as usize] & (1 << to as u16) != 0
    }

    /// The phases that the table allows from this one, in table order.
    pub fn targets(self) -> impl Iterator<Item = Phase> {
        Phase::ALL.into_iter().filter(move |to| self.may_go_to(*to))
    }
}

/// A transition that the table does not allow. It names where the agent is and where it may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllegalTransition {
    /// The phase the agent was in.
    pub from: Phase,
    /// The phase that was asked for.
    pub to: Phase,
}

impl fmt::Display for IllegalTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let legal: Vec<_> = self.from.targets().map(Phase::as_str).collect();
        write!(f, "illegal transition from {} to {}", self.from, self.to)?;
        if legal.is_empty() {
            write!(f, "; {} is final", self.from)
        } else {
            write!(f, "; legal from here: {}", legal.join(", "))
        }
    }
}

impl std::error::Error for IllegalTransition {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_but_the_last_may_shut_down_and_terminated_is_final() {
        for phase in Phase::ALL {
            let last = matches!(phase, Phase::ShuttingDown | Phase::Terminated);
            assert_eq!(phase.may_go_to(Phase::ShuttingDown), !last, "{phase}");
        }
        assert_eq!(Phase::Terminated.targets().count(), 0);
    }

    #[test]
    fn bootstrapping_to_idle_is_the_only_way_out_of_a_start_that_worked() {
        let into_idle: Vec<_> =
            Phase::ALL.into_iter().filter(|from| from.may_go_to(Phase::Idle)).collect();
        assert!(into_idle.contains(&Phase::Bootstrapping));
        let back: Vec<_> =
            Phase::ALL.into_iter().filter(|from| from.may_go_to(Phase::Bootstrapping)).collect();
        assert_eq!(back, [Phase::Uninitialized]);
    }

    #[test]
    fn an_illegal_transition_names_from_to_and_the_legal_targets() {
        let error = IllegalTransition { from: Phase::Paused, to: Phase::ExecutingTool };
        assert_eq!(
            error.to_string(),
            "illegal transition from paused to executing_tool; legal from here: idle, shutting_down"
        );
        let last = IllegalTransition { from: Phase::Terminated, to: Phase::Idle };
        assert_eq!(
            last.to_string(),
            "illegal transition from terminated to idle; terminated is final"
        );
    }
}
