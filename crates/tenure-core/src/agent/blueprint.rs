//! What an agent is: built once, shared by its instances.

use super::tools::{Sources, ToolSet};
use super::{Agent, AgentConfig, Inner, Label, Registry};
use crate::ask::Asker;
use crate::error::Error;
use crate::event::EventBus;
use crate::hook::{Chain, Entry, Origin, Point, Policy};
use crate::kernel::Bounds;
use crate::memory::Memory;
use crate::model::Model;
use crate::state::Ownership;
use crate::tool::ToolSpec;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// What an agent is: its configuration, model, tools and hooks. Cheap to clone and to share.
///
/// ```
/// # use tenure_core::agent::Agent;
/// # use tenure_core::context::ModelCx;
/// # use tenure_core::model::*;
/// # struct Echo;
/// # #[async_trait::async_trait]
/// # impl Model for Echo {
/// #     async fn call(&self, r: &ModelRequest, _: ModelCx<'_>) -> Result<ModelResponse, ModelError> {
/// #         Ok(ModelResponse::text(r.messages.last().map(|m| m.text().to_owned()).unwrap_or_default()))
/// #     }
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let blueprint = Agent::builder("echo").model(Echo).blueprint()?;
/// let (one, two) = (blueprint.instance(), blueprint.instance());
/// assert_ne!(one.id(), two.id());
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Blueprint(pub(crate) Arc<BlueprintInner>);

pub(crate) struct BlueprintInner {
    pub(crate) config: Arc<AgentConfig>,
    pub(crate) chain: Arc<Chain>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) model_bounds: Bounds,
    pub(crate) tools: Arc<ToolSet>,
    /// Where more tools come from, where there is such a place.
    pub(crate) sources: Option<Sources>,
    pub(crate) ownership: Arc<Ownership>,
    pub(crate) tracker: TaskTracker,
    /// Where an instance was first started: for ends that begin outside of any runtime.
    pub(crate) runtime: OnceLock<Handle>,
    pub(crate) bus: Option<EventBus>,
    pub(crate) memory: Option<Arc<dyn Memory>>,
    pub(crate) registry: Option<Arc<dyn Registry>>,
    pub(crate) asker: Option<Arc<dyn Asker>>,
    /// Numbers clones and forks; shared with every blueprint derived from this one.
    pub(crate) spawned: Arc<AtomicU64>,
}

impl Blueprint {
    /// A new instance, not yet started.
    #[inline]
    pub fn instance(&self) -> Agent {
        Agent::of(Inner::new(self.0.clone(), Label::Root, self.0.bus.clone(), None))
    }

    /// A new instance that registers here, and not where its agent says: for several groups of the
    /// same agents at once, none of which finds those of another.
    pub fn instance_in(&self, registry: Arc<dyn Registry>) -> Agent {
        let inner = &*self.0;
        let registered = BlueprintInner {
            config: inner.config.clone(),
            chain: inner.chain.clone(),
            model: inner.model.clone(),
            model_bounds: inner.model_bounds,
            tools: inner.tools.clone(),
            sources: inner.sources.as_ref().map(Sources::apart),
            ownership: inner.ownership.clone(),
            tracker: inner.tracker.clone(),
            runtime: inner.runtime.clone(),
            bus: inner.bus.clone(),
            memory: inner.memory.clone(),
            registry: Some(registry),
            asker: inner.asker.clone(),
            spawned: inner.spawned.clone(),
        };
        Blueprint(Arc::new(registered)).instance()
    }

    /// Whether its instances register somewhere when they start.
    pub fn registers(&self) -> bool {
        self.0.registry.is_some()
    }

    /// The agent's configuration.
    pub fn config(&self) -> &AgentConfig {
        &self.0.config
    }

