# What files import that were written for fast-agent. Where it is not installed, modules of ours
# stand in for it.

# The sources of the modules, by name. Each is run when it is first imported.
stand_ins: dict[str, str] = {}
# What is installed in their place, by the first part of their names.
INSTALLABLE = {"fast_agent": "fast-agent-mcp", "mcp": "mcp", "mcp_types": "mcp-types"}


class StandIns:
    """Comes last, so that what is installed comes first."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        top = name.partition(".")[0]
        if top not in INSTALLABLE:
            return None
        if name != top and not isinstance(getattr(sys.modules[top], "__loader__", None), StandIns):
            # The real one is there, and lacks this part of it.
            return None
        if name not in stand_ins and not any(it.startswith(name + ".") for it in stand_ins):
            # Another name than the one that is looked for: else `from` would ask again, and say
            # less.
            raise ModuleNotFoundError(
                f"`{name}` is not among what Tenure has of {top}; install {INSTALLABLE[top]} in "
                "the environment of the project's Python, or do without it",
                name=top,
            )
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        source = compile(stand_ins.get(name, ""), f"<{name}>", "exec", dont_inherit=True)
        exec(source, module.__dict__)


def install_stand_ins() -> None:
    live = types.ModuleType("tenure_worker")
    for it in (
        Block,
        CallToolRequest,
        CallToolRequestParams,
        CallToolResult,
        Context,
        LlmStopReason,
        PromptMessageExtended,
        TextContent,
        ToolHookContext,
        text_of,
    ):
        setattr(live, it.__name__, it)
    sys.modules[live.__name__] = live
    sys.meta_path.append(StandIns())
