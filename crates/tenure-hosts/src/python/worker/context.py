# What hooks see.


class Agent:
    """The agent that a hook runs in. What a hook puts on it is there for those that come later."""

    _ctx: Context
    name: str
    instance_id: str
    id: str
    phase: str
    state: str

    def __init__(self, ctx: Context) -> None:
        id, (phase, state) = ctx._about["instance_id"], ctx._p["agent"]
        self.__dict__.update(_ctx=ctx, name=ctx._about["name"], instance_id=id, id=id)
        self.__dict__.update(phase=phase, state=state)

    def _kept(self) -> dict[str, Any]:
        kept: dict[str, Any] = live_state.setdefault(self.instance_id, {}).setdefault(OF_AGENT, {})
        return kept

    def __setattr__(self, name: str, value: Any) -> None:
        self._kept()[name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._kept():
            raise AttributeError(f"the agent has no `{name}` here")
        return self._kept()[name]

    @property
    def config(self) -> Any:
        return self._ctx.config

    @property
    def message_history(self) -> Any:
        history = self._ctx._p.get("message_history")
        if history is None:
            history = request_now(self._ctx, {"history": True})
            self._ctx._p["message_history"] = history
        return lifted(self._ctx._p, "message_history", history)


class Registry:
    """Other agents by name."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def get(self, name: str, default: Any = None) -> Any:
        found = self._ctx.get_agent(name)
        return default if found is None else found

    def __getitem__(self, name: str) -> Any:
        found = self._ctx.get_agent(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._ctx.get_agent(name) is not None


# What does not change in the life of an instance, by the number that calls have for it.
abouts: dict[int, dict[str, Any]] = {}
live_state: dict[str, dict[Any, Any]] = {}
# What hooks put on an agent is kept with its state, under what no key of it can be.
OF_AGENT = ("agent",)
live_variables: dict[str, dict[str, Any]] = {}


class Context:
    """What a hook gets to see. Everything is made when it is asked for."""

    _state: Optional[Stored] = None
    _variables: Optional[Variables] = None
    _agent: Optional[Agent] = None
    _bases: Optional[dict[str, Any]] = None
    _said: Optional[dict[str, Any]] = None
    _logs: Optional[dict[str, Any]] = None
    _task: Optional[asyncio.Task[Any]] = None
    _waits: Optional[set[int]] = None
    _owed: Optional[list[Owed]] = None
    _cancelled = False
    _over = False

    def __init__(self, message: dict[str, Any], function: Function) -> None:
        self._id: int = message["id"]
        self._function = function
        self._p: dict[str, Any] = message["p"]
        self._about: dict[str, Any] = abouts[message["a"]]

    def _run(self) -> Any:
        """Calls the function."""
        function = self._function
        return function.body(self) if function.is_plain else function.call(self)

    # What is the same at every point.

    @property
    def agent(self) -> Agent:
        if self._agent is None:
            self._agent = Agent(self)
        return self._agent

    @property
    def agent_name(self) -> str:
        name: str = self._about["name"]
        return name

    @property
    def instance_id(self) -> str:
        id: str = self._about["instance_id"]
        return id

    @property
    def config(self) -> Any:
        config = self._about["config"]
        if type(config) is dict:
            config = self._about["config"] = Config(config)
        return config

    @property
    def context(self) -> Any:
        return lifted(self._p, "context", self._p.get("context"))

    @property
    def has_context(self) -> bool:
        return self._p.get("context") is not None

    @property
    def hook_type(self) -> str:
        point: str = self._p["point"]
        return point

    @property
    def agent_registry(self) -> Registry:
        return Registry(self)

    def get_agent(self, name: str) -> Any:
        found = request_now(self, {"agent": name})
        return None if found is None else Fields(found)

    @property
    def state(self) -> Stored:
        if self._state is None:
            live = live_state.setdefault(self._about["instance_id"], {})
            self._state = Stored(self._p.get("state") or {}, live)
        return self._state

    @property
    def context_variables(self) -> Variables:
        if self._variables is None:
            scope = self._p.get("chat_id")
            live = live_variables.setdefault(scope or "", {})
            if scope:
                self._variables = Variables(Shared(self._p.get("variables") or {}, live))
            else:
                self._variables = Variables(Kept(live))
        return self._variables

    def log(self, text: str) -> None:
        for line in str(text).splitlines():
            send({"id": self._id, "log": line[:MOST_LINE], "stream": "host"})

    # What a hook says beside what it returns.

    def _is_untouched(self) -> bool:
        made = self._state is None and self._variables is None
        return made and self._said is None and self._bases is None

    def _say(self, key: str, value: Any) -> None:
        if self._said is None:
            self._said = {}
        self._said[key] = value

    @property
    def input(self) -> Any:
        return self._p.get("input")

    @input.setter
    def input(self, value: str) -> None:
        self._p["input"] = value
        self._say("input", value)

    @property
    def output(self) -> Any:
        return self._p.get("output")

    @output.setter
    def output(self, value: str) -> None:
        self._p["output"] = value
        self._say("output", value)

    def persist(self) -> None:
        self._say("persist", True)

    def request_shutdown(self) -> None:
        send({"id": self._id, "shutdown": True})

    def _edited(self, key: str) -> Any:
        """A part of the payload that may be changed in place."""
        if self._bases is None:
            self._bases = {}
        value = self._p.get(key)
        if key not in self._bases and value is not None:
            if key == "request":
                self._bases[key] = {part: encode(it) for part, it in value.items()}
            else:
                self._bases[key] = encode(value)
        return lifted(self._p, key, value)

    @property
    def request(self) -> Any:
        return self._edited("request")

    @property
    def arguments(self) -> Any:
        return self._edited("arguments")

    @arguments.setter
    def arguments(self, value: dict[str, Any]) -> None:
        self._edited("arguments")
        self._p["arguments"] = value

    def _changed_request(self) -> dict[str, Any]:
        if not self._bases or "request" not in self._bases:
            return {}
        base, request = self._bases["request"], self._p["request"]
        parts = ("instruction", "messages", "params")
        return {it: request[it] for it in parts if encode(request.get(it)) != base.get(it)}

    def _changed_arguments(self) -> Any:
        if not self._bases or "arguments" not in self._bases:
            return None
        value = self._p["arguments"]
        return value if encode(value) != self._bases["arguments"] else None

    @property
    def response(self) -> Any:
        return lifted(self._p, "response", self._p.get("response"))

    @property
    def tool(self) -> Any:
        return lifted(self._p, "tool", self._p.get("tool"))

    @property
    def tool_name(self) -> Any:
        return (self._p.get("tool") or {}).get("name")

    @property
    def usage(self) -> Any:
        return lifted(self._p, "usage", self._p.get("usage"))

    @property
    def from_phase(self) -> Any:
        return self._p.get("from")

    @property
    def to_phase(self) -> Any:
        return self._p.get("to")

    def __getattr__(self, name: str) -> Any:
        if name in PLAIN:
            return lifted(self._p, name, self._p.get(name, PLAIN[name]))
        if name == "family_id":
            return self._about[name]
        if name == "trace_id":
            return self._p.get(name) or self._p.get("run_id")
        raise AttributeError(f"ctx has no `{name}` at {self._p.get('point', 'a tool')}")

    # What asks the host.

    def ask(self, prompt: Any, action: Any = None, schema: Any = None, expires: Any = None) -> Any:
        ask = dict(prompt) if isinstance(prompt, dict) else {"prompt": str(prompt)}
        for key, value in (("action", action), ("schema", schema), ("expires", expires)):
            if value is not None:
                ask[key] = value
        return request(self, "ask", {"ask": ask}, as_answer)

    def next(self, changed: Any = None, **kw: Any) -> Any:
        point = self._p.get("point")
        if point == "wrap_tool_call":
            changed = kw.get("arguments", changed)
            with_ = self._changed_arguments() if changed is None else changed
        elif point == "wrap_model_call":
            changed = kw.get("request", changed)
            with_ = self._changed_request() if changed is None else parts_of(changed)
        else:
            raise RuntimeError(f"there is no next at {point}")
        frame: dict[str, Any] = {"next": with_}
        self._add_changes(frame)
        return request(self, "next", frame, as_result)

    def step(self, name: str, effect: Any) -> Any:
        if self._function.is_async:
            return owed(self, "step", step_later(self, name, effect))
        return step_now(self, name, effect)

    def _add_changes(self, frame: dict[str, Any]) -> None:
        if self._state is not None:
            changes, gone = self._state.changes()
            changes.update(dict.fromkeys(gone))
            if changes:
                frame["state"] = changes
        if self._variables is not None:
            changes, gone = self._variables.data.changes()
            if changes:
                frame["variables"] = changes
            if gone:
                frame["gone"] = gone


PLAIN: dict[str, Any] = dict.fromkeys("run_id outcome error reason call_id batch chat_id".split())
PLAIN.update(delivery_id=None, idempotency_key=None)
PLAIN.update(attempt=1, resumed=False, approved=False)


def parts_of(request: Any) -> dict[str, Any]:
    return {it: request[it] for it in ("instruction", "messages", "params") if it in request}
