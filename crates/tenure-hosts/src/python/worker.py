"""The worker: runs hooks and tools of Tenure that are written in Python.

It is started by the host, which sends it this source, and it uses the standard library alone.
Frames are a length in four bytes, little end first, and then JSON. They travel on descriptors of
their own: what a hook prints becomes log lines and never touches them.

While nothing waits, the main thread blocks in `read` and runs a call as it comes. It turns to the
event loop only for coroutines that are pending, and back when there are none.
"""

from __future__ import annotations

import asyncio
import contextvars
import fcntl
import gc
import hashlib
import io
import json
import linecache
import os
import select
import signal
import sys
import threading
import traceback
import types
from collections import deque
from queue import SimpleQueue
from typing import Any, Callable, Optional, Union

MOST_FRAME = 64 << 20
MOST_LOG = 256 << 10
MOST_LINE = 16 << 10
# Lines of what was printed are never split in the middle of a frame of this size.
CHUNK = 1 << 16

IN = -1
OUT = -1
MAIN = threading.get_ident()

tenure: Any = types.ModuleType("tenure")
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
encode = _encoder.encode
decode = json.JSONDecoder().raw_decode
NOT_JSON = (TypeError, ValueError, OverflowError, RecursionError)

current: contextvars.ContextVar[Optional[Context]] = contextvars.ContextVar(
    "tenure_call", default=None
)


# Frames.

write_lock = threading.Lock()
ready: deque[Union[bytes, dict[str, Any]]] = deque()
part = bytearray()


def write(body: bytes) -> None:
    """Sends one frame. Without a host there is nothing left to live for."""
    data = len(body).to_bytes(4, "little") + body
    try:
        with write_lock:
            sent = os.write(OUT, data)
            while sent < len(data):
                sent += os.write(OUT, memoryview(data)[sent:])
    except OSError:
        os._exit(70)


def send(frame: dict[str, Any]) -> None:
    write(encode(frame).encode("utf-8", "replace"))


def pull() -> None:
    """Reads once, and waits for that; whole frames go to `ready`."""
    try:
        chunk = os.read(IN, CHUNK)
    except OSError:
        os._exit(70)
    size = len(chunk)
    if not part and size > 4 and int.from_bytes(chunk[:4], "little") == size - 4:
        ready.append(chunk[4:])
        return
    if not size:
        end_group()
    part.extend(chunk)
    while len(part) >= 4:
        size = int.from_bytes(part[:4], "little") + 4
        if len(part) < size:
            break
        ready.append(bytes(part[4:size]))
        del part[:size]


def end_group() -> None:
    """The host is gone: so is everything that was started here."""
    try:
        os.killpg(0, signal.SIGKILL)
    finally:
        os._exit(70)


def watch_host() -> None:
    """Waits, beside whatever hooks do, for the host to close its end."""
    poll = select.poll()
    poll.register(IN, 0)
    poll.poll()
    end_group()


# What hooks print.


class LogBytes(io.RawIOBase):
    """What `sys.stdout.buffer` is."""

    def __init__(self, text: LogText) -> None:
        super().__init__()
        self.text = text

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raw = bytes(data)
        self.text.write(raw.decode("utf-8", "replace"))
        return len(raw)


class LogText(io.TextIOBase):
    """What `sys.stdout` and `sys.stderr` are: each line is a frame of the call that printed it."""

    def __init__(self, stream: str, fd: int) -> None:
        super().__init__()
        self.stream = stream
        self.fd = fd
        self.buffer = LogBytes(self)
        self.stray: dict[str, Any] = {}

    encoding = "utf-8"
    errors = "replace"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self.fd

    def write(self, text: str) -> int:
        ctx = current.get()
        if ctx is not None and ctx._over:
            ctx = None
        if ctx is None:
            logs = self.stray
        elif ctx._logs is None:
            logs = ctx._logs = {}
        else:
            logs = ctx._logs
        left = logs.get(self.stream, "") + text
        if "\n" in left or len(left) > MOST_LINE:
            *lines, left = left.split("\n")
            for line in lines:
                self.line(ctx, logs, line)
            while len(left) > MOST_LINE:
                self.line(ctx, logs, left[:MOST_LINE])
                left = left[MOST_LINE:]
        logs[self.stream] = left
        return len(text)

    def line(self, ctx: Optional[Context], logs: dict[str, Any], line: str) -> None:
        if ctx is not None:
            size = logs.get("size", 0)
            if size > MOST_LOG:
                return
            logs["size"] = size + len(line) + 1
            if logs["size"] > MOST_LOG:
                line = "(more was printed, and is left out)"
        frame: dict[str, Any] = {"log": line[:MOST_LINE], "stream": self.stream}
        if ctx is not None:
            frame["id"] = ctx._id
        send(frame)

    def flush(self) -> None:
        pass

    def finish(self, ctx: Context, logs: dict[str, Any]) -> None:
        """Sends what stands behind the last line break."""
        left = logs.pop(self.stream, "")
        if left:
            self.line(ctx, logs, left)


