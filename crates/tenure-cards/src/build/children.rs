//! Agents as tools of an agent.

use super::agent::{Edition, Workshop};
use super::hooks::Entries;
use super::model::{By, Chosen, Named};
use super::reference::follow;
use super::results::{ResultMode, selectable};
use super::skills::Skill;
use crate::card::{
    AgentCard, AgentRef, Card, CardKind, ChildSettings, HistoryMerge, HistorySource, load_history,
};
use std::sync::Arc;
use tenure_core::agent::AgentBuilder;
use tenure_core::clone::{ChildOptions, HistoryIn, HistoryOut};
use tenure_core::message::History;
use tenure_core::model::Model;

impl Workshop<'_> {
    /// Adds a child as a tool: each call runs on a detached clone of it.
    pub(super) fn with_child(
        &self,
        builder: AgentBuilder,
        child: &AgentRef,
        settings: &ChildSettings,
    ) -> AgentBuilder {
        // A child that could not be built has said why.
        let Some(blueprint) = self.built.get(&child.name) else { return builder };
        let mut options = ChildOptions::default();
        options.max_parallel = settings.max_parallel;
        options.limit = settings.child_timeout;
        let card = self.cards.get(&child.name);
        options = match settings.history_source {
            HistorySource::None => options,
            HistorySource::Child => options.history_in(HistoryIn::Child),
            HistorySource::Orchestrator => options.history_in(HistoryIn::Parent),
            HistorySource::Messages => {
                options.given(card.map_or_else(History::new, |card| load_history(card)))
            }
        };
        options = options.history_out(match settings.history_merge_target {
            HistoryMerge::None => HistoryOut::None,
            HistoryMerge::Child => HistoryOut::Child,
            HistoryMerge::Orchestrator => HistoryOut::Parent,
        });
        if let Some(CardKind::Agent(agent)) = card.map(|card| &card.kind)
            && let Some(schema) = &agent.tool_input_schema
        {
            options = options.parameters(schema.as_value().clone());
        }
        let fields = card.and_then(|card| card.kind.model_fields());
        let mode = fields.and_then(|fields| fields.request_params.tool_result_mode.as_deref());
        if ResultMode::of(mode) == Some(ResultMode::Selectable) {
            options = selectable(options);
        }
        builder.agent_tool_with(blueprint, options)
    }

    /// Adds the tool `subagent`: each call runs on an isolated clone of the same agent. The hooks
    /// of its turns come along, so whatever watches over tools watches over the clone's too.
    pub(super) fn with_subagents(
        &mut self,
        builder: AgentBuilder,
        card: &Card,
        agent: &AgentCard,
        skills: &[Skill],
        own: &Arc<dyn Model>,
        hooks: &Entries,
    ) -> AgentBuilder {
        let model = match (&agent.subagent_model, &self.settings.model) {
            (Some(text), None) => {
                let named = Named { text, by: By::Field("subagent_model") };
                match follow(named, card, self.project, self.user) {
                    Ok(named) => Chosen::new(&named, card, self).model,
                    Err(found) => {
                        self.report.push(found);
                        own.clone()
                    }
                }
            }
            _ => own.clone(),
        };
        let mut entries = hooks.of_turns();
        let named = agent.subagent_model.clone().filter(|_| self.settings.model.is_none());
        entries.model = named.or_else(|| hooks.model.clone());
        let helper = self
            .worker(card, agent, skills, Edition::Helper, &mut entries)
            .model(model)
            .description(
                "Give a part of the task to a helper that starts afresh, and read what it found",
            );
        match self.finish(card, helper, &mut entries) {
            Some(helper) => {
                builder.agent_tool_with(&helper, ChildOptions::default().named("subagent"))
            }
            None => builder,
        }
    }
}
