# What tool hooks of fast-agent see.


class Runner:
    """What runs the turn, as far as hooks get to see it: one object for the turn."""

    def __init__(self, turn: Any) -> None:
        self._turn = turn

    @property
    def _ctx(self) -> ToolHookContext:
        ctx = current.get()
        if not isinstance(ctx, ToolHookContext):
            raise RuntimeError("the runner can be asked only from a tool hook")
        return ctx

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


# The runner of the turn that an instance is in.
runners: dict[str, Runner] = {}


class ToolHookContext(Context):
    """What a tool hook gets to see. What it changes in place is what counts afterwards."""

    def __init__(self, lane: Lane, message: dict[str, Any], function: Function) -> None:
        super().__init__(lane, message, function)
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
        turn = payload["run_id"]
        runner = runners.get(self.instance_id)
        if runner is None or runner._turn != turn:
            runner = runners[self.instance_id] = Runner(turn)
        self.runner = runner

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

    def _history(self) -> Any:
        return self.message_history

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
