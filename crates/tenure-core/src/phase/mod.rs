//! Where an agent is in its life: [`Phase`] is fine, [`AgentState`] is coarse.
//!
//! One static table says which transitions are legal, and state is a total function of phase, so
//! the two can never disagree. Performing a transition is the business of the instance
//! ([`life`](crate::life)); this room holds only what is true of every agent at all times.

mod hook;
mod table;

pub(crate) use hook::PhaseHookEntry;
pub use hook::{PhaseHook, PhasePattern};
pub use table::IllegalTransition;

use serde::{Deserialize, Serialize};
use std::fmt;

/// The coarse state of an agent, as the lifecycle contract has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentState {
    /// Created, nothing acquired.
    Uninitialized,
    /// Startup is in progress.
    Initializing,
    /// Ready for a request.
    Ready,
    /// Working on a request. Waiting for a person inside a turn is still busy.
    Busy,
    /// Suspended by an operator's `pause()`.
    Paused,
    /// Resting after a failed startup or a fatal error until it is shut down.
    Error,
    /// Cleaning up.
    ShuttingDown,
    /// Over. This is final.
    Terminated,
}

impl AgentState {
    /// The state's name as events and errors spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Uninitialized => "uninitialized",
            Self::Initializing => "initializing",
            Self::Ready => "ready",
            Self::Busy => "busy",
            Self::Paused => "paused",
            Self::Error => "error",
            Self::ShuttingDown => "shutting_down",
            Self::Terminated => "terminated",
        }
    }
}

impl fmt::Display for AgentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A move from one phase to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Transition {
    /// The phase that was left.
    pub from: Phase,
    /// The phase that was entered.
    pub to: Phase,
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// The fine phase of an agent: what phase hooks match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[non_exhaustive]
#[doc(alias = "AgentOperationalPhase")]
#[doc(alias = "AgentPhaseManager")]
pub enum Phase {
    /// Created, nothing acquired.
    #[doc(alias = "AGENT_PHASE_UNINITIALIZED_ENTERED")]
    Uninitialized = 0,
    /// Startup: memory, tool servers, registration and `on_start`.
    #[doc(alias = "AGENT_PHASE_BOOTSTRAPPING_STARTED")]
    #[doc(alias = "INITIALIZING_PROMPT")]
    Bootstrapping = 1,
    /// Ready for a request.
    #[doc(alias = "AGENT_PHASE_IDLE_ENTERED")]
    Idle = 2,
    /// Suspended by an operator.
    Paused = 3,
    /// A turn began; `before_agent` runs here.
    #[doc(alias = "AGENT_PHASE_PROCESSING_USER_INPUT_STARTED")]
    ProcessingUserInput = 4,
    /// `before_model` and `wrap_model_call` run here, and the model.
    #[doc(alias = "AGENT_PHASE_AWAITING_LLM_RESPONSE_STARTED")]
    AwaitingLlmResponse = 5,
    /// `after_model` runs here.
    #[doc(alias = "AGENT_PHASE_ANALYZING_LLM_RESPONSE_STARTED")]
    AnalyzingLlmResponse = 6,
    /// Every unfinished tool call waits for somebody.
    #[doc(alias = "AGENT_PHASE_AWAITING_TOOL_APPROVAL_STARTED")]
    AwaitingToolApproval = 7,
    /// The turn waits for a person.
    AwaitingUserInput = 8,
    /// At least one tool body is running.
    #[doc(alias = "AGENT_PHASE_EXECUTING_TOOL_STARTED")]
    ExecutingTool = 9,
    /// All tool calls of the batch were denied.
    #[doc(alias = "AGENT_PHASE_TOOL_DENIED_STARTED")]
    ToolDenied = 10,
    /// Tool results are being committed.
    #[doc(alias = "AGENT_PHASE_PROCESSING_TOOL_RESULT_STARTED")]
    ProcessingToolResult = 11,
    /// A startup that failed without cleanup, or a fatal error.
    #[doc(alias = "AGENT_PHASE_ERROR_ENTERED")]
    Error = 12,
    /// Cleaning up; `on_shutdown` runs here.
    #[doc(alias = "AGENT_PHASE_SHUTTING_DOWN_STARTED")]
    ShuttingDown = 13,
    /// Over. This is final.
    #[doc(alias = "AGENT_PHASE_SHUTDOWN_COMPLETED")]
    #[doc(alias = "SHUTDOWN_COMPLETE")]
    Terminated = 14,
}

impl Phase {
    /// Every phase, in the order of the table.
    pub const ALL: [Phase; 15] = [
        Phase::Uninitialized,
        Phase::Bootstrapping,
        Phase::Idle,
        Phase::Paused,
        Phase::ProcessingUserInput,
        Phase::AwaitingLlmResponse,
        Phase::AnalyzingLlmResponse,
        Phase::AwaitingToolApproval,
        Phase::AwaitingUserInput,
        Phase::ExecutingTool,
        Phase::ToolDenied,
        Phase::ProcessingToolResult,
        Phase::Error,
        Phase::ShuttingDown,
        Phase::Terminated,
    ];

