"""Types and helpers for hooks and tools of Tenure that are written in Python.

A hook is a function that takes a context. What it returns decides; ``None`` goes on::

    from tenure import ToolContext, ToolResult, deny

    async def guard(ctx: ToolContext):
        if ctx.arguments.get("path", "").startswith("/etc"):
            return deny("not below /etc")
        return await ctx.next()

Nothing has to be installed for that: inside a worker ``import tenure`` always works. Install the
package where an editor or a type checker should know the types.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Literal, Optional, Protocol, TypedDict, TypeVar, Union

__all__ = [
    "AgentContext",
    "AgentRegistry",
    "AgentView",
    "Answer",
    "Cancelled",
    "ChatContext",
    "Config",
    "ContextVariables",
    "Decision",
    "Denied",
    "EndContext",
    "ExecutionContext",
    "HookContext",
    "LifecycleContext",
    "Message",
    "ModelContext",
    "ModelResult",
    "NextError",
    "Outcome",
    "Point",
    "Reply",
    "Request",
    "Response",
    "ResponseContext",
    "SyncModelContext",
    "SyncToolContext",
    "ToolCall",
    "ToolContext",
    "ToolInfo",
    "ToolResult",
    "ToolStatus",
    "TransitionContext",
    "TurnContext",
    "Usage",
    "allow",
    "approve",
    "continue_with",
    "deny",
    "finish",
    "jump",
    "modify",
    "reject",
]

Point = Literal[
    "on_start",
    "on_shutdown",
    "before_chat",
    "after_chat",
    "before_agent",
    "after_agent",
    "before_model",
    "wrap_model_call",
    "after_model",
    "wrap_tool_call",
    "on_transition",
]
Outcome = Literal[
    "ok", "denied", "failed", "cancelled", "timed_out", "panicked", "max_steps", "abandoned"
]
Decision = Literal["approve", "edit", "reject", "respond"]
ToolStatus = Literal["ok", "error", "denied", "cancelled", "not_executed"]

T = TypeVar("T")


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


# What a hook returns.


class ModifiedResponse(TypedDict, total=False):
    text: str
    calls: list[dict[str, Any]]


Reply = dict[str, Any]
"""A decision. Make it with one of the functions below."""


def allow() -> Reply:
    """Go on, said explicitly."""
    return {"allow": True}


def deny(reason: str) -> Reply:
    """What the hook stands before does not happen. At every begin and wrap."""
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


# What a hook gets to see.


class Config(Protocol):
    """How the agent is configured."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def model(self) -> Optional[str]: ...
    @property
    def instruction(self) -> Optional[str]: ...
    @property
    def max_steps(self) -> int: ...
    @property
    def use_history(self) -> bool: ...


class ExecutionContext(Protocol):
    """What the orchestrator says about the request. Its fields are attributes."""

    def __getattr__(self, name: str) -> Any: ...


class Usage(Protocol):
    """What model calls cost."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


class Message(Protocol):
    """A message of a conversation."""

    @property
    def role(self) -> Literal["system", "user", "assistant", "tool"]: ...
    def __getitem__(self, key: str) -> Any: ...
    def get(self, key: str, default: Any = None) -> Any: ...


class ToolCall(Protocol):
    """A tool call as the model asked for it."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any]: ...


class AgentView(Protocol):
    """Another agent, as it was when you asked."""

    @property
    def name(self) -> str: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def state(self) -> str: ...


