# Messages, as tool hooks of fast-agent know them.

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
