//! One card, one agent.

use super::DEFAULT_MAX_STEPS;
use super::assembly::{Built, Settings};
use super::composed::composition;
use super::declaration::declaration;
use super::hooks::{Entries, Hosts};
use super::messages::InitialMessages;
use super::model::place;
use super::results::ResultMode;
use super::skills::{self, Skill};
use super::tools::{HumanInput, ReadSkill};
use super::trajectory::Trajectory;
use crate::card::{
    AgentCard, Card, CardKind, HistoryMerge, ModelFields, TemplateContext, load_history,
    render_instruction,
};
use crate::compose::Member;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::project::Project;
use crate::sandbox::sandboxed;
use crate::team::ModelExplanation;
use crate::user::UserConfig;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tenure_core::agent::{AgentBuilder, AgentConfig, AgentRegistry, Blueprint};
use tenure_core::model::ModelParams;
use tenure_core::secret::Redactor;
use tenure_hosts::mcp::{McpServers, McpView};
use tenure_models::provider::Providers;

/// Where agents are built, one after the other, children first.
pub(super) struct Workshop<'a> {
    pub(super) project: &'a Project,
    pub(super) user: &'a UserConfig,
    /// What nobody may read in what is stored.
    pub(super) redactor: Redactor,
    pub(super) settings: &'a Settings,
    pub(super) hosts: Hosts<'a>,
    pub(super) registry: Arc<AgentRegistry>,
    pub(super) cards: BTreeMap<Arc<str>, &'a Card>,
    pub(super) built: BTreeMap<Arc<str>, Blueprint>,
    pub(super) providers: Providers,
    pub(super) servers: McpServers,
    /// How long each of them may take to start.
    pub(super) start_limits: BTreeMap<Arc<str>, Duration>,
    /// What each agent sees of them.
    pub(super) views: BTreeMap<Arc<str>, McpView>,
    pub(super) report: Report,
    /// What is not wrong with the cards, and keeps them from running here: keys and variables.
    pub(super) needs: Report,
    pub(super) python: bool,
}

/// The model that an agent uses.
pub(super) struct Choice {
    /// Its name, as somebody wrote it.
    pub(super) text: String,
    /// Where it is, if it is reached over the network.
    pub(super) remote: Option<ModelExplanation>,
}

/// A card limits its children by `max_parallel` and nothing else; this keeps a model that asks for
/// everything at once from taking the machine with it.
const MOST_TOOLS_AT_ONCE: usize = 1_000;

/// Which agent of a card is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edition {
    /// The agent itself.
    Whole,
    /// What its tool `subagent` runs: the hooks of its turns, but no life of its own to hook, and
    /// no helpers of its own.
    Helper,
}

