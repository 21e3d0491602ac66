//! What a declared hook is.

use crate::project::Project;
use crate::sandbox::Grant;
use crate::source::{Node, Span};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::hook::{Limit, Points, Policy};
use tenure_core::phase::PhasePattern;
use tenure_hosts::{PythonFunction, ToolHooks};

/// All hooks of one card.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[doc(alias = "AgentLifecycleHooks")]
pub struct CardHooks {
    /// `lifecycle_hooks`, then `hooks`, each in the order of the file. Names are unique.
    pub declared: Vec<DeclaredHook>,
    /// `tool_hooks`.
    pub tool_hooks: ToolHookSet,
}

impl CardHooks {
    /// Whether the card declares none.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty() && self.tool_hooks.is_empty()
    }
}

/// One hook as a file declares it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeclaredHook {
    /// The name under which reports, events and order constraints know it: the field `name`, else
    /// the function, the program or the registered hook. Unique in the card.
    pub name: Arc<str>,
    /// Where it is called.
    pub on: On,
    /// What is called.
    pub run: Run,
    /// What a failure means; none means the default of each point.
    pub policy: Option<Policy>,
    /// The most time that a call may take; none means the default of each point.
    pub timeout: Option<Limit>,
    /// How often a failed call is made again, 0 to 10.
    pub retries: u32,
    /// How long to wait before the first repetition; doubled for each further one.
    pub backoff: Option<Duration>,
    /// Called only if this holds.
    pub when: Option<When>,
    /// The hooks that it stands before.
    pub before: Vec<Arc<str>>,
    /// The hooks that it stands after.
    pub after: Vec<Arc<str>>,
    /// Smaller comes first.
    pub order: i32,
    /// Called again when a run goes on in another process, instead of being taken from its record.
    pub again_on_resume: bool,
    /// The files that its commands write, absolute: what is in them does not count when a command is started.
    pub writes: Vec<PathBuf>,
    /// `sandbox`: the confinement of its process, if it is not the project's.
    pub sandbox: Option<Grant>,
    /// Where it is written.
    pub span: Span,
}

/// Where a declared hook is called.
#[derive(Clone, Debug, PartialEq)]
pub enum On {
    /// At these points.
    Points(Points),
    /// On the transitions that match.
    Transition {
        /// The phase that is left.
        from: PhasePattern,
        /// The phase that is entered.
        to: PhasePattern,
    },
    /// At every point that the registered hook has; only with `use`.
    Own,
}

/// What a declared hook calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Run {
    /// A Python function.
    Python(PythonRef),
    /// A program that takes JSON and answers with JSON.
    Command(CommandRef),
    /// A hook that is registered under this name.
    Use {
        /// The name.
        name: String,
        /// What it is configured with; `{}` if the file does not say.
        with: Value,
        /// Where each part of that is written.
        places: Places,
        /// The folder that paths in it start from: the file's.
        dir: PathBuf,
    },
}

/// Where the parts of a table are written, by their paths, as in `edits[0].keep`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(BTreeMap<String, Span>);

impl Places {
    /// Those of everything inside a node.
    pub fn of(node: &Node) -> Self {
        let mut places = Self::default();
        places.add(node, String::new());
        places
    }

