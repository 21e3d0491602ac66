"""Lines that a hook shows. They are lines of its log here."""

from __future__ import annotations

from typing import Any, Literal, Optional

HookKind = Literal["tool", "agent", "extension", "agent_startup", "agent_shutdown"]


def show_hook_message(
    target: Any,
    message: Any,
    *,
    hook_name: Optional[str] = None,
    hook_kind: HookKind = "tool",
    style: str = "",
) -> None:
    """Shows what a hook did."""
    text = str(message) if message is not None else ""
    said = ": ".join(part for part in (hook_name, text) if part)
    log = getattr(target, "log", print)
    log(said)


def show_hook_failure(
    target: Any,
    *,
    hook_name: Optional[str] = None,
    hook_kind: HookKind = "tool",
    error: Optional[BaseException] = None,
) -> None:
    """Shows that a hook failed."""
    why = f"hook failure: {error}" if error is not None else "hook failure"
    show_hook_message(target, why, hook_name=hook_name, hook_kind=hook_kind)