# What hooks see.


class Fields(dict[str, Any]):
    """An object of JSON whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        return lifted(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Config(Fields):
    """Fields of which some may be absent."""

    def __getattr__(self, name: str) -> Any:
        if name in ("model", "instruction") and name not in self:
            return None
        return super().__getattr__(name)


def lifted(owner: dict[str, Any], name: str, value: Any) -> Any:
    """The value with attributes; kept in its owner, so that changes to it are changes there."""
    if type(value) is dict:
        value = owner[name] = Fields(value)
    elif type(value) is list:
        value[:] = [Fields(it) if type(it) is dict else it for it in value]
    return value


class Stored(dict[str, Any]):
    """Values that outlive the call. Those that are not JSON stay alive in this worker."""

    def __init__(self, values: dict[str, Any], live: dict[str, Any]) -> None:
        super().__init__()
        self._live = live
        self._base: dict[str, str] = {}
        for key, value in values.items():
            self._base[key] = encode(value)
            if type(value) is dict and "$live" in value:
                if key in live:
                    self[key] = live[key]
            else:
                self[key] = value
        for key in live:
            if key not in self._base:
                self[key] = live[key]

    def changes(self) -> dict[str, Any]:
        """What changed since the last time."""
        patch: dict[str, Any] = {}
        base, live = self._base, self._live
        for key, value in self.items():
            try:
                text = encode(value)
            except NOT_JSON:
                live[key] = value
                value = {"$live": type(value).__qualname__}
                text = encode(value)
            else:
                live.pop(key, None)
            if base.get(key) != text:
                base[key] = text
                patch[key] = value
        for key in [key for key in base if key not in self]:
            live.pop(key, None)
            if base[key] != "null":
                base[key] = "null"
                patch[key] = None
        return patch


class Variables:
    """The context variables, as mappings and as `.data`."""

    def __init__(self, data: Stored) -> None:
        self.data = data

    def get(self, key: str, default: Any = None) -> Any:
        return self.data.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.data[key] = value

    def remove(self, key: str) -> bool:
        return self.data.pop(key, self) is not self

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.data[key] = value

    def __delitem__(self, key: str) -> None:
        del self.data[key]

    def __contains__(self, key: object) -> bool:
        return key in self.data

    def __iter__(self) -> Any:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


class Agent:
    """The agent that a hook runs in."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.name: str = ctx._about["name"]
        self.instance_id: str = ctx._about["instance_id"]
        self.id = self.instance_id
        self.phase: str = ctx._p["agent"][0]
        self.state: str = ctx._p["agent"][1]

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


class Result:
    """What `next` gave. Unchanged, it is handed on as it is."""

    _q: int
    _said: str
    _keys: tuple[str, ...] = ()

    def __init__(self, q: int, value: dict[str, Any]) -> None:
        self._q = q
        self.__dict__.update((key, lifted(value, key, it)) for key, it in value.items())
        self._keys = tuple(value)
        self._said = encode(self._value())

    def _value(self) -> dict[str, Any]:
        return {key: self.__dict__[key] for key in self._keys}

    def __str__(self) -> str:
        return str(self.__dict__.get("content", self.__dict__.get("text", "")))

    def __repr__(self) -> str:
        return f"Result({self._value()!r})"


