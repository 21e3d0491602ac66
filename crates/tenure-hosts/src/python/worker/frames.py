"""The worker: runs hooks and tools of Tenure that are written in Python.

It is started by the host, which sends it this source, and it uses the standard library alone. The
parts in this folder are one program, one behind the other: frames, output, values, config, later,
context, questions, project, imports, modules, loop, lane, calls, replies, messages, tool_hooks,
stand_ins, workflow, main; convert, records, hints and plain when they are needed. This one comes
first and has the imports of all.
Frames are a length in four bytes, little end first, and then JSON. They travel on pipes of their
own: what a hook prints becomes log lines and never touches them.

Every instance has a lane: a thread with an event loop and two pipes, on which all of its functions
run, plain ones and coroutines. The main thread runs none of them. It opens lanes and cancels calls,
so it answers whatever a function does, unless one holds the interpreter itself.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import contextvars
import copy
import datetime
import enum
import fcntl
import functools
import gc
import hashlib
import importlib.machinery
import importlib.util
import inspect
import io
import json
import linecache
import logging
import os
import re
import resource
import signal
import site
import socket
import sys
import threading
import traceback
import types
import typing
from array import array
from collections import OrderedDict, abc, deque
from queue import Empty, SimpleQueue
from typing import Any, Callable, Iterator, Optional, Union

MOST_FRAME = 64 << 20
MOST_LOG = 256 << 10
MOST_LINE = 16 << 10
# Lines of what was printed are never split in the middle of a frame of this size.
CHUNK = 1 << 16

tenure: Any = types.ModuleType("tenure")
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
scan: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]

NOT_JSON = (TypeError, ValueError, OverflowError, RecursionError)

current: contextvars.ContextVar[Optional[Context]] = contextvars.ContextVar(
    "tenure_call", default=None
)


# Frames.


def quick_encoder() -> Any:
    """What `JSONEncoder.encode` makes anew for every value, which takes longer than to use it."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    text: Any = json.encoder.encode_basestring
    try:
        return make(None, _encoder.default, text, None, ":", ",", False, False, False)
    except TypeError:
        return None


_pieces = quick_encoder()


def encode(value: Any) -> str:
    """The JSON of a value."""
    if _pieces is None:
        return _encoder.encode(value)
    try:
        return "".join(_pieces(value, 0))
    except RecursionError:
        # This one says whether the value contains itself.
        return _encoder.encode(value)


class Closed(BaseException):
    """The host has closed its end: nothing is left to be done here."""


class Pipe:
    """One end of a conversation with the host."""

    def __init__(self, fd: int, out: int) -> None:
        self.fd = fd
        self.out = out
        self.ready: deque[Union[bytes, dict[str, Any]]] = deque()
        self.part = bytearray()
        self.lock = threading.Lock()

    def write(self, body: bytes) -> None:
        """Sends one frame. What is said to a host that has given up its end is lost."""
        data = len(body).to_bytes(4, "little") + body
        try:
            with self.lock:
                sent = os.write(self.out, data)
                while sent < len(data):
                    sent += os.write(self.out, memoryview(data)[sent:])
        except (BrokenPipeError, ConnectionResetError):
            pass
        except OSError:
            # A hook has closed what is not its own. The host starts another worker.
            os._exit(70)

    def send(self, frame: dict[str, Any]) -> None:
        self.write(encode(frame).encode("utf-8", "replace"))

    def pull(self) -> Optional[bytes]:
        """Reads once, and waits for that. A frame that comes alone, which most do, is given back;
        else all that are whole go to `ready`."""
        try:
            chunk = self.read()
        except ConnectionResetError:
            chunk = b""
        except OSError:
            os._exit(70)
        size = len(chunk)
        part = self.part
        if not part and size > 4 and int.from_bytes(chunk[:4], "little") == size - 4:
            return chunk[4:]
        if not size:
            raise Closed
        part.extend(chunk)
        while len(part) >= 4:
            size = int.from_bytes(part[:4], "little") + 4
            if len(part) < size:
                break
            self.ready.append(bytes(part[4:size]))
            del part[:size]
        return None

    def read(self) -> bytes:
        return os.read(self.fd, CHUNK)

    def take(self) -> dict[str, Any]:
        """Waits for the next frame."""
        while not self.ready:
            alone = self.pull()
            if alone is not None:
                return decoded(alone)
        return decoded(self.ready.popleft())


def decoded(body: Union[bytes, dict[str, Any]]) -> dict[str, Any]:
    """A frame of the host's, which is one object."""
    if isinstance(body, dict):
        return body
    message: dict[str, Any] = scan(str(body, "utf-8"), 0)[0]
    return message


def end_group() -> None:
    """The host is gone: so is everything that was started here."""
    try:
        os.killpg(0, signal.SIGKILL)
    finally:
        os._exit(70)
