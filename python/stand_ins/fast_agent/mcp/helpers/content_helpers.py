"""Parts of a message."""

from __future__ import annotations

from typing import Any

from tenure_worker import TextContent
from tenure_worker import text_of as get_text

__all__ = ["get_text", "is_text_content", "text_content"]


def text_content(text: str) -> TextContent:
    """Makes a part of a text."""
    return TextContent(text)


def is_text_content(content: Any) -> bool:
    """Whether a part is a text."""
    return get_text(content) is not None
