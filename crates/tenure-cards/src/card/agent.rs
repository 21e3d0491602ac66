//! The fields of `type: agent`.

use super::{AgentRef, FunctionTool, InputSchema, McpFields, ModelFields};
use std::path::PathBuf;
use std::time::Duration;

/// `type: agent`: one model with its tools.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentCard {
    /// The children: agents that this one may call as tools.
    pub agents: Vec<AgentRef>,
    /// How the children are run.
    pub children: ChildSettings,
    /// Its model.
    pub model: ModelFields,
    /// Tool servers and what is taken of them.
    pub mcp: McpFields,
    /// Skills.
    pub skills: Skills,
    /// Whether the model may run shell commands.
    pub shell: bool,
    /// The working directory of the shell, beneath the project; it may not be there yet.
    pub cwd: Option<PathBuf>,
    /// Whether old tool calls are dropped from the history after each turn.
    pub trim_tool_history: bool,
    /// Whether the model may steer the harness itself.
    pub harness_tools: bool,
    /// Whether the model may start helpers of its own; none if the card does not say.
    pub subagents: Option<bool>,
    /// The model of those helpers.
    pub subagent_model: Option<String>,
    /// Python functions that the model may call.
    pub function_tools: Vec<FunctionTool>,
    /// Commands for a person who talks to the agent.
    pub commands: Vec<PluginCommand>,
    /// What the agent takes when it is a tool; without it one text.
    pub tool_input_schema: Option<InputSchema>,
    /// Whether the card says `type: smart`, the older spelling.
    pub smart: bool,
}

/// What a clone of a child knows when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistorySource {
    /// Nothing.
    #[default]
    None,
    /// The child card's own `messages`.
    Messages,
    /// What earlier clones left.
    Child,
    /// What the parent has said and heard.
    Orchestrator,
}

/// Where a clone's conversation goes when it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryMerge {
    /// Nowhere.
    #[default]
    None,
    /// To later clones.
    Child,
    /// Into the parent's conversation.
    Orchestrator,
}

/// How the children of an agent are run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildSettings {
    /// What a clone knows when it starts.
    pub history_source: HistorySource,
    /// Where its conversation goes.
    pub history_merge_target: HistoryMerge,
    /// How many clones may live at the same time; none means no limit.
    pub max_parallel: Option<usize>,
    /// The most time that a clone's turn may take.
    pub child_timeout: Option<Duration>,
    /// How many clones are shown before the rest is summed up. 20.
    pub max_display_instances: usize,
}

impl Default for ChildSettings {
    fn default() -> Self {
        Self {
            history_source: HistorySource::None,
            history_merge_target: HistoryMerge::None,
            max_parallel: None,
            child_timeout: None,
            max_display_instances: 20,
        }
    }
}

/// The field `skills`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Skills {
    /// The card does not say: the run's own skills.
    #[default]
    Default,
    /// `skills: []`: none.
    None,
    /// These folders or names.
    Named(Vec<String>),
}

/// A command for a person who talks to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What to type behind it.
    pub input_hint: Option<String>,
    /// What handles it: `file.py:function`.
    pub handler: String,
    /// The key that stands for it.
    pub key: Option<String>,
}