# What does not change in the life of an instance, by the number that calls have for it.
abouts: dict[int, dict[str, Any]] = {}
live_state: dict[str, dict[str, Any]] = {}
live_variables: dict[str, dict[str, Any]] = {}
numbers = iter(range(1, 1 << 62))
waits: dict[int, Callable[[dict[str, Any]], None]] = {}


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
    _cancelled = False
    _over = False

    def __init__(self, message: dict[str, Any], function: Function) -> None:
        self._id: int = message["id"]
        self._function = function
        self._p: dict[str, Any] = message["p"]
        self._about: dict[str, Any] = abouts[message["a"]]

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
            scope = self._p.get("chat_id") or ""
            live = live_variables.setdefault(scope, {})
            values = self._p.get("variables") or {}
            self._variables = Variables(Stored(values, live))
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
        return request(self, {"ask": ask}, as_answer)

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
        return request(self, frame, as_result)

    def step(self, name: str, effect: Any) -> Any:
        if self._function.is_async:
            return step_later(self, name, effect)
        return step_now(self, name, effect)

    def _add_changes(self, frame: dict[str, Any]) -> None:
        if self._state is not None:
            changes = self._state.changes()
            if changes:
                frame["state"] = changes
        if self._variables is not None:
            changes = self._variables.data.changes()
            if self._p.get("chat_id"):
                if changes:
                    frame["variables"] = changes
            else:
                # There is no chat to keep them, so this worker does.
                self._variables.data._live.update(self._variables.data)


PLAIN: dict[str, Any] = dict.fromkeys("run_id outcome error reason call_id batch chat_id".split())
PLAIN.update(attempt=1, resumed=False, approved=False)


def parts_of(request: Any) -> dict[str, Any]:
    return {it: request[it] for it in ("instruction", "messages", "params") if it in request}


def as_answer(q: int, value: Any) -> Any:
    return tenure.Answer(value["decision"], value.get("value"))


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


def post(ctx: Context, frame: dict[str, Any], deliver: Callable[[dict[str, Any]], None]) -> int:
    q = next(numbers)
    if ctx._cancelled:
        deliver({"q": q, "err": {"kind": "cancelled", "message": "the turn was cancelled"}})
        return q
    waits[q] = deliver
    if ctx._waits is None:
        ctx._waits = set()
    ctx._waits.add(q)
    frame["id"] = ctx._id
    frame["q"] = q
    send(frame)
    return q


def request(ctx: Context, frame: dict[str, Any], convert: Any) -> Any:
    if ctx._function.is_async:
        return request_later(ctx, frame, convert)
    return answer_of(exchange(ctx, frame), convert)


def request_now(ctx: Context, frame: dict[str, Any]) -> Any:
    return answer_of(exchange(ctx, frame), None)


def exchange(ctx: Context, frame: dict[str, Any]) -> dict[str, Any]:
    """Sends a question and waits in this thread for the answer."""
    if threading.get_ident() != MAIN:
        queue: SimpleQueue[dict[str, Any]] = SimpleQueue()
        post(ctx, frame, queue.put)
        return queue.get()
    # This thread is the one that reads, so it reads on; what else comes waits its turn.
    got: list[dict[str, Any]] = []
    post(ctx, frame, got.append)
    while not got:
        pull()
        for _ in range(len(ready)):
            body = ready.popleft()
            message = decode(str(body, "utf-8"))[0] if isinstance(body, bytes) else body
            if message.get("q") in waits or message.get("cancel") == ctx._id:
                handle(message)
            else:
                ready.append(message)
    if ready and loop.is_looping:
        loop.call_soon(loop.stop)
    return got[0]


async def exchange_later(ctx: Context, frame: dict[str, Any]) -> dict[str, Any]:
    future = loop.create_future()

    def deliver(message: dict[str, Any]) -> None:
        if not future.done():
            future.set_result(message)

    post(ctx, frame, deliver)
    answer: dict[str, Any] = await future
    return answer


async def request_later(ctx: Context, frame: dict[str, Any], convert: Any) -> Any:
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
        send({"id": ctx._id, "step_error": describe(error), "of": message["q"], "q": 0})
        raise
    answer_of(await exchange_later(ctx, {"step_value": value, "of": message["q"]}), None)
    return value


async def awaited(value: Any) -> Any:
    return await value


# Files and functions.


