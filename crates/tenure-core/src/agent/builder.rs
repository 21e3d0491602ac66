//! Building an agent.

use super::blueprint::{BlueprintInner, problems_error};
use super::tools::{Sources, ToolSet};
use super::{Agent, AgentConfig, Blueprint, Registry};
use crate::ask::Asker;
use crate::clone::{AgentTool, ChildOptions};
use crate::error::Error;
use crate::event::EventBus;
use crate::hook::{Chain, Defaults, HookRegistry, IntoRegistration, Point, Points, Registration};
use crate::kernel::Bounds;
use crate::life::LifecycleConfig;
use crate::memory::Memory;
use crate::model::{Model, ModelParams};
use crate::phase::{PhaseHook, PhaseHookEntry};
use crate::secret::Redactor;
use crate::state::{Ownership, StateOwnership};
use crate::tool::{Tool, ToolSource};
use crate::tower::{ModelLayer, ToolLayer};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// Says what an agent is. Nothing is checked until [`AgentBuilder::build`], which reports all that
/// is wrong at once.
#[must_use]
pub struct AgentBuilder {
    config: AgentConfig,
    model: Option<Arc<dyn Model>>,
    tools: Vec<Arc<dyn Tool>>,
    sources: Vec<Arc<dyn ToolSource>>,
    children: Vec<(Blueprint, ChildOptions)>,
    registrations: Vec<Registration>,
    hooks: HookRegistry,
    ownership: Ownership,
    bus: Option<EventBus>,
    memory: Option<Arc<dyn Memory>>,
    registry: Option<Arc<dyn Registry>>,
    asker: Option<Arc<dyn Asker>>,
}

impl AgentBuilder {
    /// Starts from a configuration.
    pub fn new(config: AgentConfig) -> Self {
        Self {
            config,
            model: None,
            tools: Vec::new(),
            sources: Vec::new(),
            children: Vec::new(),
            registrations: Vec::new(),
            hooks: HookRegistry::new(),
            ownership: Ownership::new(),
            bus: None,
            memory: None,
            registry: None,
            asker: None,
        }
    }

    /// The model that answers. Every agent needs one.
    #[doc(alias = "provider")]
    pub fn model(mut self, model: impl Model) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// The system instruction.
    #[doc(alias = "system_prompt")]
    pub fn instruction(mut self, instruction: impl Into<Arc<str>>) -> Self {
        self.config.instruction = Some(instruction.into());
        self
    }

