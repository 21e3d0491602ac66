# What asks the host, and waits for its answer.

numbers = iter(range(1, 1 << 62))
# How often a thread that is not its lane's looks whether it has to read for itself.
GLANCE = 0.01


def as_answer(q: int, value: Any) -> Any:
    return tenure.Answer(value["decision"], value.get("value"))


def as_given(q: int, value: Any) -> Any:
    return value


def as_result(q: int, value: Any) -> Any:
    return Result(q, value)


def answer_of(message: dict[str, Any], convert: Any) -> Any:
    error = message.get("err")
    if error is not None:
        if error["kind"] == "cancelled":
            raised = tenure.Cancelled(error["message"])
        elif "usage" in error:
            raised = RuntimeError(error["message"])
        else:
            raised = tenure.NextError(error["message"], error["kind"])
        raised._q = message.get("q")
        raise raised
    value = message.get("v")
    return value if convert is None else convert(message["q"], value)


CANCELLED = {"kind": "cancelled", "message": "the turn was cancelled"}
OVER = {
    "kind": "over",
    "usage": True,
    "message": "the call is over: a thread or a task that outlives it can ask for nothing",
}


def end_waits(ctx: Context, error: dict[str, Any]) -> None:
    """Ends what a call waits for, in whichever thread."""
    for q in list(ctx._waits or ()):
        deliver = ctx._lane.waits.pop(q, None)
        if deliver is not None:
            deliver({"q": q, "err": error})


def post(ctx: Context, frame: dict[str, Any], deliver: Callable[[dict[str, Any]], None]) -> int:
    q = next(numbers)
    if ctx._cancelled:
        deliver({"q": q, "err": CANCELLED})
        return q
    ctx._lane.waits[q] = deliver
    if ctx._waits is None:
        ctx._waits = set()
    ctx._waits.add(q)
    if ctx._over:
        # The host has forgotten the call, and would never answer.
        end_waits(ctx, OVER)
        return q
    frame["id"] = ctx._id
    frame["q"] = q
    ctx._lane.pipe.send(frame)
    return q


def request(ctx: Context, what: str, frame: dict[str, Any], convert: Any) -> Any:
    if ctx._function.is_async:
        return owed(ctx, what, request_later(ctx, frame, convert))
    return answer_of(exchange(ctx, frame), convert)


# What a coroutine function asked for, which it has to await, by its name.
Owed = tuple[str, Any]
HINTS = {
    "ask": "write `await ctx.ask(...)`",
    "step": "write `await ctx.step(...)`",
    "next": "write `return await next()`",
    "send": "write `await agent.send(...)`",
}


def owed(ctx: Context, what: str, waiting: Any) -> Any:
    if ctx._owed is None:
        ctx._owed = []
    ctx._owed.append((what, waiting))
    return waiting


class Forgotten(Exception):
    """Why a call is made no longer: its function does not await what it has to."""

    def __init__(self, what: str) -> None:
        super().__init__(f"`{what}` was called and not awaited; {HINTS[what]}")


def forgotten(ctx: Context) -> Optional[str]:
    """What the function called and never began to await. It does not happen any more."""
    found = None
    for what, waiting in ctx._owed or ():
        if is_unawaited(waiting):
            waiting.close()
            found = found or what
    ctx._owed = None
    return found


def is_unawaited(waiting: Any) -> bool:
    return inspect.getcoroutinestate(waiting) == inspect.CORO_CREATED


def request_now(ctx: Context, frame: dict[str, Any]) -> Any:
    return answer_of(exchange(ctx, frame), None)


def exchange(ctx: Context, frame: dict[str, Any]) -> dict[str, Any]:
    """Sends a question and waits in this thread for the answer."""
    lane = ctx._lane
    if threading.get_ident() != lane.ident:
        return exchange_elsewhere(ctx, frame)
    # This thread is the one that reads, so it reads on; what else comes waits its turn.
    got: list[dict[str, Any]] = []
    post(ctx, frame, got.append)
    with lane.waiting():
        while not got:
            lane.hear()
    if lane.pipe.ready and lane.loop is not None and lane.loop.is_looping:
        lane.loop.call_soon(lane.loop.stop)
    return got[0]


def exchange_elsewhere(ctx: Context, frame: dict[str, Any]) -> dict[str, Any]:
    """The same in a thread that a function has started. If the lane's own thread is in a function,
    and so reads nothing, this one reads for it."""
    lane = ctx._lane
    queue: SimpleQueue[dict[str, Any]] = SimpleQueue()
    post(ctx, frame, queue.put)
    while True:
        try:
            return queue.get(timeout=GLANCE)
        except Empty:
            pass
        if lane.reading.acquire(blocking=False):
            try:
                while queue.empty():
                    lane.hear()
            finally:
                lane.reading.release()


async def exchange_later(ctx: Context, frame: dict[str, Any]) -> dict[str, Any]:
    lane = ctx._lane
    future = lane.own_loop().create_future()

    def deliver(message: dict[str, Any]) -> None:
        if not future.done():
            future.set_result(message)

    post(ctx, frame, deliver)
    answer: dict[str, Any] = await future
    return answer


async def request_later(ctx: Context, frame: dict[str, Any], convert: Any) -> Any:
    # A question that stands before the call must not be answered by making it.
    if "next" in frame and any(it[0] == "ask" and is_unawaited(it[1]) for it in ctx._owed or ()):
        raise Forgotten("ask")
    return answer_of(await exchange_later(ctx, frame), convert)


def step_now(ctx: Context, name: str, effect: Any) -> Any:
    message = exchange(ctx, {"step": name})
    if not message.get("run"):
        return answer_of(message, None)
    try:
        value = effect() if callable(effect) else effect
        if hasattr(value, "__await__"):
            value = asyncio.run(awaited(value))
        encode(value)
    except BaseException as error:
        exchange(ctx, {"step_error": describe(error), "of": message["q"]})
        raise
    answer_of(exchange(ctx, {"step_value": value, "of": message["q"]}), None)
    return value


async def step_later(ctx: Context, name: str, effect: Any) -> Any:
    message = await exchange_later(ctx, {"step": name})
    if not message.get("run"):
        if hasattr(effect, "close") and not callable(effect):
            effect.close()
        return answer_of(message, None)
    try:
        value = effect() if callable(effect) else effect
        if hasattr(value, "__await__"):
            value = await value
        encode(value)
    except BaseException as error:
        failure = {"id": ctx._id, "step_error": describe(error), "of": message["q"], "q": 0}
        ctx._lane.pipe.send(failure)
        raise
    answer_of(await exchange_later(ctx, {"step_value": value, "of": message["q"]}), None)
    return value


async def awaited(value: Any) -> Any:
    return await value