class File:
    """A file as it was sent: compiled at once, run when it is first needed."""

    def __init__(self, number: int, path: str, source: str) -> None:
        self.number = number
        self.path = path
        self.module: Optional[types.ModuleType] = None
        self.code: Any = None
        self.source = source
        try:
            self.code = compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            pass
        linecache.cache[path] = (len(source), None, source.splitlines(True), path)

    def load(self) -> types.ModuleType:
        if self.module is not None:
            return self.module
        code = self.code or compile(self.source, self.path, "exec", dont_inherit=True)
        folder = os.path.dirname(self.path)
        if folder not in sys.path:
            sys.path.append(folder)
        about = f"{self.number} {self.path}".encode("utf-8", "replace")
        module = types.ModuleType(f"tenure_hook_{hashlib.sha256(about).hexdigest()[:16]}")
        module.__file__ = self.path
        sys.modules[module.__name__] = module
        try:
            exec(code, module.__dict__)
        except BaseException:
            del sys.modules[module.__name__]
            raise
        self.module = module
        return module


files: dict[int, File] = {}
functions: dict[int, Function] = {}
EXTRAS: dict[str, Callable[[Context], Any]] = {
    "context_variables": lambda ctx: ctx.context_variables,
    "next": lambda ctx: ctx.next,
    "input": lambda ctx: ctx.input,
    "request": lambda ctx: ctx.request,
    "response": lambda ctx: ctx.response,
    "output": lambda ctx: ctx.output,
    "outcome": lambda ctx: ctx.outcome,
    "arguments": lambda ctx: ctx.arguments,
    "tool": lambda ctx: ctx.tool,
    "state": lambda ctx: ctx.state,
    "reason": lambda ctx: ctx.reason,
}


class Function:
    """A function of a file, and how it is called."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.file: int = message["file"]
        self.name: str = message["name"]
        self.is_async: bool = message["async"]
        takes: list[str] = message["takes"]
        self.takes_ctx = "ctx" in takes
        named = [it for it in takes if it in EXTRAS]
        first = next((it for it in takes if it not in EXTRAS), None)
        self.ctx_name = first
        self.extras = [(it, EXTRAS[it]) for it in named]
        self.body: Any = None

    def call(self, ctx: Context) -> Any:
        """Calls it as a hook: its first own parameter is the context, others go by their names."""
        if not self.extras:
            return self.body(ctx) if self.ctx_name is not None else self.body()
        named = {name: make(ctx) for name, make in self.extras}
        if self.ctx_name is not None:
            named[self.ctx_name] = ctx
        return self.body(**named)

    def resolve(self) -> None:
        module = files[self.file].load()
        body: Any = module
        for part in self.name.split("."):
            body = getattr(body, part)
        if not callable(body):
            raise TypeError(f"`{self.name}` is not a function")
        self.body = body


# Calls.


class Call(Context):
    """A call of a tool: its arguments go by name."""

    def __init__(self, message: dict[str, Any], function: Function) -> None:
        super().__init__(message, function)
        self._arguments: dict[str, Any] = message["tool"]


def run(ctx: Context) -> Any:
    if not isinstance(ctx, Call):
        return ctx._function.call(ctx)
    arguments = ctx._arguments
    if ctx._function.takes_ctx:
        arguments = dict(arguments, ctx=ctx)
    return ctx._function.body(**arguments)


calls: dict[int, Context] = {}


def begin(message: dict[str, Any]) -> None:
    function = functions[message["fn"]]
    ctx: Context
    if "tool" in message:
        ctx = Call(message, function)
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
        value = run(ctx)
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


@types.coroutine
def resumed(coroutine: Any, waits_for: Any) -> Any:
    """The rest of a coroutine whose first step was taken by hand, and which waits for this."""
    while True:
        try:
            sent = yield waits_for
        except BaseException as error:
            step, given = coroutine.throw, error
        else:
            step, given = coroutine.send, sent
        try:
            waits_for = step(given)
        except StopIteration as end:
            return end.value


def first_step(ctx: Context, coroutine: Any) -> Any:
    current.set(ctx)
    return coroutine.send(None)


class Carrier:
    """A task for coroutines that end in their first step, one after the other.

    A task costs more than most hooks do. The first coroutine that has to wait keeps the task, and
    one that leaves something in its context for others to find spoils it.
    """

    task: asyncio.Task[Any]
    step: Any
    context: contextvars.Context
    coroutine: Any = None

    async def run(self) -> Any:
        return await self.coroutine


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose tasks can be taken one step without running it."""

    carrier: Optional[Carrier] = None
    grabs = False
    grabbed: Any = None
    is_current = False
    is_looping = False
    was_used = False

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
            carrier.task = asyncio.Task(carrier.run(), loop=self)
        finally:
            self.grabs = False
        carrier.task._log_destroy_pending = False  # type: ignore[attr-defined]
        callback, args, carrier.context = self.grabbed
        carrier.step = (callback, *args)
        self.grabbed = None
        self.carrier = carrier
        return carrier

    def step(self, ctx: Context, coroutine: Any) -> tuple[Optional[asyncio.Task[Any]], Any]:
        """Takes the first step of a coroutine. Most have no second: then there is no task, but
        what it returned; what it raises is raised."""
        carrier = self.carrier or self.prepare()
        task = carrier.task
        if not self.is_current:
            set_running(self)
            self.is_current = True
        enter_task(self, task)
        is_over = True
        try:
            carrier.coroutine = carrier.context.run(first_step, ctx, coroutine)
            is_over = False
        except StopIteration as end:
            return None, end.value
        finally:
            leave_task(self, task)
            spoilt = len(carrier.context) != 1 or getattr(task, "_must_cancel", False)
            if is_over and spoilt:
                self.carrier = None
        # It waits. The task starts where it stands now.
        self.carrier = None
        carrier.coroutine = resumed(coroutine, carrier.coroutine)
        carrier.context.run(*carrier.step)
        return task, None

    def rest(self) -> None:
        """Makes this no longer the loop that runs in this thread. It stays that from one coroutine
        to the next, since to change it takes a call of the system."""
        if self.is_current:
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