    /// The coarse state this phase belongs to.
    pub const fn state(self) -> AgentState {
        match self {
            Self::Uninitialized => AgentState::Uninitialized,
            Self::Bootstrapping => AgentState::Initializing,
            Self::Idle => AgentState::Ready,
            Self::Paused => AgentState::Paused,
            Self::ProcessingUserInput
            | Self::AwaitingLlmResponse
            | Self::AnalyzingLlmResponse
            | Self::AwaitingToolApproval
            | Self::AwaitingUserInput
            | Self::ExecutingTool
            | Self::ToolDenied
            | Self::ProcessingToolResult => AgentState::Busy,
            Self::Error => AgentState::Error,
            Self::ShuttingDown => AgentState::ShuttingDown,
            Self::Terminated => AgentState::Terminated,
        }
    }

    /// The phase's name as files, events and errors spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Uninitialized => "uninitialized",
            Self::Bootstrapping => "bootstrapping",
            Self::Idle => "idle",
            Self::Paused => "paused",
            Self::ProcessingUserInput => "processing_user_input",
            Self::AwaitingLlmResponse => "awaiting_llm_response",
            Self::AnalyzingLlmResponse => "analyzing_llm_response",
            Self::AwaitingToolApproval => "awaiting_tool_approval",
            Self::AwaitingUserInput => "awaiting_user_input",
            Self::ExecutingTool => "executing_tool",
            Self::ToolDenied => "tool_denied",
            Self::ProcessingToolResult => "processing_tool_result",
            Self::Error => "error",
            Self::ShuttingDown => "shutting_down",
            Self::Terminated => "terminated",
        }
    }

    /// The name of the event that announces that this phase was entered.
    pub const fn event_name(self) -> &'static str {
        match self {
            Self::Uninitialized => "agent.phase.uninitialized_entered",
            Self::Bootstrapping => "agent.phase.bootstrapping_started",
            Self::Idle => "agent.phase.idle_entered",
            Self::Paused => "agent.phase.paused_entered",
            Self::ProcessingUserInput => "agent.phase.processing_user_input_started",
            Self::AwaitingLlmResponse => "agent.phase.awaiting_llm_response_started",
            Self::AnalyzingLlmResponse => "agent.phase.analyzing_llm_response_started",
            Self::AwaitingToolApproval => "agent.phase.awaiting_tool_approval_started",
            Self::AwaitingUserInput => "agent.phase.awaiting_user_input_started",
            Self::ExecutingTool => "agent.phase.executing_tool_started",
            Self::ToolDenied => "agent.phase.tool_denied_started",
            Self::ProcessingToolResult => "agent.phase.processing_tool_result_started",
            Self::Error => "agent.phase.error_entered",
            Self::ShuttingDown => "agent.phase.shutting_down_started",
            Self::Terminated => "agent.phase.shutdown_completed",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Phase {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|phase| phase.as_str()).collect();
            crate::Error::invalid(format!(
                "`{text}` is not a phase; use one of {}",
                names.join(", ")
            ))
        })
    }
}
