# How a call ended, as a frame.


def done(ctx: Context, value: Any) -> bytes:
    """The frame of a call that returned."""
    if ctx._logs is not None:
        flush_logs(ctx)
    ctx._over = True
    if ctx._owed is not None:
        what = forgotten(ctx)
        if what is not None:
            return bad(ctx, str(Forgotten(what)))
    if type(ctx) is Context and ctx._is_untouched():
        if value is None:
            return b'{"id":%d}' % ctx._id
        if type(value) is dict and len(value) == 1 and value.get("allow") is True:
            return b'{"id":%d,"r":{"allow":true}}' % ctx._id
    if isinstance(ctx, Call):
        frame: dict[str, Any] = {"id": ctx._id, "text": tool_text(value)}
    elif isinstance(ctx, ToolHookContext):
        frame = {"id": ctx._id, "r": ctx._outcome()}
    elif isinstance(ctx, (LifecycleContext, MessageContext)):
        frame = ctx._frame(value)
    else:
        frame = reply(ctx, value)
    try:
        ctx._add_changes(frame)
    except Unfit as error:
        return bad(ctx, str(error))
    try:
        body = encode(frame).encode("utf-8", "replace")
    except NOT_JSON as error:
        return bad(ctx, f"what it returned is not JSON: {error}")
    if len(body) > MOST_FRAME:
        return bad(ctx, f"its reply is {len(body)} bytes, and {MOST_FRAME} is the most")
    return body


def reply(ctx: Context, value: Any) -> dict[str, Any]:
    point = ctx._p["point"]
    frame: dict[str, Any] = {"id": ctx._id}
    if isinstance(value, Result):
        said = value._value()
        if encode(said) == value._said:
            frame["kept"] = value._q
            return frame
        value = {"result" if point == "wrap_tool_call" else "response": said}
    elif isinstance(value, str) and point == "wrap_tool_call":
        value = {"result": value}
    elif isinstance(value, str) and point == "wrap_model_call":
        value = {"response": {"text": value}}
    elif isinstance(value, dict):
        if point == "wrap_tool_call" and "content" in value:
            value = {"result": value}
        elif point == "wrap_model_call" and ("text" in value or "calls" in value):
            value = {"response": value}
    elif value is not None:
        frame["bad"] = f"it returned {type(value).__name__}; return None, or a dict that decides"
        return frame
    said = dict(ctx._said) if ctx._said else {}
    if point == "before_model":
        changed = ctx._changed_request()
        if changed:
            said["request"] = changed
    if isinstance(value, dict):
        said.update(value)
    if said or value is not None:
        frame["r"] = said
    return frame


def bad(ctx: Context, what: str) -> bytes:
    return encode({"id": ctx._id, "bad": what}).encode("utf-8", "replace")


def describe(error: BaseException) -> str:
    if isinstance(error, Misfit):
        return str(error)
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{name}: {text}" if text else name


def failed(ctx: Context, error: BaseException) -> bytes:
    """The frame of a call that raised."""
    flush_logs(ctx)
    ctx._over = True
    ctx._undo()
    frame: dict[str, Any] = {"id": ctx._id}
    if isinstance(error, Forgotten):
        return bad(ctx, str(error))
    if isinstance(error, tenure.Denied) and type(ctx) is Context:
        frame["r"] = {"deny": str(error)}
        return encode(frame).encode("utf-8", "replace")
    message = describe(error)
    if isinstance(error, Misfit):
        # The function was not called: there is nowhere that it raised.
        frame["e"] = message[-MOST_LINE:]
        return encode(frame).encode("utf-8", "replace")
    q = getattr(error, "_q", None)
    if isinstance(error, tenure.NextError) and q is not None:
        frame["passed"] = q
        if isinstance(error, tenure.Cancelled):
            # It ends because its call was cancelled: nobody wants to read where.
            frame["e"] = message[-MOST_LINE:]
            return encode(frame).encode("utf-8", "replace")
    own = any(it.filename != __file__ for it in traceback.extract_tb(error.__traceback__))
    if own or error.__cause__ is not None or error.__context__ is not None:
        told = traceback.TracebackException.from_exception(error)
        without_worker(told)
        frame["trace"] = "".join(told.format())[-MOST_LINE:]
    frame["e"] = message[-MOST_LINE:]
    return encode(frame).encode("utf-8", "replace")


def without_worker(told: Optional[traceback.TracebackException]) -> None:
    """Takes the worker's own lines out of a traceback, and out of those that led to it."""
    while told is not None:
        told.stack[:] = [it for it in told.stack if it.filename != __file__]
        if told.__cause__ is not None:
            without_worker(told.__context__)
        told = told.__cause__ or told.__context__
