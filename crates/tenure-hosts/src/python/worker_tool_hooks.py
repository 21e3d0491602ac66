# Tool hooks, as fast-agent has them. This is a part of the worker, behind the rest of it.

import copy
import enum
import importlib.machinery

STOPS = {
    "end_turn": "endTurn",
    "tool_use": "toolUse",
    "max_tokens": "maxTokens",
    "refused": "safety",
}


class LlmStopReason(str, enum.Enum):
    """Why a model stopped; equal to its own text."""

    END_TURN = "endTurn"
    STOP_SEQUENCE = "stopSequence"
    MAX_TOKENS = "maxTokens"
    TOOL_USE = "toolUse"
    PAUSE = "pause"
    ERROR = "error"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    SAFETY = "safety"


class Block:
    """What is read by attribute and by key alike."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, value)

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return dict(self.__dict__)

    def model_copy(self, *, update: Any = None, deep: bool = False) -> Any:
        made = copy.deepcopy(self) if deep else copy.copy(self)
        made.__dict__.update(update or {})
        return made


class TextContent(Block):
    """A piece of text."""

    def __init__(self, text: str = "", type: str = "text", **more: Any) -> None:
        super().__init__(type=type, text=text, **more)


class CallToolRequestParams(Block):
    """Which tool, and with what."""

    def __init__(self, name: str = "", arguments: Any = None, **more: Any) -> None:
        super().__init__(name=name, arguments=arguments, **more)


class CallToolRequest(Block):
    """A tool call. `name` and `arguments` are those of its `params`."""

    params: Any

    def __init__(self, params: Any = None, method: str = "tools/call", **more: Any) -> None:
        super().__init__(method=method, params=params or CallToolRequestParams(**more))

    @property
    def name(self) -> Any:
        return self.params.name

    @name.setter
    def name(self, value: str) -> None:
        self.params.name = value

    @property
    def arguments(self) -> Any:
        return self.params.arguments

    @arguments.setter
    def arguments(self, value: Any) -> None:
        self.params.arguments = value


class CallToolResult(Block):
    """What a tool answered."""

    content: list[Any]

    def __init__(self, content: Any = None, isError: bool = False, **more: Any) -> None:
        super().__init__(content=as_blocks(content), isError=isError, **more)


def as_blocks(content: Any) -> list[Any]:
    if content is None:
        return []
    if isinstance(content, (list, tuple)):
        return [TextContent(it) if isinstance(it, str) else it for it in content]
    return [TextContent(content) if isinstance(content, str) else content]


def text_of(block: Any) -> Optional[str]:
    if isinstance(block, str):
        return block
    text = block.get("text") if hasattr(block, "get") else getattr(block, "text", None)
    return text if isinstance(text, str) else None


def joined(content: Any) -> str:
    return "\n".join(text for text in map(text_of, as_blocks(content)) if text is not None)


class PromptMessageExtended(Block):
    """A message. The results of one batch of tools are one message of the user's."""

    role: str
    content: list[Any]
    tool_calls: Optional[dict[str, Any]]
    tool_results: Optional[dict[str, Any]]
    stop_reason: Any

    def __init__(
        self,
        role: str = "user",
        content: Any = None,
        tool_calls: Any = None,
        tool_results: Any = None,
        stop_reason: Any = None,
        **more: Any,
    ) -> None:
        super().__init__(
            role=role,
            content=as_blocks(content),
            tool_calls=tool_calls,
            tool_results=tool_results,
            stop_reason=stop_reason,
            channels=more.pop("channels", None),
            **more,
        )

    def first_text(self) -> str:
        texts = [text for text in map(text_of, as_blocks(self.content)) if text is not None]
        return texts[0] if texts else "<no text>"

    def last_text(self) -> Optional[str]:
        texts = [text for text in map(text_of, as_blocks(self.content)) if text is not None]
        return texts[-1] if texts else None

    def all_text(self) -> str:
        return joined(self.content)

    def add_text(self, text: str) -> Any:
        block = TextContent(text)
        self.content.append(block)
        return block


