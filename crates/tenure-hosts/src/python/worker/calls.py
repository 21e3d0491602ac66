# Calls.


class Call(Context):
    """A call of a tool: its arguments go by name."""

    def __init__(self, lane: Lane, message: dict[str, Any], function: Function) -> None:
        super().__init__(lane, message, function)
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


def begin(lane: Lane, message: dict[str, Any]) -> None:
    function = functions[message["fn"]]
    ctx: Context
    if "tool" in message:
        ctx = Call(lane, message, function)
    elif "lifecycle" in message:
        ctx = LifecycleContext(lane, message, function)
    elif "message" in message:
        ctx = MessageContext(lane, message, function)
    elif "tool_hook" in message["p"]:
        ctx = ToolHookContext(lane, message, function)
    else:
        ctx = Context(lane, message, function)
    if function.body is None:
        if message.get("tell") == "loads":
            lane.pipe.write(b'{"id":%d,"loads":true}' % ctx._id)
        if not find_body(ctx):
            return
    if function.is_async:
        if "tell" in message:
            lane.tell_begun(ctx)
        begin_task(ctx)
    else:
        run_plain(ctx, "tell" in message)


def find_body(ctx: Context) -> bool:
    """Loads the module of a function, which runs it."""
    lane = ctx._lane
    if lane.loop is not None:
        lane.loop.rest()
    token = current.set(ctx)
    try:
        lane.run(ctx, lambda ctx: ctx._function.resolve())
    except Closed:
        raise
    except BaseException as error:
        over(ctx, failed(ctx, error))
        return False
    finally:
        current.reset(token)
    return True


def over(ctx: Context, frame: bytes) -> None:
    ctx._lane.calls.pop(ctx._id, None)
    if ctx._waits is not None:
        end_waits(ctx, OVER)
    ctx._lane.pipe.write(frame)


def run_plain(ctx: Context, tells: bool) -> None:
    """Runs a plain function to its end. If what it returns has to be awaited, that is a task."""
    lane = ctx._lane
    scope = ctx._p.get("chat_id") if ctx._function.takes_variables else None
    chat = chat_of(scope) if scope else None
    if lane.loop is not None:
        lane.loop.rest()
    if lane.first is not None:
        lane.context = lane.first.context.copy()

    def run(ctx: Context) -> Any:
        current.set(ctx)
        lane.acquire(chat)
        if tells:
            lane.tell_begun(ctx)
        value = ctx._run()
        if value is not None and hasattr(value, "__await__"):
            return value
        return done(ctx, value)

    try:
        frame = lane.run(ctx, lambda ctx: lane.context.run(run, ctx))
    except Closed:
        raise
    except BaseException as error:
        frame = failed(ctx, error)
    lane.release(chat)
    if type(frame) is not bytes:
        ctx._run = lambda: frame  # type: ignore[method-assign]
        begin_task(ctx)
        return
    over(ctx, frame)


def begin_task(ctx: Context) -> None:
    lane = ctx._lane
    try:
        said = lane.run(ctx, lane.own_loop().step)
    except asyncio.CancelledError as error:
        # It was interrupted just as it ended.
        said = failed(ctx, error)
    if isinstance(said, bytes):
        over(ctx, said)
        return
    ctx._task = said
    lane.pending[said] = ctx
    said.add_done_callback(end_task)


def end_task(task: asyncio.Task[Any]) -> None:
    loop: Any = task.get_loop()
    lane: Lane = loop.lane
    ctx = lane.pending.pop(task)
    lane.settle(ctx)
    try:
        frame: bytes = task.result()
    except BaseException as error:
        frame = failed(ctx, error)
    if ctx._left is not None:
        context, before = ctx._left
        for variable, value in context.items():
            if variable is not current and before.get(variable, UNSAID) is not value:
                lane.context.run(variable.set, value)
    over(ctx, frame)
    if not lane.pending:
        loop.stop()
