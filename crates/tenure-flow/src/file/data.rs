//! What a workflow's files say, as data: every field checked, every default filled in.

use crate::StartupMode;
use crate::contract::ErrorStrategy;
use crate::journey::Journey;
use crate::lifecycle::LifecycleTool;
use crate::message_hook::MessageHook;
use crate::output::OutputsSpec;
use crate::route::Pattern;
use crate::route::handoff::HandoffRule;
use crate::variables::{Definition, DescribedSchema, Exposure};
use std::path::PathBuf;
use std::sync::Arc;
use tenure_cards::card::{Expansion, FunctionTool};
use tenure_cards::hook::CardHooks;
use tenure_cards::source::{Source, Span};

/// One workflow as its files declare it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkflowFile {
    /// Its name: `workflow_name`, else the folder's.
    pub name: Arc<str>,
    /// Its folder, absolute and with links resolved. Relative paths start here.
    pub dir: PathBuf,
    /// The folder as it was written, for messages.
    pub shown: PathBuf,
    /// How a chat goes.
    pub orchestrator: OrchestratorFile,
    /// Who takes part, in the order of the file.
    pub agents: Vec<AgentEntry>,
    /// What the agents may call, in the order of the file.
    pub tools: Vec<ToolEntry>,
    /// What runs around the chat and its turns, in the order in which it runs at each trigger.
    pub lifecycle: Vec<LifecycleTool>,
    /// Who takes over from whom.
    pub handoffs: Vec<HandoffRule>,
    /// What the agents share.
    pub variables: VariablesFile,
    /// What agents answer with.
    pub outputs: OutputsSpec,
    /// What is called around messages.
    pub message_hooks: Vec<MessageHook>,
    /// What people get to see.
    pub ui: UiConfig,
    /// Parts of a chat that are chats of their own.
    pub journeys: Vec<Journey>,
    /// Every file of the folder that was read, with its text as it was then.
    pub sources: Vec<(PathBuf, Arc<Source>)>,
    /// The variables of the environment that the files take, beside those that the cards of its
    /// agents take.
    pub expansions: Vec<Expansion>,
}

impl WorkflowFile {
    /// The agent of this name.
    pub fn agent(&self, name: &str) -> Option<&AgentEntry> {
        self.agents.iter().find(|agent| &*agent.name == name)
    }

    /// The agents whose words people do not get to see.
    pub fn hidden(&self) -> impl Iterator<Item = &Arc<str>> {
        let shown = self.ui.visual_agents.as_deref();
        let names = self.agents.iter().map(|agent| &agent.name);
        names.filter(move |name| shown.is_some_and(|shown| !shown.contains(name)))
    }
}

/// The file `orchestrator`: how a chat goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OrchestratorFile {
    /// How many turns agents may have. 50.
    pub max_turns: usize,
    /// Whether a person takes part. False.
    pub human_in_the_loop: bool,
    /// Who begins.
    pub startup_mode: StartupMode,
    /// How speakers are chosen.
    pub pattern: Pattern,
    /// What the agents are told to begin with, as if the user had said it.
    pub initial_message: Option<String>,
    /// What the person is told to begin with.
    pub initial_message_to_user: Option<String>,
    /// Who speaks first; one of the agents.
    pub initial_agent: Option<Arc<str>>,
    /// What the failure of a turn means for the chat.
    pub error_strategy: ErrorStrategy,
    /// What chance is made of. 0.
    pub seed: u64,
    /// The model that picks speakers and judges conditions; none means the project's default.
    pub selector_model: Option<String>,
    /// The hooks of the workflow. Those at the points of a chat belong to the chat itself, the
    /// others to every agent.
    pub hooks: CardHooks,
    /// The file; an empty one if there is none.
    pub source: Arc<Source>,
}

/// An entry of the file `agents`: somebody who takes part.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentEntry {
    /// The name. No other agent of the workflow has it.
    pub name: Arc<str>,
    /// What stands behind it.
    pub kind: AgentKind,
    /// Whether its tool is called with its structured output, in place of by its model.
    pub auto_tool_mode: bool,
    /// The model of what it answers with, if that is declared.
    pub output: Option<Arc<str>>,
    /// How often in a row it may speak without the person; none means as often as it likes.
    pub max_consecutive_auto_reply: Option<u32>,
    /// The file that declares it.
    pub source: Arc<Source>,
    /// Where its name is written in that.
    pub span: Span,
}

/// What stands behind an agent of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentKind {
    /// The card of this name among [`LoadedWorkflow::cards`](crate::LoadedWorkflow::cards): the entry
    /// itself, or the file that it points to.
    Card(Arc<str>),
    /// A chat of another workflow, the one of this name among
    /// [`LoadedWorkflow::nested`](crate::LoadedWorkflow::nested).
    Workflow(Arc<str>),
}

/// An entry of `tools`: a Python function that agents may call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolEntry {
    /// The agents that have it.
    pub agents: Vec<Arc<str>>,
    /// The function with the schema of its arguments. The cards of its agents have it among their
    /// tools, except of those with `auto_tool_mode`.
    pub tool: FunctionTool,
    /// Whether a person is asked by it.
    pub tool_type: ToolType,
    /// The component that a front end shows calls of an [`ToolType::Agent`] with.
    pub shown: Option<UiComponent>,
    /// Whether it is called with an agent's structured output as soon as that is there.
    pub auto_invoke: bool,
    /// The file as it is written.
    pub file: Arc<str>,
    /// Where it is declared, as `file:line`.
    pub declared: Arc<str>,
}

/// What kind of tool it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolType {
    /// `Agent_Tool`: a function.
    Agent,
    /// `UI_Tool`: a function that shows something to a person and waits for what they say.
    Ui(UiComponent),
}

/// What a front end shows for a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UiComponent {
    /// The component, by the name that the front end knows it by.
    pub component: Option<String>,
    /// Where it is shown.
    pub mode: Option<UiMode>,
}

/// Where a component is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UiMode {
    /// In the conversation.
    Inline,
    /// Beside it.
    Artifact,
}

impl UiMode {
    /// The name, as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Artifact => "artifact",
        }
    }
}

/// The file `context_variables`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VariablesFile {
    /// The variables, in the order of the file.
    pub definitions: Vec<Definition>,
    /// Which agents see which of them.
    pub exposures: Vec<Exposure>,
    /// The database that chats get to know, if the file says so.
    pub schema: DescribedSchema,
}

/// The file `ui_config`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UiConfig {
    /// The agents whose words people get to see; none means all of them.
    pub visual_agents: Option<Vec<Arc<str>>>,
}
