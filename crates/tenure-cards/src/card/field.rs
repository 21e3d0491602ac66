//! The one table of fields: which types have which.

use super::CardType::{self, *};

/// A field of a card.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The types that have it.
    pub types: &'static [CardType],
    /// The types that need it.
    pub required: &'static [CardType],
}

const ALL: &[CardType] = &CardType::ALL;
/// The types that run here, and so have a life to hook.
const RUN: &[CardType] =
    &[Agent, Chain, Parallel, EvaluatorOptimizer, Router, Orchestrator, IterativePlanner, Maker];
const MODEL: &[CardType] = &[Agent, Router, Orchestrator, IterativePlanner];
const HISTORY: &[CardType] = &[Agent, Router, Orchestrator];
const MCP: &[CardType] = &[Agent, Router];
const MESSAGES: &[CardType] =
    &[Agent, EvaluatorOptimizer, Router, Orchestrator, IterativePlanner, Maker];
const PLANS: &[CardType] = &[Orchestrator, IterativePlanner];

const fn field(name: &'static str, types: &'static [CardType]) -> Field {
    Field { name, types, required: &[] }
}

const fn needed(
    name: &'static str,
    types: &'static [CardType],
    required: &'static [CardType],
) -> Field {
    Field { name, types, required }
}

/// Every field of every type.
pub const FIELDS: &[Field] = &[
    field("type", ALL),
    field("name", ALL),
    field("instruction", ALL),
    field("description", ALL),
    field("default", ALL),
    field("tool_only", ALL),
    field("schema_version", ALL),
    field("lifecycle_hooks", RUN),
    field("hooks", RUN),
    field("tool_hooks", &[Agent]),
    needed("agents", MODEL, &[Router, Orchestrator, IterativePlanner]),
    field("history_source", &[Agent]),
    field("history_merge_target", &[Agent]),
    field("max_parallel", &[Agent]),
    field("child_timeout_sec", &[Agent]),
    field("max_display_instances", &[Agent]),
    field("servers", MCP),
    field("tools", MCP),
    field("resources", MCP),
    field("prompts", MCP),
    field("mcp_connect", &[Agent]),
    field("skills", &[Agent]),
    field("model", MODEL),
    field("use_history", HISTORY),
    field("save_trajectory", HISTORY),
    field("request_params", MODEL),
    field("human_input", HISTORY),
    field("shell", &[Agent]),
    field("trim_tool_history", &[Agent]),
    field("harness_tools", &[Agent]),
    field("subagents", &[Agent]),
    field("subagent_model", &[Agent]),
    field("api_key", MODEL),
    field("function_tools", &[Agent]),
    field("commands", &[Agent]),
    field("tool_input_schema", &[Agent]),
    field("messages", MESSAGES),
    field("cwd", &[Agent]),
    field("variables", &[Agent]),
    needed("sequence", &[Chain], &[Chain]),
    field("cumulative", &[Chain]),
    needed("fan_out", &[Parallel], &[Parallel]),
    field("fan_in", &[Parallel]),
    field("include_request", &[Parallel]),
    needed("generator", &[EvaluatorOptimizer], &[EvaluatorOptimizer]),
    needed("evaluator", &[EvaluatorOptimizer], &[EvaluatorOptimizer]),
    field("min_rating", &[EvaluatorOptimizer]),
    field("max_refinements", &[EvaluatorOptimizer]),
    field("refinement_instruction", &[EvaluatorOptimizer]),
    field("plan_type", &[Orchestrator]),
    field("plan_iterations", PLANS),
    needed("worker", &[Maker], &[Maker]),
    field("k", &[Maker]),
    field("max_samples", &[Maker]),
    field("match_strategy", &[Maker]),
    field("red_flag_max_length", &[Maker]),
    needed("url", &[A2a], &[A2a]),
    field("transport", &[A2a]),
    field("streaming", &[A2a]),
    field("polling", &[A2a]),
    field("accepted_output_modes", &[A2a]),
    field("headers", &[A2a]),
    field("auth", &[A2a]),
    field("relative_card_path", &[A2a]),
    field("request_timeout_seconds", &[A2a]),
];

/// The field of this name.
pub(crate) fn find(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_there_once_and_needed_only_where_they_are_possible() {
        for (at, field) in FIELDS.iter().enumerate() {
            assert!(!FIELDS[..at].iter().any(|other| other.name == field.name), "{}", field.name);
            assert!(field.required.iter().all(|one| field.types.contains(one)), "{}", field.name);
        }
    }
}