    /// What the agent is for, as another model reads it when the agent is a tool.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.config.description = description.into();
        self
    }

    /// What steers the model.
    pub fn params(mut self, params: ModelParams) -> Self {
        self.config.params = params;
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds tools that come and go while the agent lives.
    pub fn tool_source(mut self, source: impl ToolSource) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Adds an agent as a tool: each call runs on a detached clone of it (G11).
    pub fn agent_tool(self, child: &Blueprint) -> Self {
        self.agent_tool_with(child, ChildOptions::default())
    }

    /// Adds an agent as a tool, with options.
    pub fn agent_tool_with(mut self, child: &Blueprint, options: ChildOptions) -> Self {
        self.children.push((child.clone(), options));
        self
    }

    /// Adds a hook, or a [`Registration`] of one.
    pub fn with_lifecycle(mut self, hook: impl IntoRegistration) -> Self {
        self.registrations.push(hook.into_registration());
        self
    }

    /// Adds a tower layer as a wrap around every model call.
    pub fn layer_model(self, layer: ModelLayer) -> Self {
        self.with_lifecycle(layer)
    }

    /// Adds a tower layer as a wrap around every tool call.
    pub fn layer_tool(self, layer: ToolLayer) -> Self {
        self.with_lifecycle(layer)
    }

    /// Adds a hook on phase transitions.
    pub fn phase_hook(mut self, hook: impl PhaseHook) -> Self {
        self.config.phase_hooks.push(Arc::new(hook));
        self
    }

    /// The hooks that [`AgentConfig::lifecycle_hooks`] may name.
    pub fn hook_registry(mut self, hooks: HookRegistry) -> Self {
        self.hooks = hooks;
        self
    }

    /// How startup and shutdown behave.
    pub fn lifecycle(mut self, config: LifecycleConfig) -> Self {
        self.config.lifecycle = config;
        self
    }

    /// Who owns which key.
    pub fn ownership(mut self, ownership: Ownership) -> Self {
        self.ownership = ownership;
        self
    }

    /// The most model calls that a turn may make.
    #[doc(alias = "max_iterations")]
    pub fn max_steps(mut self, steps: usize) -> Self {
        self.config.max_steps = steps;
        self
    }

    /// The most tool bodies that run at the same time.
    pub fn max_parallel_tools(mut self, tools: usize) -> Self {
        self.config.max_parallel_tools = tools;
        self
    }

    /// Whether a turn sees the turns before it.
    pub fn without_history(mut self) -> Self {
        self.config.use_history = false;
        self
    }

    /// The most time that a turn may take.
    pub fn turn_limit(mut self, limit: Duration) -> Self {
        self.config.limits.turn = Some(limit);
        self
    }

    /// The most time that a model call may take.
    pub fn model_limit(mut self, limit: Duration) -> Self {
        self.config.limits.model = Some(limit);
        self
    }

    /// The most time that a tool call may take, where the tool has no limit of its own.
    pub fn tool_limit(mut self, limit: Duration) -> Self {
        self.config.limits.tool = Some(limit);
        self
    }

    /// Where events go. Clones and forks use the same bus.
    pub fn events(mut self, bus: &EventBus) -> Self {
        self.bus = Some(bus.clone());
        self
    }

    /// Takes secrets out of the agent's events, and out of what its hooks write and send.
    pub fn redactor(mut self, redactor: &Redactor) -> Self {
        self.config.redactor = redactor.clone();
        self
    }

    /// What the agent remembers across runs.
    pub fn memory(mut self, memory: impl Memory) -> Self {
        self.memory = Some(Arc::new(memory));
        self
    }

    /// Where the agent is registered while it lives.
    pub fn registry(mut self, registry: Arc<dyn Registry>) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Who answers when a hook or a tool asks.
    pub fn on_ask(mut self, asker: impl Asker) -> Self {
        self.asker = Some(Arc::new(asker));
        self
    }

    /// The configuration as it stands.
    pub fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// The configuration, to change what no method does.
    pub fn config_mut(&mut self) -> &mut AgentConfig {
        &mut self.config
    }

    /// Checks everything and builds the blueprint. On failure the error says all that is wrong, and
    /// nothing was started.
    pub fn blueprint(self) -> Result<Blueprint, Error> {
        let Self { mut config, mut registrations, hooks, ownership, .. } = self;
        let mut problems = Vec::new();
        check_config(&config, &mut problems);
        named_hooks(&config, &hooks, &mut registrations, &mut problems);
        phase_hooks(&config, &mut registrations);
        let defaults = Defaults {
            hook: config.limits.hook,
            observer: config.limits.observer,
            end: config.limits.end,
        };
        let cap = registrations.iter().filter_map(|it| it.tool_limit).min();
        config.limits.tool = shorter(config.limits.tool, cap);
        let mut tools = self.tools;
        tools.extend(registrations.iter().flat_map(|it| it.tools.iter().cloned()));
        for (name, scope, pass) in registrations.iter().filter_map(|it| it.redacts.as_ref()) {
            let pass = pass.clone();
            config.redactor.add_pass(name, *scope, move |text, scope| pass(text, scope));
        }
        let chain = Chain::compile(registrations, defaults, &mut problems);

        for (child, options) in self.children {
            options.check(&child, &mut problems);
            let child = child.as_child_of(&chain, self.asker.as_ref());
            tools.push(Arc::new(AgentTool::new(child, options)));
        }
        let tools = ToolSet::new(tools, config.limits.tool, cap, &mut problems);
        for spec in tools.specs.iter() {
            for key in &spec.writes {
                if ownership.owner(key) != StateOwnership::Shared
                    || ownership.reducer(key).is_none()
                {
                    problems.push(format!(
                        "tool `{}` writes the key `{key}`, and tools run in parallel; declare it \
                         with `Ownership::shared` and a reducer",
                        spec.name
                    ));
                }
            }
        }
        let Some(model) = self.model else {
            problems.push("it has no model; give it one with `model(...)`".to_owned());
            return Err(problems_error(&config.name, &problems));
        };
        if !problems.is_empty() {
            return Err(problems_error(&config.name, &problems));
        }
        let model_bounds = Bounds::effect(config.limits.model);
        Ok(Blueprint(Arc::new(BlueprintInner {
            config: Arc::new(config),
            chain: Arc::new(chain),
            model,
            model_bounds,
            tools: Arc::new(tools),
            sources: Sources::of(self.sources),
            ownership: Arc::new(ownership),
            tracker: TaskTracker::new(),
            runtime: OnceLock::new(),
            bus: self.bus,
            memory: self.memory,
            registry: self.registry,
            asker: self.asker,
            spawned: Arc::new(AtomicU64::new(0)),
        })))
    }

    /// Checks everything and builds one instance.
    pub fn build(self) -> Result<Agent, Error> {
        Ok(self.blueprint()?.instance())
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The shorter of two limits.
pub(super) fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn check_config(config: &AgentConfig, problems: &mut Vec<String>) {
    if config.name.is_empty() {
        problems.push("it has no name; give it one".to_owned());
    }
    if config.max_steps == 0 {
        problems.push("max_steps is zero, so no turn could succeed; allow at least one".to_owned());
    }
    if config.max_parallel_tools == 0 {
        problems.push(
            "max_parallel_tools is zero, so no tool could run; allow at least one".to_owned(),
        );
    }
    if let Err(error) = config.lifecycle.check() {
        problems.push(error.to_string());
    }
    config.limits.check(problems);
}

/// Turns `lifecycle_hooks` into entries.
fn named_hooks(
    config: &AgentConfig,
    hooks: &HookRegistry,
    registrations: &mut Vec<Registration>,
    problems: &mut Vec<String>,
) {
    for (key, name) in &config.lifecycle_hooks {
        let point = match key.as_str() {
            "on_start" => Point::OnStart,
            "on_shutdown" => Point::OnShutdown,
            other => {
                problems.push(format!(
                    "invalid lifecycle hook type `{other}`; the types are on_start and on_shutdown"
                ));
                continue;
            }
        };
        match hooks.find(name) {
            Some(hook) => registrations.push(
                Registration::shared(hook).named(format!("{key}:{name}")).only(Points::from(point)),
            ),
            None => {
                let known: Vec<_> = hooks.names().collect();
                problems.push(format!(
                    "lifecycle hook {key} names `{name}`, which is not registered; registered \
                     are: {}",
                    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
                ));
            }
        }
    }
}

fn phase_hooks(config: &AgentConfig, registrations: &mut Vec<Registration>) {
    for hook in &config.phase_hooks {
        let mut registration = Registration::shared(Arc::new(PhaseHookEntry(hook.clone())))
            .on(hook.source(), hook.target())
            .order(hook.order());
        if let Some(limit) = hook.limit() {
            registration = registration.limit(limit);
        }
        registrations.push(registration);
    }
}