class PlainResult:
    """How a result that nobody changed goes back: as it was."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.name: str = said.get("name", "")
        self.status: str = said.get("status", "ok")


def from_core(messages: list[dict[str, Any]]) -> list[Any]:
    """Messages as hooks know them."""
    made: list[Any] = []
    batch: Any = None
    for said in messages:
        role = said["role"]
        if role != "tool":
            batch = None
        if role == "assistant":
            made.append(assistant(said))
        elif role == "tool":
            if batch is None:
                batch = PromptMessageExtended("user", tool_results={})
                made.append(batch)
            result = CallToolResult(said["content"], said["status"] != "ok")
            result.__dict__["_was"] = PlainResult(said)
            batch.tool_results[said["call_id"]] = result
        else:
            made.append(PromptMessageExtended(role, said["text"] or None))
    return made


def assistant(said: dict[str, Any]) -> Any:
    calls: Optional[dict[str, Any]] = None
    if said.get("calls"):
        calls = {}
        for call in said["calls"]:
            calls[call["id"]] = CallToolRequest(
                name=call["name"], arguments=as_json(call["arguments"])
            )
    stop = STOPS.get(said.get("stop", ""), "toolUse" if calls else "endTurn")
    return PromptMessageExtended(
        "assistant", said["text"] or None, calls, None, LlmStopReason(stop)
    )


def as_json(arguments: Any) -> Any:
    if isinstance(arguments, str):
        try:
            return json.loads(arguments)
        except ValueError:
            return arguments
    return arguments


def calls_of(message: Any) -> list[dict[str, Any]]:
    calls = []
    for id, call in (message.tool_calls or {}).items():
        params = call.get("params") if hasattr(call, "get") else getattr(call, "params", None)
        params = call if params is None else params
        named = params if hasattr(params, "get") else vars(params)
        arguments = named.get("arguments")
        calls.append(
            {
                "id": id,
                "name": named.get("name"),
                "arguments": {} if arguments is None else arguments,
            }
        )
    return calls


def to_core(messages: list[Any]) -> list[dict[str, Any]]:
    """Messages as the host knows them."""
    said: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        if isinstance(message, str):
            said.append({"role": "user", "text": message})
            continue
        text = joined(message.content)
        if message.role == "assistant":
            calls = calls_of(message)
            names.update((call["id"], call["name"]) for call in calls)
            one: dict[str, Any] = {"role": "assistant", "text": text}
            if calls:
                one["calls"] = calls
            said.append(one)
            continue
        for id, result in (message.tool_results or {}).items():
            was = getattr(result, "_was", None)
            failed = bool(result.get("isError", False))
            status = "error" if failed else "ok"
            if was is not None and failed == (was.status != "ok"):
                status = was.status
            name = names.get(id) or (was.name if was is not None else "")
            content = joined(result.get("content"))
            said.append(
                {"role": "tool", "call_id": id, "name": name, "content": content, "status": status}
            )
        if text or not message.tool_results:
            said.append({"role": message.role, "text": text})
    return said


class Runner:
    """What runs the turn, as far as hooks get to see it."""

    def __init__(self, ctx: ToolHookContext) -> None:
        self._ctx = ctx

    @property
    def iteration(self) -> int:
        return self._ctx.iteration

    @property
    def agent(self) -> Any:
        return self._ctx.agent

    @property
    def is_done(self) -> bool:
        return self._ctx.is_turn_complete

    @property
    def last_message(self) -> Any:
        return self._ctx.message

    @property
    def delta_messages(self) -> list[Any]:
        return self._ctx.delta_messages

    @property
    def request_params(self) -> Any:
        return self._ctx.request_params

    def set_request_params(self, params: Any) -> None:
        given = params if isinstance(params, dict) else vars(params)
        self._ctx._params().update(given)

    def append_messages(self, *messages: Any) -> None:
        for it in messages:
            made = PromptMessageExtended("user", it) if isinstance(it, str) else it
            self._ctx._messages.append(made)


class ToolHookContext(Context):
    """What a tool hook gets to see. What it changes in place is what counts afterwards."""

    def __init__(self, message: dict[str, Any], function: Function) -> None:
        super().__init__(message, function)
        payload = self._p
        self._messages: list[Any] = from_core(payload["messages"])
        response = payload.get("response")
        if response is not None:
            self._message = assistant(response)
            self._messages.append(self._message)
        elif self._messages:
            self._message = self._messages[-1]
        else:
            self._message = PromptMessageExtended("user")
            self._messages.append(self._message)
        self._was = encode(to_core(self._messages))
        self._had = encode(payload["params"])
        self.message_history_override: Optional[list[Any]] = None
        self.runner = Runner(self)

    @property
    def message(self) -> Any:
        return self._message

    @message.setter
    def message(self, message: Any) -> None:
        self._messages = [message if it is self._message else it for it in self._messages]
        self._message = message

    @property
    def hook_type(self) -> str:
        kind: str = self._p["tool_hook"]
        return kind

    @property
    def iteration(self) -> int:
        iteration: int = self._p["iteration"]
        return iteration

    @property
    def is_turn_complete(self) -> bool:
        stop = getattr(self._message, "stop_reason", None)
        return stop is not None and stop != "toolUse"

    @property
    def message_history(self) -> list[Any]:
        override = self.message_history_override
        return self._messages if override is None else override

    def load_message_history(self, messages: Any) -> None:
        self.message_history_override = list(messages or ())

    @property
    def delta_messages(self) -> list[Any]:
        """What is new in the next call of the model."""
        return self._messages[self._messages.index(self._message) :]

    def _params(self) -> Any:
        return lifted(self._p, "params", self._p["params"])

    @property
    def request_params(self) -> Any:
        return self._params()

    @property
    def agent(self) -> Any:
        if self._agent is None:
            self._agent = ToolHookAgent(self)
        return self._agent

    def _outcome(self) -> Optional[dict[str, Any]]:
        """What is different now, as the host reads it."""
        override = self.message_history_override
        messages = self._messages if override is None else override
        said = to_core(messages)
        outcome: dict[str, Any] = {}
        if encode(said) != self._was:
            outcome["messages"] = said
        params = self._p["params"]
        if encode(params) != self._had:
            outcome["params"] = params
        return outcome or None


class ToolHookAgent(Agent):
    """The agent, with the conversation that its tool hooks see."""

    @property
    def message_history(self) -> Any:
        return self._ctx.message_history

    def load_message_history(self, messages: Any) -> None:
        assert isinstance(self._ctx, ToolHookContext)
        self._ctx.load_message_history(messages)

    @property
    def usage_accumulator(self) -> Any:
        return self._ctx.usage

    @property
    def context(self) -> Any:
        return self._ctx.context

    @property
    def agent_registry(self) -> Registry:
        return self._ctx.agent_registry

    def get_agent(self, name: str) -> Any:
        return self._ctx.get_agent(name)


# Files that were written for fast-agent import some of its names. Where it is not installed, these
# stand in for them.

STAND_INS: dict[str, dict[str, Any]] = {
    "fast_agent": {},
    "fast_agent.hooks": {"HookContext": ToolHookContext},
    "fast_agent.hooks.hook_context": {"HookContext": ToolHookContext},
    "fast_agent.hooks.lifecycle_hook_context": {"AgentLifecycleContext": Context},
    "fast_agent.types": {
        "PromptMessageExtended": PromptMessageExtended,
        "LlmStopReason": LlmStopReason,
    },
    "fast_agent.types.llm_stop_reason": {"LlmStopReason": LlmStopReason},
    "fast_agent.mcp": {},
    "fast_agent.mcp.prompt_message_extended": {"PromptMessageExtended": PromptMessageExtended},
    "fast_agent.mcp.helpers": {},
    "fast_agent.mcp.helpers.content_helpers": {"text_content": TextContent, "get_text": text_of},
    "mcp": {},
    "mcp.types": {
        "TextContent": TextContent,
        "CallToolRequest": CallToolRequest,
        "CallToolRequestParams": CallToolRequestParams,
        "CallToolResult": CallToolResult,
    },
}


class StandIns:
    """Comes last, so that what is installed comes first."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in STAND_INS:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__.update(STAND_INS[module.__name__])


sys.meta_path.append(StandIns())
