"""Loggers whose calls take more than a text. What they say goes to Python's own loggers."""

from __future__ import annotations

import logging
from typing import Any, Optional


class Logger:
    """Says what happened, with its data behind it."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._log = logging.getLogger(namespace)

    def debug(self, message: str, name: Optional[str] = None, **data: Any) -> None:
        self._say(logging.DEBUG, message, data)

    def info(self, message: str, name: Optional[str] = None, **data: Any) -> None:
        self._say(logging.INFO, message, data)

    def warning(self, message: str, name: Optional[str] = None, **data: Any) -> None:
        self._say(logging.WARNING, message, data)

    def error(self, message: str, name: Optional[str] = None, **data: Any) -> None:
        self._say(logging.ERROR, message, data)

    def exception(self, message: str, name: Optional[str] = None, **data: Any) -> None:
        self._say(logging.ERROR, message, {"exc_info": True, **data})

    def progress(self, message: str, name: Optional[str] = None, **data: Any) -> None:
        self._say(logging.INFO, message, data)

    def _say(self, level: int, message: str, data: dict[str, Any]) -> None:
        exc_info = data.pop("exc_info", None)
        data.pop("context", None)
        inner = data.pop("data", None)
        if isinstance(inner, dict):
            data.update(inner)
        elif inner is not None:
            data["data"] = inner
        text = " ".join([str(message), *(f"{key}={value!r}" for key, value in data.items())])
        self._log.log(level, "%s", text, exc_info=exc_info)


def get_logger(namespace: str) -> Logger:
    """Gives the logger of this name."""
    return Logger(namespace)
