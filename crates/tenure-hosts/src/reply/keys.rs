//! Which keys make sense where.

use crate::Role;
use crate::payload::Stage;
use tenure_core::hook::{FaultKind, HookError, Point};

/// Who replies, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expect {
    pub(crate) point: Point,
    pub(crate) role: Role,
    /// Which half of a wrap; `Before` at every other point.
    pub(crate) stage: Stage,
    pub(crate) speaker: Speaker,
}

/// What kind of hook replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// A command, which can only ask a person, and change arguments, by its reply.
    Command,
    /// A Python function, which calls `ask` and `next` itself.
    Python,
}

/// The keys, in the order in which messages name them.
const KEYS: [&str; 19] = [
    "allow",
    "deny",
    "finish",
    "approve",
    "reject",
    "modify",
    "jump",
    "input",
    "request",
    "persist",
    "arguments",
    "result",
    "response",
    "output",
    "continue",
    "ask",
    "state",
    "variables",
    "log",
];

impl Expect {
    /// A reply of a command.
    pub(crate) fn of_command(point: Point, role: Role, stage: Stage) -> Self {
        Self { point, role, stage, speaker: Speaker::Command }
    }

    /// What a Python function returned.
    pub(crate) fn of_python(point: Point, role: Role) -> Self {
        Self { point, role, stage: Stage::Before, speaker: Speaker::Python }
    }

    /// Whether a hook decides anything at this point.
    pub(crate) fn decides(&self) -> bool {
        !self.point.is_end() && self.point != Point::OnTransition
    }

    /// Whether silence is no answer: a guard has to say what it decides. In the second half of a
    /// wrap it has decided already, and silence keeps the result.
    pub(crate) fn needs_decision(&self) -> bool {
        self.role == Role::Guard && self.decides() && self.stage == Stage::Before
    }

    pub(crate) fn takes(&self, key: &str) -> bool {
        use Point::{
            AfterAgent, AfterModel, BeforeAgent, BeforeChat, BeforeModel, WrapModelCall,
            WrapToolCall,
        };
        let point = self.point;
        let before = self.stage == Stage::Before;
        let command = self.speaker == Speaker::Command;
        match key {
            "state" | "variables" | "log" => true,
            "allow" | "deny" => self.decides(),
            "finish" => matches!(point, BeforeChat | BeforeAgent | BeforeModel),
            "approve" | "reject" | "modify" | "jump" => point == AfterModel,
            "input" => point == BeforeAgent,
            "request" => point == BeforeModel || (point == WrapModelCall && before && command),
            "persist" => point == BeforeModel,
            "arguments" => point == WrapToolCall && before && command,
            "result" => point == WrapToolCall,
            "response" => point == WrapModelCall,
            "output" | "continue" => point == AfterAgent,
            "ask" => {
                command
                    && !matches!(point, Point::OnStart | Point::OnShutdown | Point::OnTransition)
            }
            _ => false,
        }
    }

    /// The keys that make sense here, for a message.
    pub(crate) fn legal(&self) -> String {
        let keys: Vec<_> = KEYS.into_iter().filter(|key| self.takes(key)).collect();
        keys.join(", ")
    }

    /// A bad reply, with what would have been a good one.
    #[cold]
    pub(crate) fn bad(&self, what: impl std::fmt::Display) -> HookError {
        let message = format!("{what}; a reply at {} may have: {}", self.point, self.legal());
        HookError::of_kind(FaultKind::BadReply, message)
    }
}