loop: Loop
set_running: Any = asyncio._set_running_loop
enter_task: Any = asyncio._enter_task
leave_task: Any = asyncio._leave_task
pending: dict[asyncio.Task[Any], Context] = {}


def begin_task(ctx: Context) -> None:
    try:
        value = run(ctx)
        if type(value) is not types.CoroutineType and hasattr(value, "__await__"):
            value = awaited(value)
        if type(value) is types.CoroutineType:
            task, value = loop.step(ctx, value)
            if task is not None:
                calls[ctx._id] = ctx
                ctx._task = task
                pending[task] = ctx
                task.add_done_callback(end_task)
                return
        frame = done(ctx, value)
    except BaseException as error:
        frame = failed(ctx, error)
    write(frame)


def end_task(task: asyncio.Task[Any]) -> None:
    ctx = pending.pop(task)
    calls.pop(ctx._id, None)
    write(task_frame(ctx, task))
    if not pending:
        loop.stop()


def task_frame(ctx: Context, task: asyncio.Task[Any]) -> bytes:
    try:
        return done(ctx, task.result())
    except BaseException as error:
        return failed(ctx, error)


def done(ctx: Context, value: Any) -> bytes:
    """The frame of a call that returned."""
    flush_logs(ctx)
    ctx._over = True
    if value is None and type(ctx) is Context and ctx._is_untouched():
        return b'{"id":%d}' % ctx._id
    if isinstance(ctx, Call):
        frame: dict[str, Any] = {"id": ctx._id, "text": tool_text(value)}
    elif isinstance(ctx, ToolHookContext):
        frame = {"id": ctx._id, "r": ctx._outcome()}
    else:
        frame = reply(ctx, value)
    ctx._add_changes(frame)
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
    elif said and point in ("before_agent", "before_model"):
        # It changed something and returned nothing, which means: go on.
        said["allow"] = True
    if said or value is not None:
        frame["r"] = said
    return frame


def tool_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=plain, ensure_ascii=False)


def plain(value: Any) -> Any:
    """Objects that are not JSON, as well as they can be told."""
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    for name in ("model_dump", "_asdict", "isoformat", "tolist"):
        if hasattr(value, name) and not isinstance(value, type):
            return getattr(value, name)()
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def bad(ctx: Context, what: str) -> bytes:
    return encode({"id": ctx._id, "bad": what}).encode("utf-8", "replace")


