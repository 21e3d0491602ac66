//! What is wrong with journeys, as far as can be said before one is made.

use super::{FanIn, Journey, MergeMode, OnPartialFailure, SpawnMode};
use crate::variables::Variables;
use serde_json::json;
use std::sync::Arc;
use tenure_core::chat::Chat;

/// Everything that is wrong with the journeys of a flow that has these agents.
pub(crate) fn defects(
    journeys: &[Journey],
    agents: &[Arc<str>],
    workflows: &[&str],
    has_user: bool,
    variables: Option<&Variables>,
) -> Vec<String> {
    let mut defects = Vec::new();
    for (at, journey) in journeys.iter().enumerate() {
        let Journey { id, trigger_agent, requires, fan_out, fan_in, .. } = journey;
        let mut defect = |what: String| defects.push(format!("journey `{id}`: {what}"));
        if journeys[..at].iter().any(|other| other.id == *id) {
            defect("another journey has the same id".to_owned());
        }
        for (role, agent) in [("trigger", trigger_agent), ("resume", &fan_in.resume_agent)] {
            if !agents.contains(agent) {
                defect(format!("its {role} agent `{agent}` is none of the flow's"));
            }
        }
        for other in requires {
            if !journeys.iter().any(|journey| journey.id == *other) {
                defect(format!("it requires `{other}`, and there is no such journey"));
            }
        }
        if is_circular(journey, journeys) {
            defect("it requires itself, by what it requires; it could never begin".to_owned());
        }
        match &fan_out.workflow {
            Some(workflow) if !workflows.contains(&&**workflow) => {
                let known = workflows.join(", ");
                defect(format!("there is no workflow `{workflow}`; there are: {known}"));
            }
            None if fan_out.spawn_mode == SpawnMode::GeneratorSubrun => {
                defect("generator_subrun needs a generator_workflow".to_owned());
            }
            _ => {}
        }
        if let Some(what) = misplaced(fan_in, variables) {
            defect(what);
        }
        for name in fan_out.child_context_seed.keys().filter(|name| is_system(name)) {
            defect(format!("child_context_seed gives `{name}`, which is set by the platform"));
        }
        if fan_in.on_partial_failure == OnPartialFailure::PromptUser && !has_user {
            defect("prompt_user needs a person, and none takes part".to_owned());
        }
    }
    defects
}

pub(super) fn is_system(name: &str) -> bool {
    Chat::system_keys().contains(&name)
}

/// Why what the children gave cannot be put where the journey says.
fn misplaced(fan_in: &FanIn, variables: Option<&Variables>) -> Option<String> {
    let name = fan_in.inject_as.as_str();
    if name.trim().is_empty() {
        return Some("inject_as is empty; name a variable".to_owned());
    }
    if is_system(name) {
        return Some(format!(
            "inject_as is `{name}`, which is set by the platform; name another variable"
        ));
    }
    let variables = variables?;
    let definition = variables.get(name);
    if !variables.accepts(name) {
        let from = definition.map_or("a file of the project", |it| it.source.as_str());
        return Some(format!(
            "inject_as is `{name}`, which is read-only: it comes from {from}; name a state, or a \
             variable that is not declared"
        ));
    }
    let merged = match fan_in.merge_mode {
        MergeMode::Concatenate => json!(""),
        MergeMode::Structured => json!({}),
        MergeMode::CollectAll => json!([]),
    };
    let error = definition?.kind.check(&merged).err()?;
    let mode = fan_in.merge_mode;
    Some(format!("inject_as is `{name}`, which cannot be what merge_mode {mode} makes: {error}"))
}

fn is_circular(journey: &Journey, journeys: &[Journey]) -> bool {
    let mut seen: Vec<&str> = Vec::new();
    let mut open: Vec<&str> = journey.requires.iter().map(|id| &**id).collect();
    while let Some(id) = open.pop() {
        if id == &*journey.id {
            return true;
        }
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let of = journeys.iter().filter(|other| &*other.id == id);
        open.extend(of.flat_map(|other| &other.requires).map(|id| &**id));
    }
    false
}
