# Calls.


class Call(Context):
    """A call of a tool: its arguments go by name."""

    def __init__(self, message: dict[str, Any], function: Function) -> None:
        super().__init__(message, function)
        self._arguments: dict[str, Any] = message["tool"]

    def _run(self) -> Any:
        arguments = self._arguments
        plan = self._function.plan
        if plan is UNREAD:
            plan = self._function.plan = plan_of(self._function.body)
        if plan is not None:
            arguments = plan(arguments)
        if self._function.takes_ctx:
            arguments = dict(arguments, ctx=self)
        if self._function.takes_variables:
            arguments = dict(arguments, context_variables=self.context_variables)
        return self._function.body(**arguments)


calls: dict[int, Context] = {}


def begin(message: dict[str, Any]) -> None:
    function = functions[message["fn"]]
    ctx: Context
    if "tool" in message:
        ctx = Call(message, function)
    elif "lifecycle" in message:
        ctx = LifecycleContext(message, function)
    elif "message" in message:
        ctx = MessageContext(message, function)
    elif "tool_hook" in message["p"]:
        ctx = ToolHookContext(message, function)
    else:
        ctx = Context(message, function)
    if function.body is None:
        loop.rest()
        token = current.set(ctx)
        try:
            function.resolve()
        except BaseException as error:
            write(failed(ctx, error))
            return
        finally:
            current.reset(token)
    if function.is_async:
        begin_task(ctx)
    elif "inline" in message:
        loop.rest()
        run_now(ctx)
    else:
        calls[ctx._id] = ctx
        threads.run(ctx)


def run_now(ctx: Context) -> None:
    """Runs a plain function in this thread, to its end."""
    token = current.set(ctx)
    try:
        value = ctx._run()
        if value is not None and hasattr(value, "__await__"):
            value = asyncio.run(awaited(value))
        frame = done(ctx, value)
    except BaseException as error:
        frame = failed(ctx, error)
    current.reset(token)
    write(frame)


class Threads:
    """Threads for plain functions: as many as are needed at a time, and kept."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Context] = SimpleQueue()
        self.lock = threading.Lock()
        self.idle = 0

    def run(self, ctx: Context) -> None:
        with self.lock:
            more = self.idle == 0
            if not more:
                self.idle -= 1
        self.jobs.put(ctx)
        if more:
            threading.Thread(target=self.work, name="tenure-hook", daemon=True).start()

    def work(self) -> None:
        while True:
            ctx = self.jobs.get()
            run_now(ctx)
            calls.pop(ctx._id, None)
            with self.lock:
                self.idle += 1


threads = Threads()