def describe(error: BaseException) -> str:
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
    frame: dict[str, Any] = {"id": ctx._id}
    if isinstance(error, tenure.Denied) and type(ctx) is Context:
        frame["r"] = {"deny": str(error)}
        return encode(frame).encode("utf-8", "replace")
    message = describe(error)
    q = getattr(error, "_q", None)
    if isinstance(error, tenure.NextError) and q is not None:
        frame["passed"] = q
    own = [it for it in traceback.extract_tb(error.__traceback__) if it.filename != __file__]
    if own or error.__cause__ is not None or error.__context__ is not None:
        lines = ["Traceback (most recent call last):\n"]
        lines += traceback.format_list(own)
        lines += traceback.format_exception_only(type(error), error)
        frame["trace"] = "".join(lines)[-MOST_LINE:]
    frame["e"] = message[-MOST_LINE:]
    return encode(frame).encode("utf-8", "replace")


def flush_logs(ctx: Context) -> None:
    logs = ctx._logs
    if logs is not None:
        stdout.finish(ctx, logs)
        stderr.finish(ctx, logs)


# The main thread.


def handle(message: dict[str, Any]) -> None:
    if "fn" in message:
        begin(message)
    elif "q" in message:
        deliver = waits.pop(message["q"], None)
        if deliver is not None:
            deliver(message)
    elif "file" in message:
        files[message["file"]] = File(message["file"], message["path"], message["source"])
    elif "def" in message:
        functions[message["def"]] = Function(message["function"])
    elif "cancel" in message:
        cancel(message["cancel"])
    elif "about" in message:
        abouts[message["about"]] = message["instance"]
    elif "forget" in message:
        live_state.pop(abouts.pop(message["forget"], {}).get("instance_id", ""), None)
    elif "exit" in message:
        sys.exit(0)


def cancel(id: int) -> None:
    ctx = calls.get(id)
    if ctx is None:
        return
    ctx._cancelled = True
    if ctx._task is not None:
        ctx._task.cancel()
    for q in ctx._waits or ():
        deliver = waits.pop(q, None)
        if deliver is not None:
            deliver({"q": q, "err": {"kind": "cancelled", "message": "the turn was cancelled"}})


def serve() -> None:
    while True:
        while ready:
            body = ready.popleft()
            handle(decode(str(body, "utf-8"))[0] if isinstance(body, bytes) else body)
        if pending or (loop.was_used and loop.has_work()):
            serve_loop()
        else:
            loop.was_used = False
            pull()


def serve_loop() -> None:
    def readable() -> None:
        pull()
        loop.stop()

    loop.add_reader(IN, readable)
    try:
        while pending or loop.has_work():
            loop.rest()
            loop.is_looping = True
            loop.run_forever()
            loop.is_looping = False
            while ready:
                body = ready.popleft()
                handle(decode(str(body, "utf-8"))[0] if isinstance(body, bytes) else body)
    finally:
        loop.is_looping = False
        loop.remove_reader(IN)


def in_child() -> None:
    """After a fork: the child is no worker. What it prints goes where its children's does."""
    global OUT
    for fd in (IN, OUT):
        try:
            os.close(fd)
        except OSError:
            pass
    OUT = -1
    sys.stdout = open(1, "w", closefd=False, errors="replace")
    sys.stderr = open(2, "w", closefd=False, errors="replace")


stdout = LogText("stdout", 1)
stderr = LogText("stderr", 2)
__file__ = "<tenure worker>"


def main(package: str) -> None:
    global IN, OUT, loop
    IN = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 64)
    OUT = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 64)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    os.register_at_fork(after_in_child=in_child)

    tenure.__file__ = "<tenure>"
    sys.modules["tenure"] = tenure
    exec(compile(package, "<tenure>", "exec", dont_inherit=True), tenure.__dict__)

    loop = Loop()
    asyncio.set_event_loop(loop)
    threading.Thread(target=watch_host, name="tenure-host", daemon=True).start()
    # What is here now stays; nobody has to look at it again.
    gc.collect()
    gc.freeze()
    send({"ready": os.getpid()})
    sys.stdout = stdout
    sys.stderr = stderr
    serve()
