//! The tools of an agent, by name: those it was built with, and those that come from elsewhere.

use super::builder::shorter;
use crate::ask::Asker;
use crate::clone::AgentTool;
use crate::hook::Chain;
use crate::kernel::Bounds;
use crate::sync::Mutex;
use crate::tool::{Tool, ToolSource, ToolSpec};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The tools of an agent, by name.
pub(crate) struct ToolSet {
    pub(crate) specs: Arc<[Arc<ToolSpec>]>,
    tools: Box<[(Arc<dyn Tool>, Bounds)]>,
    /// The most time that any of them may take.
    cap: Option<Duration>,
    /// Only where a linear search would be slower.
    index: Option<HashMap<Arc<str>, usize>>,
}

const LINEAR: usize = 12;

impl ToolSet {
    pub(crate) fn new(
        tools: Vec<Arc<dyn Tool>>,
        limit: Option<Duration>,
        cap: Option<Duration>,
        problems: &mut Vec<String>,
    ) -> Self {
        let specs: Arc<[Arc<ToolSpec>]> = tools.iter().map(|tool| Arc::new(tool.spec())).collect();
        let mut index = HashMap::new();
        for (at, spec) in specs.iter().enumerate() {
            if index.insert(spec.name.clone(), at).is_some() {
                problems.push(format!(
                    "two tools have the name `{}`; the model could not tell them apart",
                    spec.name
                ));
            }
            if spec.name.is_empty() {
                problems.push("a tool has no name; give it one".to_owned());
            }
            if spec.limit.is_some_and(|limit| limit.is_zero()) {
                problems.push(format!(
                    "tool `{}` has a limit of zero; give it more than zero, or leave it out",
                    spec.name
                ));
            }
        }
        let index = (specs.len() > LINEAR).then_some(index);
        let bounded = tools.into_iter().zip(specs.iter()).map(|(tool, spec)| {
            let grace = Some(tool.cancel_grace());
            (tool, Bounds { grace, ..Bounds::effect(shorter(spec.limit.or(limit), cap)) })
        });
        let tools = bounded.collect();
        Self { specs, tools, cap, index }
    }

    /// These tools, where the agents among them have the guards of `parent` too: guards come along
    /// however deep (G11).
    pub(crate) fn as_children_of(
        self: &Arc<Self>,
        parent: &Chain,
        asker: Option<&Arc<dyn Asker>>,
    ) -> Arc<Self> {
        let adopted = |tool: &Arc<dyn Tool>| {
            let agent = tool.as_any()?.downcast_ref::<AgentTool>()?;
            Some(Arc::new(agent.as_child_of(parent, asker)) as Arc<dyn Tool>)
        };
        if !self.tools.iter().any(|(tool, _)| tool.is_composite()) {
            return self.clone();
        }
        let tools = self.tools.iter();
        let tools =
            tools.map(|(tool, bounds)| (adopted(tool).unwrap_or_else(|| tool.clone()), *bounds));
        Arc::new(Self {
            specs: self.specs.clone(),
            tools: tools.collect(),
            cap: self.cap,
            index: self.index.clone(),
        })
    }

    /// Where the tool of this name is.
    #[inline]
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None => self.specs.iter().position(|spec| &*spec.name == name),
        }
    }

    #[inline]
    pub(crate) fn at(&self, place: usize) -> (&dyn Tool, &Bounds) {
        let (tool, bounds) = &self.tools[place];
        (&**tool, bounds)
    }

    pub(crate) fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.place(name).map(|place| &*self.specs[place])
    }

    /// These tools and `more`, without those whose names are taken.
    fn with(&self, more: Vec<Arc<dyn Tool>>, limit: Option<Duration>) -> Self {
        let mut tools: Vec<_> = self.tools.iter().map(|(tool, _)| tool.clone()).collect();
        let mut names: HashSet<_> = self.specs.iter().map(|spec| spec.name.clone()).collect();
        tools.extend(more.into_iter().filter(|tool| names.insert(tool.spec().name)));
        // What is wrong with a tool from elsewhere is told by whoever brings it.
        Self::new(tools, limit, self.cap, &mut Vec::new())
    }

    /// The error result for a tool that is not there.
    pub(crate) fn unknown(&self, name: &str) -> String {
        if self.specs.is_empty() {
            return format!("there is no tool `{name}`; there are no tools at all");
        }
        let names: Vec<_> = self.specs.iter().map(|spec| &*spec.name).collect();
        format!("there is no tool `{name}`; there are: {}", names.join(", "))
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs.iter().map(|spec| &spec.name)).finish()
    }
}

/// Where more tools come from, and what was there at the last look.
pub(crate) struct Sources {
    list: Arc<[Arc<dyn ToolSource>]>,
    seen: Mutex<Option<Seen>>,
}

struct Seen {
    versions: Box<[u64]>,
    tools: Arc<ToolSet>,
}

impl Sources {
    pub(crate) fn of(list: Vec<Arc<dyn ToolSource>>) -> Option<Self> {
        (!list.is_empty()).then(|| Self { list: list.into(), seen: Mutex::new(None) })
    }

    /// The same sources, for another set of own tools.
    pub(crate) fn apart(&self) -> Self {
        Self { list: self.list.clone(), seen: Mutex::new(None) }
    }

    /// `own` and what the sources have as of now.
    pub(crate) fn merged(&self, own: &ToolSet, limit: Option<Duration>) -> Arc<ToolSet> {
        let versions: Box<[u64]> = self.list.iter().map(|source| source.version()).collect();
        let known = |seen: &Seen| (seen.versions == versions).then(|| seen.tools.clone());
        if let Some(tools) = self.seen.lock().as_ref().and_then(known) {
            return tools;
        }
        // A change in between is seen at the next look, because the versions are older.
        let more = self.list.iter().flat_map(|source| source.tools()).collect();
        let tools = Arc::new(own.with(more, limit));
        *self.seen.lock() = Some(Seen { versions, tools: tools.clone() });
        tools
    }
}
