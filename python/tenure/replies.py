"""What a hook returns, and what it raises and catches."""

from __future__ import annotations

from typing import Any, Literal, Optional, TypedDict

from .views import Decision, ToolCall


class Denied(Exception):
    """Raise it to refuse: what the hook stands before does not happen."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NextError(Exception):
    """What ``next`` raises when the rest of the chain failed. Catch it to recover."""

    def __init__(self, message: str, kind: str = "failed") -> None:
        super().__init__(message)
        #: One word: ``model``, ``denied``, ``timed_out``, ``hook`` and so on.
        self.kind = kind


class Cancelled(NextError):
    """What ``next``, ``ask`` and ``step`` raise after the turn was cancelled."""

    def __init__(self, message: str = "the turn was cancelled") -> None:
        super().__init__(message, "cancelled")


class LostObject(KeyError):
    """What reading a live object raises that was made in a Python process which has ended."""

    def __init__(self, key: str, kind: str, by: Optional[str] = None) -> None:
        #: The variable.
        self.key = key
        who = f"`{by}`" if by else "somebody"
        super().__init__(
            f"`{key}` is lost: {who} put a {kind} there in a Python process that has ended, and "
            "live objects end with their process. Declare `again_on_resume: true` for the hook or "
            "the lifecycle tool that makes it, so that it is called again when a run goes on; or "
            f'make it anew where `"{key}" in ...` says that it is not there'
        )

    def __str__(self) -> str:
        return str(self.args[0])


class Answer:
    """What a person said."""

    __slots__ = ("decision", "value")

    def __init__(self, decision: Decision, value: Any = None) -> None:
        self.decision: Decision = decision
        #: The edited action, the reason, or the text; ``None`` for a plain approval.
        self.value = value

    @property
    def approved(self) -> bool:
        """Whether it may be done, as it was asked or as it was edited."""
        return self.decision in ("approve", "edit")

    def __repr__(self) -> str:
        return f"Answer({self.decision!r}, {self.value!r})"


class ModifiedResponse(TypedDict, total=False):
    text: str
    calls: list[dict[str, Any]]


Reply = dict[str, Any]
"""A decision. Make it with one of the functions below."""


def allow() -> Reply:
    """Go on, said explicitly. A guard has to say so: one that returns nothing has failed."""
    return {"allow": True}


def deny(reason: str) -> Reply:
    """What the hook stands before does not happen. At every begin and wrap; return it."""
    return {"deny": reason}


def finish(output: str) -> Reply:
    """Stop here; this is the output. At ``before_chat``, ``before_agent``, ``before_model``."""
    return {"finish": output}


def approve() -> Reply:
    """Count what is pending as approved. At ``after_model``."""
    return {"approve": True}


def reject(reason: str) -> Reply:
    """Stop the turn as denied; the response is not committed. At ``after_model``."""
    return {"reject": reason}


def modify(text: Optional[str] = None, calls: Optional[list[ToolCall]] = None) -> Reply:
    """Go on with another text, or other tool calls. At ``after_model``."""
    changes: dict[str, Any] = {}
    if text is not None:
        changes["text"] = text
    if calls is not None:
        changes["calls"] = calls
    return {"modify": changes}


def jump(target: Literal["model", "end"]) -> Reply:
    """Skip the tool calls, and ask the model again or end the turn. At ``after_model``."""
    return {"jump": target}


def continue_with(message: str) -> Reply:
    """Go on as if the user had said this. At ``after_agent``, at most once in a turn."""
    return {"continue": message}
