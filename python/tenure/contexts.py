"""What a hook gets to see: its context, at each point."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Literal, Optional, Protocol, TypeVar, Union

from .config import Config
from .replies import Answer
from .views import (
    AgentContext,
    AgentRegistry,
    AgentView,
    ChatPoint,
    ContextVariables,
    ExecutionContext,
    ModelResult,
    Outcome,
    Point,
    Request,
    Response,
    ToolInfo,
    ToolResult,
    Usage,
)

T = TypeVar("T")


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
    def resumed(self) -> bool:
        """Whether this goes on where an earlier process stopped."""
        ...

    @property
    def delivery_id(self) -> Optional[str]:
        """At an end, its name: the same if the end is delivered again after a crash."""
        ...

    @property
    def state(self) -> MutableMapping[str, Any]:
        """The agent's state. JSON values are the agent's; others stay alive in this worker, and
        reading one that lived in another raises ``LostObject``."""
        ...

    @property
    def context_variables(self) -> ContextVariables: ...
    @property
    def agent_registry(self) -> AgentRegistry: ...
    def get_agent(self, name: str) -> Optional[AgentView]: ...
    def log(self, text: str) -> None: ...
    def secret(self, value: str) -> str:
        """Hides ``value`` from now on wherever the project shows, writes, sends or stores
        something, and returns it. For a secret that is made or fetched at run time; one of less
        than six characters is left alone."""
        ...


class LifecycleContext(HookContext, Protocol):
    """``on_start`` and ``on_shutdown``."""

    @property
    def hook_type(self) -> Literal["on_start", "on_shutdown"]: ...
    @property
    def reason(self) -> Optional[str]:
        """Why the instance ends; ``None`` at ``on_start``."""
        ...


class ChatContext(HookContext, Protocol):
    """``before_chat``, and what every point inside a chat has."""

    @property
    def hook_type(self) -> ChatPoint: ...
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
    def hook_type(self) -> Literal["before_agent"]: ...
    @property
    def run_id(self) -> str: ...


class EndContext(HookContext, Protocol):
    """``after_agent`` and ``after_chat``: assign to ``output`` to change it."""

    output: Optional[str]

    @property
    def hook_type(self) -> Literal["after_agent", "after_chat"]: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def error(self) -> Optional[str]: ...
    @property
    def usage(self) -> Optional[Usage]: ...


class ModelContext(ChatContext, Protocol):
    """``before_model`` and ``wrap_model_call``."""

    @property
    def hook_type(self) -> Literal["before_model", "wrap_model_call"]: ...
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
    def hook_type(self) -> Literal["after_model"]: ...
    @property
    def response(self) -> Response: ...


class ToolCallContext(HookContext, Protocol):
    @property
    def hook_type(self) -> Literal["wrap_tool_call"]: ...
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
    def hook_type(self) -> Literal["wrap_model_call"]: ...
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


class CallContext(ChatContext, Protocol):
    """The parameter ``ctx`` of a tool that is an ``async def``."""

    @property
    def hook_type(self) -> Literal["wrap_tool_call"]: ...
    @property
    def call_id(self) -> str: ...
    @property
    def idempotency_key(self) -> str:
        """Equal on every attempt at this call, and different for every other."""
        ...


class SyncCallContext(HookContext, Protocol):
    """The parameter ``ctx`` of a tool that is a plain ``def``: nothing is awaited."""

    @property
    def hook_type(self) -> Literal["wrap_tool_call"]: ...
    @property
    def call_id(self) -> str: ...
    @property
    def idempotency_key(self) -> str:
        """Equal on every attempt at this call, and different for every other."""
        ...

    def ask(
        self,
        prompt: Union[str, Mapping[str, Any]],
        action: Any = None,
        schema: Optional[Mapping[str, Any]] = None,
        expires: Optional[str] = None,
    ) -> Answer: ...
    def step(self, name: str, effect: Callable[[], T]) -> T: ...


class TransitionContext(HookContext, Protocol):
    """``on_transition``."""

    @property
    def hook_type(self) -> Literal["on_transition"]: ...
    @property
    def from_phase(self) -> str: ...
    @property
    def to_phase(self) -> str: ...
    def request_shutdown(self) -> None: ...
