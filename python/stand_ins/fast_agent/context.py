"""The execution context, as type hints name it."""

from __future__ import annotations

from typing import Any, Protocol


class Context(Protocol):
    """What the orchestrator says about the request. Its fields are attributes."""

    def __getattr__(self, name: str) -> Any: ...
