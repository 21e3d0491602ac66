//! What a workflow is and what is called in its chats, as data (G12).

use super::attach::Parts;
use crate::StartupMode;
use crate::file::{AgentKind, LoadedWorkflow};
use crate::route::handoff::{HandoffKind, HandoffRule};
use serde::Serialize;
use tenure_cards::Report;
use tenure_cards::team::{Explanation, Inspection, PointExplanation};

/// A workflow and everything that is called in its chats.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WorkflowExplanation {
    /// Its name.
    pub workflow: String,
    /// Its orchestrator file.
    pub file: String,
    /// How speakers are chosen.
    pub pattern: String,
    /// Who begins.
    pub startup_mode: StartupMode,
    /// Who speaks first, if the files say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_agent: Option<String>,
    /// How many turns agents may have.
    pub max_turns: usize,
    /// What the failure of a turn means for the chat.
    pub error_strategy: String,
    /// Whether a person takes part.
    pub human_in_the_loop: bool,
    /// What is called around a chat: the points of the chat itself, in the order of a life. What
    /// its agents declare for themselves comes after it, and is listed with them.
    pub points: Vec<PointExplanation>,
    /// Those who may speak, in the order of their declaration.
    pub agents: Vec<SpeakerExplanation>,
    /// Agents that do not speak: the person's place, the one who picks speakers, and agents that
    /// are tools of others.
    pub others: Vec<Explanation>,
    /// Who takes over from whom, in the order of the file.
    pub handoffs: Vec<HandoffExplanation>,
    /// What the agents share.
    pub variables: Vec<VariableExplanation>,
    /// Parts of a chat that are chats of their own.
    pub journeys: Vec<JourneyExplanation>,
}

/// Somebody who may speak.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SpeakerExplanation {
    /// The name.
    pub name: String,
    /// The agent, with everything that is called in its life; none for a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Explanation>,
    /// The workflow whose chats its turns are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Whether people do not get to see what it says.
    pub hidden: bool,
    /// The model of its answers, by name, if they are structured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The variables that its instruction tells it of.
    pub variables: Vec<String>,
}

/// One handoff.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HandoffExplanation {
    /// Who hands over.
    pub source: String,
    /// Who takes over.
    pub target: String,
    /// `after_work`, `expression` or `string_llm`.
    pub kind: &'static str,
    /// What has to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Whether it is looked at before the source replies.
    pub pre: bool,
    /// What its author says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where it is declared, as `file:line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
}

/// One declared variable.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VariableExplanation {
    /// The name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where its value comes from.
    pub source: &'static str,
    /// The agents whose instructions tell them of it.
    pub agents: Vec<String>,
}

/// One journey.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JourneyExplanation {
    /// Its name.
    pub id: String,
    /// The agent whose output begins it.
    pub trigger_agent: String,
    /// The workflow that its children are chats of, if one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Who speaks when they are over.
    pub resume_agent: String,
}

/// What can be said of a workflow without running it, also of one that cannot be run.
#[derive(Debug)]
#[non_exhaustive]
pub struct WorkflowInspection {
    /// The workflow.
    pub workflow: WorkflowExplanation,
    /// What is wrong: what checking found, and what cannot be run.
    pub report: Report,
    /// What is not wrong with the files, and keeps them from running here: keys that are missing,
    /// variables that are not set.
    pub needs: Report,
    /// The workflows that it names. What is wrong with their files is in `report` too.
    pub nested: Vec<WorkflowInspection>,
}

pub(super) fn inspection(
    loaded: &LoadedWorkflow,
    inspection: Inspection,
    nested: Vec<WorkflowInspection>,
) -> WorkflowInspection {
    let mut report = loaded.report.clone();
    report.extend(inspection.report);
    let workflow = explanation(loaded, &inspection.agents);
    let mut needs = inspection.needs;
    needs.extend(super::unset_variables(loaded));
    WorkflowInspection { workflow, report, needs, nested }
}

pub(super) fn explanation(loaded: &LoadedWorkflow, agents: &[Explanation]) -> WorkflowExplanation {
    let file = &loaded.workflow;
    let orchestrator = &file.orchestrator;
    let host = Parts::host_of(&file.name);
    let find = |name: &str| agents.iter().find(|it| it.agent == name);
    let exposed = |agent: &str| -> Vec<String> {
        let own = file.variables.exposures.iter().filter(|it| it.agent == agent);
        own.flat_map(|it| it.variables.iter().cloned()).collect()
    };
    let hidden: Vec<_> = file.hidden().collect();
    let speakers: Vec<SpeakerExplanation> = file
        .agents
        .iter()
        .map(|entry| SpeakerExplanation {
            name: entry.name.to_string(),
            agent: match &entry.kind {
                AgentKind::Card(_) => find(&entry.name).cloned(),
                AgentKind::Workflow(_) => None,
            },
            workflow: match &entry.kind {
                AgentKind::Workflow(name) => Some(name.to_string()),
                AgentKind::Card(_) => None,
            },
            hidden: hidden.contains(&&entry.name),
            output: entry.output.as_ref().map(ToString::to_string),
            variables: exposed(&entry.name),
        })
        .collect();
    let speaks = |name: &str| {
        let mut all = speakers.iter().filter_map(|it| it.agent.as_ref());
        all.any(|it| it.agent == name)
    };
    let others = agents.iter().filter(|it| it.agent != host && !speaks(&it.agent)).cloned();
    WorkflowExplanation {
        workflow: file.name.to_string(),
        file: orchestrator.source.path().display().to_string(),
        pattern: orchestrator.pattern.to_string(),
        startup_mode: orchestrator.startup_mode,
        initial_agent: orchestrator.initial_agent.as_ref().map(ToString::to_string),
        max_turns: orchestrator.max_turns,
        error_strategy: orchestrator.error_strategy.as_str().to_owned(),
        human_in_the_loop: orchestrator.human_in_the_loop,
        points: find(&host).map(|it| it.points.clone()).unwrap_or_default(),
        others: others.collect(),
        handoffs: file.handoffs.iter().map(handoff).collect(),
        variables: file
            .variables
            .definitions
            .iter()
            .map(|definition| VariableExplanation {
                name: definition.name.clone(),
                kind: definition.kind.to_string(),
                source: definition.source.as_str(),
                agents: file
                    .variables
                    .exposures
                    .iter()
                    .filter(|it| it.variables.contains(&definition.name))
                    .map(|it| it.agent.clone())
                    .collect(),
            })
            .collect(),
        journeys: file
            .journeys
            .iter()
            .map(|journey| JourneyExplanation {
                id: journey.id.to_string(),
                trigger_agent: journey.trigger_agent.to_string(),
                workflow: journey.fan_out.workflow.as_ref().map(ToString::to_string),
                resume_agent: journey.fan_in.resume_agent.to_string(),
            })
            .collect(),
        agents: speakers,
    }
}

fn handoff(rule: &HandoffRule) -> HandoffExplanation {
    let (kind, condition, pre) = match &rule.kind {
        HandoffKind::After => ("after_work", None, false),
        HandoffKind::Expression { condition, scope } => {
            let pre = *scope == crate::route::handoff::Scope::Pre;
            ("expression", Some(condition.text().to_owned()), pre)
        }
        HandoffKind::Model { condition } => {
            ("string_llm", Some(condition.text().to_owned()), false)
        }
    };
    HandoffExplanation {
        source: rule.source.to_string(),
        target: rule.target.to_string(),
        kind,
        condition,
        pre,
        description: rule.description.clone(),
        declared: rule.declared.as_ref().map(ToString::to_string),
    }
}