impl Workshop<'_> {
    /// Builds the agent of a card; `None` if nothing could be made of it.
    pub(super) fn build(&mut self, card: &Card, at: usize) -> Option<Built> {
        let built = match &card.kind {
            CardKind::Agent(agent) => self.agent(card, agent),
            CardKind::A2a(_) => {
                let message = format!("`{}` is an agent elsewhere (type a2a)", card.name);
                let span = place(card, "type");
                self.refuse(
                    card,
                    Code::NotRunnable,
                    span,
                    message,
                    "agents elsewhere are not in this release",
                );
                None
            }
            _ => self.composed(card),
        }?;
        let (blueprint, entries, model) = built;
        let Choice { text: model, remote } = model;
        let history = load_history(card);
        let remembers = blueprint.config().use_history && model != "playback";
        Some(Built {
            name: card.name.clone(),
            card: at,
            blueprint,
            history: (remembers && !history.is_empty()).then_some(history),
            places: entries.places,
            children: card.references().iter().map(|child| child.name.clone()).collect(),
            model,
            remote,
            view: self.views.remove(&card.name),
        })
    }

    fn agent(&mut self, card: &Card, agent: &AgentCard) -> Option<(Blueprint, Entries, Choice)> {
        self.refuse_fields(card, agent);
        let skills = skills::skills(&agent.skills, card, self.project, &mut self.report);
        let (model, named) = self.model(card, &agent.model);
        let mut entries = Entries { model: Some(named.text.clone()), ..Entries::default() };
        self.common_entries(card, Some(&agent.model), &named.text, &mut entries);
        entries.tool_hooks(card, &self.hosts);
        if agent.trim_tool_history {
            entries.trim(card);
        }
        if let Some(mode) = self.result_mode(card, agent) {
            entries.results(card, mode);
        }
        entries.declare(card, &self.hosts, &mut self.report);
        let mut builder = self.worker(card, agent, &skills, Edition::Whole, &mut entries);
        if agent.subagents.unwrap_or(agent.smart) {
            builder = self.with_subagents(builder, card, agent, &skills, &model, &entries);
        }
        builder = self.attached(card, builder.model(model), &mut entries);
        let has_servers = entries.servers.is_some();
        let blueprint = self.finish(card, builder, &mut entries)?;
        if !has_servers {
            self.doubt_tools(card, &blueprint);
        }
        if agent.shell {
            self.doubt_shell(card);
        }
        Some((blueprint, entries, named))
    }

    fn composed(&mut self, card: &Card) -> Option<(Blueprint, Entries, Choice)> {
        let composition = composition(&card.kind)?;
        let mut builder = AgentBuilder::new(self.config(card, card.name.clone()));
        if card.instruction.is_some() {
            builder = self.instruct(builder, card, &[]);
        }
        let fields = card.kind.model_fields();
        let mut llm = None;
        let mut named = Choice { text: card.card_type().to_string(), remote: None };
        match fields {
            Some(fields) => {
                let (model, name) = self.model(card, fields);
                (llm, named) = (Some(model), name);
                self.params(fields, &mut builder);
                let mode = fields.request_params.tool_result_mode.as_deref();
                if ResultMode::of(mode).is_some() {
                    let message =
                        "`tool_result_mode` is for agents that call tools themselves".to_owned();
                    let help = "give it to one of the agents that this one puts together";
                    let span = place(card, "request_params");
                    self.refuse(card, Code::NotRunnable, span, message, help);
                }
                if fields.human_input {
                    let message =
                        "`human_input` is for agents that call tools themselves".to_owned();
                    let help = "give it to one of the agents that this one puts together";
                    self.refuse(card, Code::NotRunnable, place(card, "human_input"), message, help);
                }
            }
            None => {
                builder.config_mut().use_history = false;
                if !card.messages.is_empty() {
                    let message = format!(
                        "`messages` mean nothing to a {}: it has no model of its own",
                        card.card_type()
                    );
                    let span = place(card, "messages");
                    let diagnostic =
                        Diagnostic::new(Code::MeaninglessField, &card.source, span, message);
                    self.report.push(diagnostic.help("give them to one of its agents"));
                }
            }
        }
        let mut entries = Entries { model: Some(named.text.clone()), ..Entries::default() };
        (builder, entries.servers) = self.with_servers(builder, card);
        self.common_entries(card, fields, &named.text, &mut entries);
        entries.tool_hooks(card, &self.hosts);
        entries.declare(card, &self.hosts, &mut self.report);
        let members: Vec<_> = composition
            .agents()
            .into_iter()
            .filter_map(|name| self.built.get(name))
            .map(Member::new)
            .fold(Vec::new(), |mut members: Vec<Member>, member| {
                if !members.iter().any(|known| known.name() == member.name()) {
                    members.push(member);
                }
                members
            });
        let max_steps = builder.config().max_steps;
        let asks_for_more = fields.is_some_and(|it| it.request_params.max_steps.is_some());
        builder = composition.apply(builder, &members, llm);
        if asks_for_more {
            // What a card says counts, also where it is less than a composition could need.
            builder.config_mut().max_steps = max_steps;
        }
        builder = self.attached(card, builder, &mut entries);
        let blueprint = self.finish(card, builder, &mut entries)?;
        Some((blueprint, entries, named))
    }

    /// Adds what others say of the agent. Its helpers have none of it: they take no part in what the
    /// agent takes part in.
    fn attached(
        &mut self,
        card: &Card,
        mut builder: AgentBuilder,
        entries: &mut Entries,
    ) -> AgentBuilder {
        for attach in &self.settings.attach {
            let attached = attach.attach(&card.name, &self.hosts.for_attaching());
            let problems;
            (builder, problems) = entries.attach(attached, builder);
            for problem in problems {
                self.report.push(problem);
            }
        }
        builder
    }

    /// Returns the mode of its tools' results, if its model does not read them.
    fn result_mode(&mut self, card: &Card, agent: &AgentCard) -> Option<ResultMode> {
        let mode = ResultMode::of(agent.model.request_params.tool_result_mode.as_deref())?;
        if agent.children.history_merge_target == HistoryMerge::Orchestrator {
            let message = "results cannot be passed through behind which the conversations of \
                           children stand";
            let help = "leave out `history_merge_target: orchestrator`, or `tool_result_mode`";
            let span = place(card, "request_params");
            self.refuse(card, Code::NotRunnable, span, message.to_owned(), help);
        }
        Some(mode)
    }

    /// What every agent has: name, description, limits.
    fn config(&self, card: &Card, name: Arc<str>) -> AgentConfig {
        let mut config = AgentConfig::new(name);
        config.description = card.description.clone().unwrap_or_default();
        config.max_steps = DEFAULT_MAX_STEPS;
        config.max_parallel_tools = MOST_TOOLS_AT_ONCE;
        let limits = &self.project.config;
        let set = |limit: Option<tenure_core::hook::Limit>| limit.map(|limit| limit.duration());
        config.limits.hook = set(limits.hook_limit).unwrap_or(config.limits.hook);
        config.limits.end = set(limits.end_limit).unwrap_or(config.limits.end);
        config.limits.ends = set(limits.ends_limit).unwrap_or(config.limits.ends);
        config.limits.turn = set(limits.turn_limit);
        config.limits.model = set(limits.model_limit);
        config.limits.tool = set(limits.tool_limit);
        config
    }

    /// Hooks of the platform that a card's fields ask for.
    fn common_entries(
        &self,
        card: &Card,
        fields: Option<&ModelFields>,
        model: &str,
        entries: &mut Entries,
    ) {
        if fields.is_some_and(|fields| fields.save_trajectory) {
            let root = self.project.root.clone();
            entries.platform(Trajectory { root }, "save_trajectory");
        }
        let remembers = fields.is_some_and(remembers);
        if fields.is_some() && !remembers && !card.messages.is_empty() && model != "playback" {
            entries.platform(InitialMessages(load_history(card)), "messages");
        }
    }

    /// The agent itself without its model: instruction, parameters, tools, children.
    pub(super) fn worker(
        &mut self,
        card: &Card,
        agent: &AgentCard,
        skills: &[Skill],
        edition: Edition,
        entries: &mut Entries,
    ) -> AgentBuilder {
        let name = match edition {
            Edition::Whole => card.name.clone(),
            Edition::Helper => format!("{}.subagent", card.name).into(),
        };
        let mut builder = AgentBuilder::new(self.config(card, name));
        builder = self.instruct(builder, card, skills);
        self.params(&agent.model, &mut builder);
        for tool in &agent.function_tools {
            entries.python = true;
            let spec = (*tool.spec).clone();
            let mut own = self.hosts.python.tool(tool.function.clone(), spec);
            if let Some(grant) = &tool.sandbox {
                own = own.environment(sandboxed(self.hosts.environment, Some(grant)));
            }
            builder = builder.tool(own);
        }
        if agent.shell {
            builder = self.with_shell(builder, agent);
        }
        if agent.model.human_input {
            builder = builder.tool(HumanInput);
        }
        if !skills.is_empty() {
            builder = builder.tool(ReadSkill { skills: skills.into() });
        }
        for child in &agent.agents {
            builder = self.with_child(builder, child, &agent.children);
        }
        (builder, entries.servers) = self.with_servers(builder, card);
        builder
    }

    fn instruct(&mut self, builder: AgentBuilder, card: &Card, skills: &[Skill]) -> AgentBuilder {
        let now = self.settings.now.unwrap_or_else(SystemTime::now);
        let mut context = TemplateContext::at(self.project, now);
        context.skills = skills::listing(skills);
        match render_instruction(card, &context) {
            Ok(mut text) => {
                let listed =
                    card.instruction.as_deref().is_none_or(|it| it.contains("{{agentSkills}}"));
                if !skills.is_empty() && !listed {
                    text = format!("{text}\n\n{}", context.skills);
                }
                builder.instruction(text)
            }
            Err(error) => {
                let span = card.name_span;
                self.refuse(
                    card,
                    Code::CannotBeBuilt,
                    span,
                    error.to_string(),
                    "correct the instruction",
                );
                builder
            }
        }
    }

    /// What steers the model, and how far a turn may go.
    fn params(&mut self, fields: &ModelFields, builder: &mut AgentBuilder) {
        let request = &fields.request_params;
        let config = builder.config_mut();
        config.use_history = remembers(fields);
        if let Some(steps) = request.max_steps {
            config.max_steps = steps as usize;
        }
        if request.parallel_tool_calls == Some(false) {
            config.max_parallel_tools = 1;
        }
        let mut params = ModelParams::default();
        params.temperature = request.temperature.map(|it| it as f32);
        params.max_tokens = request.max_tokens;
        if !request.extra.is_empty() {
            params.extra = Some(Arc::new(request.extra.clone().into()));
        }
        config.params = params;
    }

    /// Adds what all agents of a run share, and checks the whole.
    pub(super) fn finish(
        &mut self,
        card: &Card,
        mut builder: AgentBuilder,
        entries: &mut Entries,
    ) -> Option<Blueprint> {
        self.python |= entries.python;
        for need in std::mem::take(&mut entries.needs) {
            self.needs.push(need);
        }
        entries.keepers(self.hosts.python);
        for registration in std::mem::take(&mut entries.registrations) {
            builder = builder.with_lifecycle(registration);
        }
        let model = entries.model.as_deref();
        builder.config_mut().declaration = Some(declaration(card, model, &self.redactor));
        builder = builder.redactor(&self.redactor);
        builder = builder.registry(self.registry.clone());
        if let Some(events) = &self.settings.events {
            builder = builder.events(events);
        }
        if let Some(asker) = &self.settings.asker {
            builder = builder.on_ask(asker.clone());
        }
        if let Some(memory) = &self.settings.memory {
            builder = builder.memory(memory.clone());
        }
        match builder.blueprint() {
            Ok(blueprint) => Some(blueprint),
            Err(error) => {
                self.refuse_whole(card, &error.to_string());
                None
            }
        }
    }
}

/// Whether a turn sees the turns before it.
fn remembers(fields: &ModelFields) -> bool {
    fields.request_params.use_history.unwrap_or(fields.use_history)
}
