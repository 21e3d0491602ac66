//! The order in which a dump writes fields.

/// The fields in canonical order; `instruction` stands behind everything, as a body does.
const ORDER: &[&str] = &[
    "type",
    "name",
    "schema_version",
    "default",
    "tool_only",
    "subagents",
    "subagent_model",
    "harness_tools",
    "description",
    "tool_input_schema",
    "model",
    "human_input",
    "save_trajectory",
    "api_key",
    "servers",
    "mcp_connect",
    "tools",
    "resources",
    "prompts",
    "use_history",
    "skills",
    "request_params",
    "messages",
    "sequence",
    "cumulative",
    "fan_out",
    "fan_in",
    "include_request",
    "generator",
    "evaluator",
    "min_rating",
    "max_refinements",
    "refinement_instruction",
    "plan_type",
    "plan_iterations",
    "worker",
    "k",
    "max_samples",
    "match_strategy",
    "red_flag_max_length",
    "url",
    "transport",
    "streaming",
    "polling",
    "accepted_output_modes",
    "headers",
    "auth",
    "relative_card_path",
    "request_timeout_seconds",
    "agents",
    "history_source",
    "history_merge_target",
    "max_parallel",
    "child_timeout_sec",
    "max_display_instances",
    "function_tools",
    "tool_hooks",
    "lifecycle_hooks",
    "hooks",
    "commands",
    "trim_tool_history",
    "shell",
    "cwd",
    "variables",
];

/// The place of a field in the order; unknown ones share the place behind the known.
pub(super) fn rank(key: &str) -> usize {
    if key == "instruction" {
        return ORDER.len() + 1;
    }
    ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len())
}

#[cfg(test)]
pub(super) fn fields() -> &'static [&'static str] {
    ORDER
}
