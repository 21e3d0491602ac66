# The configuration of an agent.


class Config(Fields):
    """The fields of an agent's card, and what counts in their place. One that the card leaves out
    has its default, and one of another type of card is None."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(dict.fromkeys(UNSET), **defaults(given.get("type", "agent")))
        self.update(given)
        type = self["type"]
        self["agent_type"] = "basic" if type == "agent" else type.lower()
        self["default_request_params"] = self["request_params"]

    @property
    def source_path(self) -> Any:
        import pathlib

        path = self["source_path"]
        return None if path is None else pathlib.Path(path)


# What is None unless it is said, and what only some types of cards have.
UNSET = """
    model instruction temperature max_tokens lifecycle_hooks tool_hooks max_parallel
    child_timeout_sec skills request_params subagents subagent_model api_key function_tools commands
    tool_input_schema cwd variables source_path sequence cumulative fan_out fan_in include_request
    generator evaluator min_rating max_refinements refinement_instruction plan_type plan_iterations
    worker k max_samples match_strategy red_flag_max_length
""".split()


def defaults(type: str) -> dict[str, Any]:
    return {
        **dict(type=type, default=False, tool_only=False, schema_version=1, hooks=[], agents=[]),
        **dict(history_source="none", history_merge_target="none", max_display_instances=20),
        **dict(servers=[], tools={}, resources={}, prompts={}, mcp_connect=[], messages=[]),
        **dict(save_trajectory=False, human_input=False, shell=False, trim_tool_history=False),
        **dict(harness_tools=False),
        **OF_TYPE.get(type, {}),
    }


OF_TYPE: dict[str, dict[str, Any]] = {
    "chain": dict(cumulative=False),
    "parallel": dict(include_request=True),
    "evaluator_optimizer": dict(min_rating="GOOD", max_refinements=3),
    "orchestrator": dict(plan_type="full", plan_iterations=5),
    "iterative_planner": dict(plan_iterations=-1),
    "MAKER": dict(k=3, max_samples=50, match_strategy="exact"),
}