class AgentContext(Protocol):
    """The agent that the hook runs in."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def config(self) -> Config: ...
    @property
    def phase(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def message_history(self) -> list[Any]: ...


class AgentRegistry(Protocol):
    """The agents that this one can see, by name."""

    def __getitem__(self, name: str) -> AgentView: ...
    def __contains__(self, name: object) -> bool: ...
    def get(self, name: str, default: Optional[AgentView] = None) -> Optional[AgentView]: ...


class ContextVariables(Protocol):
    """What the hooks and agents of a chat share. Changes are seen by whoever comes next."""

    @property
    def data(self) -> dict[str, Any]: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def set(self, key: str, value: Any) -> None: ...
    def __getitem__(self, key: str) -> Any: ...
    def __setitem__(self, key: str, value: Any) -> None: ...
    def __contains__(self, key: object) -> bool: ...


class HookContext(Protocol):
    """What every hook gets to see."""

    @property
    def agent(self) -> AgentContext: ...
    @property
    def agent_name(self) -> str: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def config(self) -> Config: ...
    @property
    def context(self) -> Optional[ExecutionContext]: ...
    @property
    def has_context(self) -> bool: ...
    @property
    def hook_type(self) -> Point: ...
    @property
    def trace_id(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def resumed(self) -> bool: ...
    @property
    def state(self) -> MutableMapping[str, Any]:
        """The agent's state. JSON values are the agent's; others stay alive in this worker."""
        ...

    @property
    def context_variables(self) -> ContextVariables: ...
    @property
    def agent_registry(self) -> AgentRegistry: ...
    def get_agent(self, name: str) -> Optional[AgentView]: ...
    def log(self, text: str) -> None: ...


class LifecycleContext(HookContext, Protocol):
    """``on_start`` and ``on_shutdown``."""

    @property
    def reason(self) -> Optional[str]:
        """Why the instance ends; ``None`` at ``on_start``."""
        ...


class ChatContext(HookContext, Protocol):
    """``before_chat``, and what every point inside a chat has."""

    def ask(
        self,
        prompt: Union[str, Mapping[str, Any]],
        action: Any = None,
        schema: Optional[Mapping[str, Any]] = None,
        expires: Optional[str] = None,
    ) -> Awaitable[Answer]: ...
    def step(
        self, name: str, effect: Union[Awaitable[T], Callable[[], Union[T, Awaitable[T]]]]
    ) -> Awaitable[T]: ...


class TurnContext(ChatContext, Protocol):
    """``before_agent``: assign to ``input`` to change it."""

    input: str

    @property
    def run_id(self) -> str: ...


class EndContext(HookContext, Protocol):
    """``after_agent`` and ``after_chat``: assign to ``output`` to change it."""

    output: Optional[str]

    @property
    def outcome(self) -> Outcome: ...
    @property
    def error(self) -> Optional[str]: ...
    @property
    def usage(self) -> Optional[Usage]: ...


class Request(Protocol):
    """A request to a model. What is changed counts for this call, or for ever after ``persist``."""

    instruction: Optional[str]
    messages: list[Any]

    @property
    def tools(self) -> list[Any]: ...
    @property
    def params(self) -> MutableMapping[str, Any]: ...


class Response(Protocol):
    """What a model answered."""

    @property
    def text(self) -> str: ...
    @property
    def calls(self) -> list[ToolCall]: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def stop(self) -> str: ...


class ModelContext(ChatContext, Protocol):
    """``before_model`` and ``wrap_model_call``."""

    @property
    def request(self) -> Request: ...
    def persist(self) -> None:
        """Keep the messages of the request as the history from here on. At ``before_model``."""
        ...

    def next(self, request: Optional[Mapping[str, Any]] = None) -> Awaitable[ModelResult]:
        """Make the call. At ``wrap_model_call``; as often as needed."""
        ...


class ResponseContext(ChatContext, Protocol):
    """``after_model``."""

    @property
    def response(self) -> Response: ...


class ModelResult(Protocol):
    """What ``next`` gives at ``wrap_model_call``. Return it, changed or not."""

    text: str
    calls: list[Any]

    @property
    def usage(self) -> Usage: ...
    @property
    def stop(self) -> str: ...


class ToolInfo(Protocol):
    """What a tool says of itself."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Optional[dict[str, Any]]: ...


class ToolResult(Protocol):
    """What ``next`` gives at ``wrap_tool_call``. Return it, changed or not."""

    content: str
    status: ToolStatus


class ToolCallContext(HookContext, Protocol):
    @property
    def tool(self) -> ToolInfo: ...
    @property
    def tool_name(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments. What is changed is what ``next`` is called with."""
        ...

    @property
    def approved(self) -> bool: ...


class ToolContext(ToolCallContext, Protocol):
    """``wrap_tool_call`` of an ``async def``."""

    def ask(
        self,
        prompt: Union[str, Mapping[str, Any]],
        action: Any = None,
        schema: Optional[Mapping[str, Any]] = None,
        expires: Optional[str] = None,
    ) -> Awaitable[Answer]: ...
    def step(
        self, name: str, effect: Union[Awaitable[T], Callable[[], Union[T, Awaitable[T]]]]
    ) -> Awaitable[T]: ...
    def next(self, arguments: Optional[Mapping[str, Any]] = None) -> Awaitable[ToolResult]: ...


class SyncToolContext(ToolCallContext, Protocol):
    """``wrap_tool_call`` of a plain ``def``: nothing is awaited."""

    def ask(
        self,
        prompt: Union[str, Mapping[str, Any]],
        action: Any = None,
        schema: Optional[Mapping[str, Any]] = None,
        expires: Optional[str] = None,
    ) -> Answer: ...
    def step(self, name: str, effect: Callable[[], T]) -> T: ...
    def next(self, arguments: Optional[Mapping[str, Any]] = None) -> ToolResult: ...


class SyncModelContext(HookContext, Protocol):
    """``wrap_model_call`` of a plain ``def``: nothing is awaited."""

    @property
    def request(self) -> Request: ...
    def ask(
        self,
        prompt: Union[str, Mapping[str, Any]],
        action: Any = None,
        schema: Optional[Mapping[str, Any]] = None,
        expires: Optional[str] = None,
    ) -> Answer: ...
    def step(self, name: str, effect: Callable[[], T]) -> T: ...
    def next(self, request: Optional[Mapping[str, Any]] = None) -> ModelResult: ...


class TransitionContext(HookContext, Protocol):
    """``on_transition``."""

    @property
    def from_phase(self) -> str: ...
    @property
    def to_phase(self) -> str: ...
    def request_shutdown(self) -> None: ...
