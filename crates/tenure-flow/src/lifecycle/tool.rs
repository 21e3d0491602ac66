//! What a lifecycle tool is, as a file or a program declares it.

use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::hook::Places;
use tenure_cards::source::{Source, Span};
use tenure_core::hook::{Limit, Origin, Point, Policy};
use tenure_hosts::PythonFunction;

/// When a lifecycle tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// Once, before the first turn of a chat.
    BeforeChat,
    /// Once, when a chat is over, however it ended, and before its agents shut down.
    AfterChat,
    /// Before each turn of an agent.
    BeforeAgent,
    /// After each turn of an agent, however it ended.
    AfterAgent,
}

impl Trigger {
    /// Every trigger.
    pub const ALL: [Self; 4] =
        [Self::BeforeChat, Self::AfterChat, Self::BeforeAgent, Self::AfterAgent];

    /// The name as files and events spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeChat => "before_chat",
            Self::AfterChat => "after_chat",
            Self::BeforeAgent => "before_agent",
            Self::AfterAgent => "after_agent",
        }
    }

    /// The point of an agent's life that it is.
    pub const fn point(self) -> Point {
        match self {
            Self::BeforeChat => Point::BeforeChat,
            Self::AfterChat => Point::AfterChat,
            Self::BeforeAgent => Point::BeforeAgent,
            Self::AfterAgent => Point::AfterAgent,
        }
    }

    /// Whether it concerns the chat, and no agent of it.
    pub const fn is_of_chat(self) -> bool {
        matches!(self, Self::BeforeChat | Self::AfterChat)
    }

    /// Whether it comes when something is over.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::AfterChat | Self::AfterAgent)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|trigger| trigger.as_str() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|trigger| trigger.as_str()).collect();
            format!("`{text}` is no trigger; the triggers are {}", known.join(", "))
        })
    }
}

/// What a lifecycle tool runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Run {
    /// A Python function.
    Python(PythonFunction),
    /// A program that gets JSON and may answer with JSON.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The folder it runs in; a program with a `/` in it is relative to that.
        dir: PathBuf,
    },
    /// A hook or a function in Rust that is registered under this name.
    Use {
        /// The name.
        name: String,
        /// What it is configured with; `{}` if the file does not say.
        with: Value,
        /// The place of each part of that.
        places: Places,
    },
    /// The platform's own line at the begin of a chat, or at its end.
    Platform,
}

/// One entry of `lifecycle_tools`.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[doc(alias = "LifecycleToolManager")]
#[doc(alias = "lifecycle.tool_call")]
#[doc(alias = "lifecycle.tool_error")]
#[doc(alias = "lifecycle.tool_result")]
#[doc(alias = "lifecycle_tools")]
pub struct LifecycleTool {
    /// When it runs.
    pub trigger: Trigger,
    /// The agent before or after whose turns it runs. None means every agent, and is the only one
    /// that a trigger of the chat can have.
    pub agent: Option<Arc<str>>,
    /// What it runs.
    pub run: Run,
    /// The name that events, reports and order constraints know it by; unique in the workflow.
    pub name: Arc<str>,
    /// Its purpose, as events, the log and `explain` say it.
    pub description: Option<Arc<str>>,
    /// What a failure means; none means `continue`. An end is always continued.
    pub policy: Option<Policy>,
    /// The most time that a call may take, with its repetitions; none means 30 s at a begin and 5 s
    /// at an end.
    pub timeout: Option<Limit>,
    /// How often a failed call is made again.
    pub retries: u32,
    /// How long to wait before the first repetition; doubled for each further one.
    pub backoff: Option<Duration>,
    /// Called only if this expression holds.
    pub when: Option<Arc<str>>,
    /// Whether it is called again when a run goes on in another process: for a tool at a begin that
    /// makes something which does not outlive its process, a connection for one.
    pub again_on_resume: bool,
    /// The files that its command is declared to write, absolute: what is in them does not count when it is started.
    pub writes: Vec<PathBuf>,
    /// The tools of the same trigger that it stands before.
    pub before: Vec<Arc<str>>,
    /// The tools of the same trigger that it stands after.
    pub after: Vec<Arc<str>>,
    /// Smaller comes first; equal ones in the order of the file.
    pub order: i32,
    /// The file as it is written, as events name it; empty where there is none.
    pub file: Arc<str>,
    /// The function as it is written, as events name it: of a command its program, of a registered
    /// function its name.
    pub function: Arc<str>,
    /// Where it is declared, as `file:line`.
    pub declared: Option<Arc<str>>,
    /// The same place, for whoever reports what is wrong with it.
    pub place: Option<(Arc<Source>, Span)>,
    /// Whose it is: the workflow's, or the platform's own.
    pub origin: Origin,
}

impl LifecycleTool {
    /// A tool with defaults for everything else: every agent, no condition, no repetition.
    pub fn new(trigger: Trigger, name: impl Into<Arc<str>>, run: Run) -> Self {
        let (file, function): (Arc<str>, Arc<str>) = match &run {
            Run::Python(function) => {
                let file = function.file.path().file_name().unwrap_or_default();
                (file.to_string_lossy().into(), function.name.clone())
            }
            Run::Command { argv, .. } => {
                ("".into(), argv.first().map_or("", String::as_str).into())
            }
            Run::Use { name, .. } => ("".into(), name.as_str().into()),
            Run::Platform => ("".into(), "".into()),
        };
        Self {
            trigger,
            agent: None,
            run,
            name: name.into(),
            description: None,
            policy: None,
            timeout: None,
            retries: 0,
            backoff: None,
            when: None,
            again_on_resume: false,
            writes: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            order: 0,
            file,
            function,
            declared: None,
            place: None,
            origin: Origin::Workflow,
        }
    }

    /// The name of its entry in an agent's chain.
    pub fn entry_name(&self) -> String {
        match self.origin {
            Origin::Platform => format!("platform.{}", self.name),
            _ => format!("lifecycle_tools.{}", self.name),
        }
    }

    /// What it runs, in a few words.
    pub fn runs(&self) -> String {
        match &self.run {
            Run::Python(_) => format!("{}:{}", self.file, self.function),
            Run::Command { argv, .. } => argv.join(" "),
            Run::Use { name, .. } => format!("use {name}"),
            Run::Platform => "logs a line".to_owned(),
        }
    }

    /// Whether it runs at turns of this agent. The person's turns count only for a tool that names
    /// them.
    pub fn concerns(&self, agent: &str) -> bool {
        match &self.agent {
            Some(named) => **named == *agent,
            None => agent != super::USER,
        }
    }
}
