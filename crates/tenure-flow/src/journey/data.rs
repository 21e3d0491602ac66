//! A journey as a file declares it: plain data.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How many children a journey has at most that does not limit them itself.
pub const MOST_CHILDREN: usize = 64;

/// A journey: when an agent has said what is to be done, the parts of it are done by chats of their
/// own at the same time, and their results come back to the chat.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Journey {
    /// Its name. No other journey of the workflow has it.
    pub id: Arc<str>,
    /// What it is for.
    pub description: String,
    /// The agent whose structured output begins it.
    pub trigger_agent: Arc<str>,
    /// Journeys of the same workflow that are over before this one can begin.
    pub requires: Vec<Arc<str>>,
    /// How the children are made.
    pub fan_out: FanOut,
    /// What becomes of their results.
    pub fan_in: FanIn,
}

impl Journey {
    /// A journey that the output of `trigger_agent` begins, whose children are chats of
    /// `workflow`, and after which `resume_agent` speaks.
    pub fn new(
        id: impl Into<Arc<str>>,
        trigger_agent: impl Into<Arc<str>>,
        workflow: impl Into<Arc<str>>,
        resume_agent: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            id: id.into(),
            description: String::new(),
            trigger_agent: trigger_agent.into(),
            requires: Vec::new(),
            fan_out: FanOut::new(workflow),
            fan_in: FanIn::new(resume_agent),
        }
    }
}

/// How the children of a journey are made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FanOut {
    /// What says which children there are.
    pub spawn_mode: SpawnMode,
    /// The workflow that the children are chats of: `generator_workflow`. With
    /// [`SpawnMode::Workflow`] a part of the output may name another one.
    pub workflow: Option<Arc<str>>,
    /// Who begins in a child, in place of the workflow's initial agent. A part of the output may
    /// name another one.
    pub child_initial_agent: Option<Arc<str>>,
    /// How many children there are at most; 0 is [`MOST_CHILDREN`].
    pub max_children: usize,
    /// How long all of them may take together.
    pub timeout: Option<Duration>,
    /// What of the parent's variables the children are given.
    pub input_contract: InputContract,
    /// Variables that every child begins with, beside those that it is given.
    pub child_context_seed: BTreeMap<String, Value>,
}

impl FanOut {
    /// Children that are chats of `workflow`.
    pub fn new(workflow: impl Into<Arc<str>>) -> Self {
        Self { workflow: Some(workflow.into()), ..Self::default() }
    }
}

impl Default for FanOut {
    fn default() -> Self {
        Self {
            spawn_mode: SpawnMode::Workflow,
            workflow: None,
            child_initial_agent: None,
            max_children: 0,
            timeout: None,
            input_contract: InputContract::default(),
            child_context_seed: BTreeMap::new(),
        }
    }
}

/// What of the parent's variables the children are given, by name. A part of the output may give
/// its child others of these names, in its `context` or `context_variables`; what it gives of other
/// names is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InputContract {
    /// Those that have to be set. If one is missing, nothing is begun.
    pub required: Vec<String>,
    /// Those that are given if they are set.
    pub optional: Vec<String>,
}

impl InputContract {
    /// These, and if they are set, these.
    pub fn new(required: Vec<String>, optional: Vec<String>) -> Self {
        Self { required, optional }
    }

    pub(super) fn names(&self, name: &str) -> bool {
        self.required.iter().chain(&self.optional).any(|it| it == name)
    }
}

/// What says which children a journey has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpawnMode {
    /// Each part of the output may name a workflow: one child each.
    #[default]
    Workflow,
    /// Each part is a run of the generator workflow.
    GeneratorSubrun,
}

impl SpawnMode {
    /// Every mode.
    pub const ALL: [SpawnMode; 2] = [Self::Workflow, Self::GeneratorSubrun];

    /// The name, as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::GeneratorSubrun => "generator_subrun",
        }
    }

    /// The mode of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

/// What becomes of the results of a journey's children.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FanIn {
    /// Who speaks next.
    pub resume_agent: Arc<str>,
    /// How the results become one.
    pub merge_mode: MergeMode,
    /// The variable that holds it.
    pub inject_as: String,
    /// What it means that some of the children did not succeed.
    pub on_partial_failure: OnPartialFailure,
    /// What each result has to have, by name. A child whose result does not have it has failed.
    pub output_contract: OutputContract,
}

impl FanIn {
    /// After which `resume_agent` speaks.
    pub fn new(resume_agent: impl Into<Arc<str>>) -> Self {
        Self {
            resume_agent: resume_agent.into(),
            merge_mode: MergeMode::default(),
            inject_as: "child_results".to_owned(),
            on_partial_failure: OnPartialFailure::default(),
            output_contract: OutputContract::default(),
        }
    }
}

/// What the result of a child has to have, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutputContract {
    /// Keys that have to be there, of the output if that is an object, else of the variables.
    pub required: Vec<String>,
    /// Variables of the child that belong to the result if they are set.
    pub optional: Vec<String>,
}

impl OutputContract {
    /// These, and if they are set, these.
    pub fn new(required: Vec<String>, optional: Vec<String>) -> Self {
        Self { required, optional }
    }
}

/// How the results of children become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MergeMode {
    /// One text of all, in the order of the children.
    Concatenate,
    /// One object of all: maps are merged deeply, lists follow each other, and of what else
    /// collides the later child's is kept.
    Structured,
    /// A list with an entry for each child, those that failed too.
    #[default]
    CollectAll,
}

impl MergeMode {
    /// Every mode.
    pub const ALL: [MergeMode; 3] = [Self::Concatenate, Self::Structured, Self::CollectAll];

    /// The name, as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Concatenate => "concatenate",
            Self::Structured => "structured",
            Self::CollectAll => "collect_all",
        }
    }

    /// The mode of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

/// What it means that some of the children did not succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnPartialFailure {
    /// The chat goes on with what there is.
    #[default]
    ResumeWithAvailable,
    /// The chat fails.
    FailAll,
    /// Those that failed are made once again; then the chat goes on with what there is.
    RetryFailed,
    /// The person decides: to go on with what there is, to make them again, or to fail.
    PromptUser,
}

impl OnPartialFailure {
    /// Every one.
    pub const ALL: [OnPartialFailure; 4] =
        [Self::ResumeWithAvailable, Self::FailAll, Self::RetryFailed, Self::PromptUser];

    /// The name, as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ResumeWithAvailable => "resume_with_available",
            Self::FailAll => "fail_all",
            Self::RetryFailed => "retry_failed",
            Self::PromptUser => "prompt_user",
        }
    }

    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

macro_rules! display {
    ($($kind:ty),*) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

display!(SpawnMode, MergeMode, OnPartialFailure);
