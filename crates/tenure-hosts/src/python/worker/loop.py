# The event loop, and calls of coroutine functions on it.


@types.coroutine
def served(carrier: Carrier) -> Any:
    """Makes calls one after the other, and gives the frame of each. When one has to wait, what
    comes out is what it waits for; it is the last then."""
    frame: Any = None
    while True:
        ctx = yield frame
        current.set(ctx)
        try:
            value = ctx._run()
            kind = type(value)
            if kind is types.CoroutineType:
                value = yield from value
            elif hasattr(value, "__await__"):
                wrapped: Any = awaited(value)
                value = yield from wrapped
            frame = done(ctx, value)
        except GeneratorExit:
            raise
        except BaseException as error:
            frame = failed(ctx, error)
        # What the call had is not kept until the next one.
        ctx = value = None
        if carrier.is_taken:
            return frame


@types.coroutine
def resumed(calls: Any, waits_for: Any) -> Any:
    """The rest of a call whose first step was taken by hand, and which waits for this."""
    while True:
        try:
            sent = yield waits_for
        except BaseException as error:
            step, given = calls.throw, error
        else:
            step, given = calls.send, sent
        try:
            waits_for = step(given)
        except StopIteration as end:
            return end.value


class Carrier:
    """A task for calls that end in their first step, one after the other.

    A task costs more than most hooks do. The first call that has to wait takes the task.
    """

    task: asyncio.Task[Any]
    step: Any
    context: contextvars.Context
    waits_for: Any = None
    is_taken = False

    def __init__(self) -> None:
        self.calls = served(self)
        self.send = self.calls.send
        self.send(None)
        self.rest = self.run()

    async def run(self) -> Any:
        return await resumed(self.calls, self.waits_for)


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose tasks can be taken one step without running it."""

    carrier: Optional[Carrier] = None
    grabs = False
    grabbed: Any = None
    is_current = False
    is_looping = False
    was_used = False
    lane: Lane

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        if self.grabs:
            self.grabs = False
            self.grabbed = (callback, args, context)
            return None
        self.was_used = True
        return super().call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        self.was_used = True
        return super().call_at(when, callback, *args, context=context)

    def is_running(self) -> bool:
        return self.is_current or super().is_running()

    def prepare(self) -> Carrier:
        carrier = Carrier()
        self.grabs = True
        try:
            # A task has a copy of the context that it is made in.
            carrier.task = self.lane.context.run(asyncio.Task, carrier.rest, loop=self)
        finally:
            self.grabs = False
        carrier.task._log_destroy_pending = False  # type: ignore[attr-defined]
        callback, args, carrier.context = self.grabbed
        # What a call leaves in it is found by the next.
        self.lane.context = carrier.context
        carrier.step = (callback, *args)
        self.grabbed = None
        self.carrier = carrier
        return carrier

    def step(self, ctx: Context) -> Union[bytes, asyncio.Task[Any]]:
        """Makes a call, up to its end: most end without waiting. One that waits becomes a task."""
        carrier = self.carrier or self.prepare()
        if not self.is_current:
            set_running(self)
            enter_task(self, carrier.task)
            self.is_current = True
        context = carrier.context
        said = context.run(carrier.send, ctx)
        if type(said) is bytes:
            if carrier.task._must_cancel:  # type: ignore[attr-defined]
                self.rest()
                self.carrier = None
                carrier.rest.close()
            return said
        # It waits. The task starts where it stands now, with the context as its own; what it
        # changes there from now on is handed back when it ends.
        self.carrier = None
        carrier.is_taken = True
        carrier.waits_for = said
        self.lane.context = context.copy()
        ctx._left = (context, dict(context))
        leave_task(self, carrier.task)
        try:
            context.run(*carrier.step)
        finally:
            set_running(None)
            self.is_current = False
        return carrier.task

    def rest(self) -> None:
        """Makes this no longer the loop that runs in this thread, nor its task the current one.
        They stay that from one call to the next, since to change it takes a call of the system."""
        if self.is_current:
            if self.carrier is not None:
                leave_task(self, self.carrier.task)
            set_running(None)
            self.is_current = False

    def has_work(self) -> bool:
        tasks = asyncio.all_tasks(self)
        if self.carrier is not None:
            tasks.discard(self.carrier.task)
        soon: Any = getattr(self, "_ready", ())
        if tasks or soon:
            return True
        return any(not it.cancelled() for it in getattr(self, "_scheduled", ()))


set_running: Any = asyncio._set_running_loop
enter_task: Any = asyncio._enter_task
leave_task: Any = asyncio._leave_task
