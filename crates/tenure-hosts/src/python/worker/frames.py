"""The worker: runs hooks and tools of Tenure that are written in Python.

It is started by the host, which sends it this source, and it uses the standard library alone. The
parts in this folder are one program, one behind the other: frames, output, values, later, context,
questions, modules, loop, calls, replies, messages, tool_hooks, workflow, main; convert, records,
hints and plain when they are needed. This one comes first and has the imports of all.
Frames are a length in four bytes, little end first, and then JSON. They travel on descriptors of
their own: what a hook prints becomes log lines and never touches them.

While nothing waits, the main thread blocks in `read` and runs a call as it comes. It turns to the
event loop only for coroutines that are pending, and back when there are none.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import enum
import fcntl
import gc
import hashlib
import importlib.machinery
import inspect
import io
import json
import linecache
import logging
import os
import re
import select
import signal
import site
import sys
import threading
import traceback
import types
import typing
from collections import OrderedDict, abc, deque
from queue import SimpleQueue
from typing import Any, Callable, Optional, Union

MOST_FRAME = 64 << 20
MOST_LOG = 256 << 10
MOST_LINE = 16 << 10
# Lines of what was printed are never split in the middle of a frame of this size.
CHUNK = 1 << 16

IN = -1
# The same pipe once more, for when a hook has closed the first.
SPARE_IN = -1
OUT = -1
MAIN = threading.get_ident()

tenure: Any = types.ModuleType("tenure")
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
encode = _encoder.encode
scan: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
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


def decoded(body: Union[bytes, dict[str, Any]]) -> dict[str, Any]:
    """A frame of the host's, which is one object."""
    if isinstance(body, dict):
        return body
    message: dict[str, Any] = scan(str(body, "utf-8"), 0)[0]
    return message


def pull() -> Optional[bytes]:
    """Reads once, and waits for that. A frame that comes alone, which most do, is given back; else
    all that are whole go to `ready`."""
    global IN, SPARE_IN
    try:
        chunk = os.read(IN, CHUNK)
    except OSError:
        if SPARE_IN == -1:
            os._exit(70)
        IN, SPARE_IN = SPARE_IN, -1
        return None
    size = len(chunk)
    if not part and size > 4 and int.from_bytes(chunk[:4], "little") == size - 4:
        return chunk[4:]
    if not size:
        end_group()
    part.extend(chunk)
    while len(part) >= 4:
        size = int.from_bytes(part[:4], "little") + 4
        if len(part) < size:
            break
        ready.append(bytes(part[4:size]))
        del part[:size]
    return None


def end_group() -> None:
    """The host is gone: so is everything that was started here."""
    try:
        os.killpg(0, signal.SIGKILL)
    finally:
        os._exit(70)


def watch_host() -> None:
    """Waits, beside whatever hooks do, for the host to close its end."""
    for fd in (IN, SPARE_IN):
        poll = select.poll()
        poll.register(fd, 0)
        # One that a hook has closed meanwhile says nothing about the host.
        if not any(event & select.POLLNVAL for _, event in poll.poll()):
            end_group()