    /// The tools that the agent was built with.
    pub fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.0.tools.specs
    }

    /// Whether a tool that the agent was built with is work of other agents, whose calls are their
    /// own.
    pub fn is_composite(&self, tool: &str) -> bool {
        let tools = &self.0.tools;
        tools.place(tool).is_some_and(|place| tools.at(place).0.is_composite())
    }

    /// The tools that the model may ask for as of now: those it was built with, and those of its
    /// [sources](crate::tool::ToolSource).
    pub fn current_tools(&self) -> Arc<[Arc<ToolSpec>]> {
        match self.0.live_tools() {
            Some(tools) => tools.specs.clone(),
            None => self.0.tools.specs.clone(),
        }
    }

    /// Waits until everything that dropped runs and dropped handles left behind has ended, for
    /// every instance of this blueprint that nobody holds any more or that is at rest.
    ///
    /// Background tasks of instances that still live count too: shut those down first.
    pub async fn settled(&self) {
        self.0.tracker.close();
        self.0.tracker.wait().await;
        self.0.tracker.reopen();
    }

    /// Which hooks run at `point`, in calling order (G12).
    pub fn entrants(&self, point: Point) -> Vec<Entrant> {
        let chain = &self.0.chain;
        let describe = |place: &u16| Entrant::of(&chain.entries[*place as usize], point);
        chain.calls(point).iter().map(describe).collect()
    }

    /// This agent as a child: the parent's guards next to its effects (G11), and the parent's
    /// asker where it has none of its own.
    pub(crate) fn as_child_of(&self, parent: &Chain, asker: Option<&Arc<dyn Asker>>) -> Blueprint {
        let inner = &*self.0;
        Blueprint(Arc::new(BlueprintInner {
            config: inner.config.clone(),
            chain: Arc::new(inner.chain.with_guards_of(parent)),
            model: inner.model.clone(),
            model_bounds: inner.model_bounds,
            tools: inner.tools.as_children_of(parent, asker),
            sources: inner.sources.as_ref().map(Sources::apart),
            ownership: inner.ownership.clone(),
            tracker: inner.tracker.clone(),
            runtime: inner.runtime.clone(),
            bus: inner.bus.clone(),
            memory: inner.memory.clone(),
            registry: inner.registry.clone(),
            asker: inner.asker.as_ref().or(asker).cloned(),
            spawned: inner.spawned.clone(),
        }))
    }
}

impl BlueprintInner {
    /// All tools as of now, where some of them come from elsewhere.
    #[inline]
    pub(crate) fn live_tools(&self) -> Option<Arc<ToolSet>> {
        let sources = self.sources.as_ref()?;
        Some(sources.merged(&self.tools, self.config.limits.tool))
    }

    /// Notes the runtime in which an instance is started.
    #[inline]
    pub(crate) fn started_here(&self) {
        if self.runtime.get().is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            // Of two at the same moment either will do.
            let _ = self.runtime.set(runtime);
        }
    }

    /// Has the tracker run `task`: in the runtime of whoever calls this, else where the agent was
    /// started. Where no runtime is left the task is dropped.
    pub(crate) fn run_detached(&self, task: impl Future<Output = ()> + Send + 'static) {
        match (Handle::try_current(), self.runtime.get()) {
            (Ok(_), _) => drop(self.tracker.spawn(task)),
            (Err(_), Some(runtime)) => drop(self.tracker.spawn_on(task, runtime)),
            (Err(_), None) => {}
        }
    }
}

impl fmt::Debug for Blueprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blueprint").field("config", &self.0.config).finish_non_exhaustive()
    }
}

/// A hook at a point, as `explain` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entrant {
    /// Its name.
    pub name: Arc<str>,
    /// Where it comes from.
    pub origin: Origin,
    /// What its failure means at this point.
    pub policy: Policy,
    /// How long a call may take.
    pub limit: Duration,
    /// Whether what is left of the budget of a startup or a shutdown cuts it: so it is at transitions.
    pub within_budget: bool,
    /// Whether it only observes.
    pub observes: bool,
    /// Whether it is a parent's guard.
    pub inherited: bool,
    /// Whether it is called again when a run goes on in another process.
    pub again_on_resume: bool,
}

impl Entrant {
    fn of(entry: &Entry, point: Point) -> Self {
        Self {
            name: entry.name.clone(),
            origin: entry.origin,
            policy: entry.policy(point),
            limit: entry.limit(point),
            within_budget: point == Point::OnTransition,
            observes: entry.observes,
            inherited: entry.inherited,
            again_on_resume: entry.again && point.decides(),
        }
    }
}

/// Every problem in one error.
pub(crate) fn problems_error(agent: &str, problems: &[String]) -> Error {
    Error::invalid(format!("agent `{agent}` cannot be built: {}", problems.join("; ")))
}
