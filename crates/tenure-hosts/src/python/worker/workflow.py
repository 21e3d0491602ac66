# Lifecycle tools and message hooks of workflows.


class LifecycleContext(Context):
    """A call of a lifecycle tool: what it returns is its result, and decides nothing."""

    def _run(self) -> Any:
        function = self._function
        given: dict[str, Any] = {}
        if function.takes_variables:
            given["context_variables"] = self.context_variables
        if function.takes_ctx:
            given["ctx"] = self
        return function.body(**given)

    def _say(self, key: str, value: Any) -> None:
        raise RuntimeError(f"a lifecycle tool changes no `{key}`; that is what hooks are for")

    def _frame(self, value: Any) -> dict[str, Any]:
        frame: dict[str, Any] = {"id": self._id}
        if value is not None:
            load_later()
            try:
                value = in_json(value, repr)
                encode(value)
            except NOT_JSON:
                value = repr(value)
            frame["r"] = value
        return frame


class MessageAgent:
    """An agent as message hooks see it."""

    def __init__(self, ctx: MessageContext, name: str, system_message: str) -> None:
        self._ctx = ctx
        self.name = name
        self._system_message = system_message

    @property
    def system_message(self) -> str:
        return self._system_message

    @property
    def context_variables(self) -> Variables:
        return self._ctx.context_variables

    def update_system_message(self, system_message: str) -> None:
        if not isinstance(system_message, str):
            kind = type(system_message).__name__
            raise TypeError(f"a system message is a text, and this is a {kind}")
        if self._ctx._kind != "update_agent_state":
            raise RuntimeError("only update_agent_state changes a system message")
        self._system_message = system_message
        self._ctx._instruction = system_message

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"


class MessageContext(Context):
    """A call of a message hook: its arguments go by place."""

    def __init__(self, lane: Lane, message: dict[str, Any], function: Function) -> None:
        super().__init__(lane, message, function)
        self._given: dict[str, Any] = message["message"]
        self._kind: str = self._given["kind"]
        self._instruction: Optional[str] = None

    def _run(self) -> Any:
        given = self._given
        agent = MessageAgent(self, self.agent_name, given.get("instruction") or "")
        body = self._function.body
        if self._kind == "process_message_before_send":
            recipient = MessageAgent(self, given["recipient"], "")
            return body(agent, given["message"], recipient, given["silent"])
        if self._kind == "update_agent_state":
            return body(agent, given["messages"])
        if self._kind == "process_last_received_message":
            return body(given["message"])
        return body(given["messages"])

    def _frame(self, value: Any) -> dict[str, Any]:
        frame: dict[str, Any] = {"id": self._id}
        wrong = self._wrong(value)
        if wrong is not None:
            frame["bad"] = wrong
        elif self._kind == "update_agent_state":
            if self._instruction is not None:
                frame["r"] = self._instruction
        elif isinstance(value, dict):
            frame["r"] = value["content"]
        else:
            frame["r"] = value
        return frame

    def _wrong(self, value: Any) -> Optional[str]:
        """What is wrong with what it returned."""
        kind, got = self._kind, type(value).__name__
        if kind == "update_agent_state":
            if value is None:
                return None
            return f"it returned {got}; {kind} returns None, and changes the agent it is given"
        if kind == "process_last_received_message":
            return None if isinstance(value, str) else f"it returned {got}; {kind} returns a text"
        if kind == "process_message_before_send":
            if isinstance(value, str):
                return None
            if isinstance(value, dict) and isinstance(value.get("content"), str):
                return None
            return f"it returned {got}; {kind} returns a text, or a dict with `content`"
        if not isinstance(value, list):
            return f"it returned {got}; {kind} returns the list of messages"
        for at, it in enumerate(value):
            if not isinstance(it, dict):
                return f"message {at} that it returned is a {type(it).__name__}, and not a dict"
        return None
