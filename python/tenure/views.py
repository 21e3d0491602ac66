"""What a hook gets to see: the parts of its context."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Literal, Optional, Protocol

from .config import Config

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
ChatPoint = Literal[
    "before_chat",
    "before_agent",
    "before_model",
    "wrap_model_call",
    "after_model",
    "wrap_tool_call",
]
"""The points inside a chat."""
Outcome = Literal[
    "ok", "denied", "failed", "cancelled", "timed_out", "panicked", "max_steps", "abandoned"
]
Decision = Literal["approve", "edit", "reject", "respond"]
ToolStatus = Literal["ok", "error", "denied", "cancelled", "not_executed"]


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