    /// Where the part of this path is written; if it is not, what would hold it.
    pub fn find(&self, path: &str) -> Option<Span> {
        let mut path = path;
        loop {
            if let Some(span) = self.0.get(path) {
                return Some(*span);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }

    /// Returns the place of all of it.
    pub fn whole(&self) -> Option<Span> {
        self.0.values().copied().reduce(Span::to)
    }

    fn add(&mut self, node: &Node, path: String) {
        for (key, inner) in node.map().unwrap_or_default() {
            let path =
                if path.is_empty() { key.text.clone() } else { format!("{path}.{}", key.text) };
            self.0.insert(path.clone(), key.span.to(inner.span));
            self.add(inner, path);
        }
        for (at, inner) in node.list().unwrap_or_default().iter().enumerate() {
            let path = format!("{path}[{at}]");
            self.0.insert(path.clone(), inner.span);
            self.add(inner, path);
        }
    }
}

/// A Python function that a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PythonRef {
    /// What is written: `file.py:function`.
    pub spec: String,
    /// The function that was found by parsing the file.
    pub function: PythonFunction,
    /// Where it is written.
    pub span: Span,
}

/// A program that a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandRef {
    /// What is to be run. The program is an absolute path if the file names it by a path, and else a
    /// name that is looked up in PATH when it runs.
    pub argv: Vec<String>,
    /// The list as it is written: no `${VAR}` of it is expanded.
    pub written: Vec<String>,
    /// The program, if it is a file of the project.
    pub file: Option<PathBuf>,
    /// The folder that it runs in: the card's.
    pub dir: PathBuf,
    /// The files that it is declared to write, absolute.
    pub writes: BTreeSet<PathBuf>,
}

impl CommandRef {
    /// A command that runs in `dir`, written as it is run.
    pub(crate) fn of(argv: &[String], dir: &Path, project: &Project) -> Self {
        let file = argv.first().filter(|name| name.contains('/')).map(|name| dir.join(name));
        let file = file.filter(|file| file.starts_with(&project.root));
        let (argv, written) = (argv.to_vec(), argv.to_vec());
        Self { argv, written, file, dir: dir.to_owned(), writes: BTreeSet::new() }
    }

    /// The same command, declared to write these files.
    #[must_use]
    pub(crate) fn writing(self, files: &[PathBuf]) -> Self {
        Self { writes: files.iter().cloned().collect(), ..self }
    }
}

/// A condition on a hook: a strict minijinja expression that compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct When {
    /// The expression.
    pub expression: String,
    /// Where it is written.
    pub span: Span,
}

/// `tool_hooks`: fast-agent's five, Python functions all.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolHookSet {
    /// Before each model call.
    pub before_llm_call: Option<PythonRef>,
    /// After each model call.
    pub after_llm_call: Option<PythonRef>,
    /// Before each batch of tool calls.
    pub before_tool_call: Option<PythonRef>,
    /// After each batch of tool calls.
    pub after_tool_call: Option<PythonRef>,
    /// After the last answer of a turn.
    pub after_turn_complete: Option<PythonRef>,
}

impl ToolHookSet {
    /// The five names, in the order in which a turn reaches them.
    pub const NAMES: [&'static str; 5] = [
        "before_llm_call",
        "after_llm_call",
        "before_tool_call",
        "after_tool_call",
        "after_turn_complete",
    ];

    /// The hooks that are there, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &PythonRef)> {
        let all = [
            &self.before_llm_call,
            &self.after_llm_call,
            &self.before_tool_call,
            &self.after_tool_call,
            &self.after_turn_complete,
        ];
        Self::NAMES.into_iter().zip(all).filter_map(|(name, hook)| Some((name, hook.as_ref()?)))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The same five as the Python host takes them.
    pub fn functions(&self) -> ToolHooks {
        let of = |hook: &Option<PythonRef>| hook.as_ref().map(|hook| hook.function.clone());
        ToolHooks {
            before_llm_call: of(&self.before_llm_call),
            after_llm_call: of(&self.after_llm_call),
            before_tool_call: of(&self.before_tool_call),
            after_tool_call: of(&self.after_tool_call),
            after_turn_complete: of(&self.after_turn_complete),
        }
    }

    pub(crate) fn slot(&mut self, name: &str) -> Option<&mut Option<PythonRef>> {
        match name {
            "before_llm_call" => Some(&mut self.before_llm_call),
            "after_llm_call" => Some(&mut self.after_llm_call),
            "before_tool_call" => Some(&mut self.before_tool_call),
            "after_tool_call" => Some(&mut self.after_tool_call),
            "after_turn_complete" => Some(&mut self.after_turn_complete),
            _ => None,
        }
    }
}
