# What hooks see.


class Agent:
    """The agent that a hook runs in: one object for the life of the instance in this worker, so
    that what a hook leaves on it is there for the next."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.name: str = about["name"]
        self.instance_id: str = about["instance_id"]
        self.id = self.instance_id

    @property
    def _ctx(self) -> Context:
        ctx = current.get()
        if ctx is None or ctx.instance_id != self.instance_id:
            raise RuntimeError(f"`{self.name}` can be asked only from its own functions")
        return ctx

    @property
    def phase(self) -> str:
        phase: str = self._ctx._p["agent"][0]
        return phase

    @property
    def state(self) -> str:
        state: str = self._ctx._p["agent"][1]
        return state

    @property
    def config(self) -> Any:
        return self._ctx.config

    @property
    def context(self) -> Any:
        return self._ctx.context

    @property
    def agent_registry(self) -> Registry:
        return self._ctx.agent_registry

    def get_agent(self, name: str) -> Any:
        return self._ctx.get_agent(name)

    @property
    def usage_accumulator(self) -> Any:
        return self._ctx.usage

    @property
    def message_history(self) -> Any:
        return self._ctx._history()

    def load_message_history(self, messages: Any) -> None:
        self._ctx.load_message_history(messages)


class OtherAgent(Fields):
    """Another agent, which can be spoken to."""

    def send(self, message: Any) -> Any:
        """Has it answer, and gives the text. In a coroutine function this has to be awaited."""
        ctx = current.get()
        if ctx is None:
            raise RuntimeError("an agent can be spoken to only from a function that is called")
        return request(ctx, "send", {"send": str(message), "to": self["name"]}, as_given)

    __call__ = send


class Memory:
    """What the agent remembers over its runs."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def get(self, key: str, default: Any = None) -> Any:
        found = request_now(self._ctx, {"recall": key})
        return default if found is None else found

    def update(self, key: str, value: Any) -> None:
        encoded(value)
        request_now(self._ctx, {"remember": [key, value]})

    set = update
    __setitem__ = update

    def __getitem__(self, key: str) -> Any:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def search(self, text: str, limit: int = 10) -> list[Any]:
        """What is remembered with these words, best first."""
        found = request_now(self._ctx, {"search": [text, limit]})
        return [Fields(it) for it in found]


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


live_state: dict[str, dict[str, Any]] = {}
# The agent of each instance that has a lane here.
agents: dict[str, Agent] = {}


class Context:
    """What a hook gets to see. Everything is made when it is asked for."""

    _state: Optional[Stored] = None
    _variables: Optional[Variables] = None
    _bases: Optional[dict[str, Any]] = None
    _said: Optional[dict[str, Any]] = None
    _logs: Optional[dict[str, Any]] = None
    _task: Optional[asyncio.Task[Any]] = None
    _waits: Optional[set[int]] = None
    _left: Optional[tuple[contextvars.Context, dict[Any, Any]]] = None
    _owed: Optional[list[Owed]] = None
    _cancelled = False
    _is_interrupted = False
    _over = False

    def __init__(self, lane: Lane, message: dict[str, Any], function: Function) -> None:
        self._lane = lane
        self._id: int = message["id"]
        self._function = function
        self._p: dict[str, Any] = message["p"]
        self._about = lane.about

    def _run(self) -> Any:
        """Calls the function."""
        function = self._function
        return function.body(self) if function.is_plain else function.call(self)

    # What is the same at every point.

    @property
    def agent(self) -> Agent:
        agent = agents.get(self._about["instance_id"])
        if agent is None:
            agent = agents.setdefault(self._about["instance_id"], Agent(self._about))
        return agent

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
        context = self._p.get("context")
        if type(context) is dict and isinstance(context.get("created_at"), str):
            context["created_at"] = moment(context["created_at"])
        return lifted(self._p, "context", context)

    @property
    def memory(self) -> Memory:
        return Memory(self)

    def _history(self) -> Any:
        history = self._p.get("message_history")
        if history is None:
            history = request_now(self, {"history": True})
            self._p["message_history"] = history
        return lifted(self._p, "message_history", history)

    def load_message_history(self, messages: Any) -> None:
        raise RuntimeError("only tool hooks change the conversation in place")

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
        return None if found is None else OtherAgent(found)

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
            if scope:
                chat = chat_of(scope)
                with chat.lock:
                    at, seen = self._p.get("version") or (0, {})
                    chat.data.merge(self._p.get("variables") or {}, at, seen)
                self._variables = chat.variables
            else:
                family = self._about["family_id"]
                own = own_variables.get(family)
                if own is None:
                    own = own_variables.setdefault(family, Variables())
                self._variables = own
        return self._variables

    def log(self, text: str) -> None:
        for line in str(text).splitlines():
            self._lane.pipe.send({"id": self._id, "log": line[:MOST_LINE], "stream": "host"})

    def secret(self, value: str) -> str:
        if not isinstance(value, str):
            raise TypeError(f"a secret is a text, not {type(value).__name__}")
        self._lane.pipe.send({"id": self._id, "secret": value})
        return value

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
        self._lane.pipe.send({"id": self._id, "shutdown": True})

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

    def _undo(self) -> None:
        """Takes back what it has written to the variables of its chat."""
        scope = self._p.get("chat_id")
        if self._variables is not None and scope:
            chat = chat_of(scope)
            with chat.lock:
                chat.data.undo(self)

    def _add_changes(self, frame: dict[str, Any]) -> None:
        if self._state is not None:
            changes, gone = self._state.changes()
            changes.update(dict.fromkeys(gone))
            if changes:
                frame["state"] = changes
        scope = self._p.get("chat_id")
        if self._variables is not None and scope:
            chat = chat_of(scope)
            with chat.lock:
                changes, gone = chat.data.changes()
                if changes or gone:
                    frame["patch"] = chat.data._patches
            if changes:
                frame["variables"] = changes
            if gone:
                frame["gone"] = gone


def moment(text: str) -> Any:
    try:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return text


PLAIN: dict[str, Any] = dict.fromkeys("run_id outcome error reason call_id batch chat_id".split())
PLAIN.update(delivery_id=None, idempotency_key=None)
PLAIN.update(attempt=1, resumed=False, approved=False, started=True)


def parts_of(request: Any) -> dict[str, Any]:
    return {it: request[it] for it in ("instruction", "messages", "params") if it in request}
