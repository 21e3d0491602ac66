"""The lifecycle of an agent and of a workflow, under the names that other runtimes have for it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional, Protocol, Union

from .contexts import LifecycleContext
from .views import AgentContext, ContextVariables

AgentProtocol = AgentContext
"""The agent that a hook runs in: ``ctx.agent``."""

AgentLifecycleContext = LifecycleContext
"""What ``on_start`` and ``on_shutdown`` get to see."""


class LifecycleHookFunction(Protocol):
    """A hook for ``on_start`` or ``on_shutdown``: ``def`` or ``async def``."""

    __name__: str

    def __call__(self, ctx: AgentLifecycleContext, /) -> Union[None, Awaitable[None]]: ...


@dataclass(frozen=True)
class AgentLifecycleHooks:
    """The hooks of one agent that ``lifecycle_hooks`` of a card names."""

    on_start: Optional[LifecycleHookFunction] = None
    on_shutdown: Optional[LifecycleHookFunction] = None


LifecycleTrigger = Literal["before_chat", "after_chat", "before_agent", "after_agent"]


class LifecycleTool(Protocol):
    """An entry of ``lifecycle_tools``."""

    @property
    def trigger(self) -> LifecycleTrigger: ...
    @property
    def agent(self) -> Optional[str]:
        """The agent around whose turns it is called; ``None`` for all, and for the chat."""
        ...

    @property
    def file(self) -> str: ...
    @property
    def function(self) -> str: ...
    @property
    def description(self) -> Optional[str]: ...


class LifecycleToolManager(Protocol):
    """What calls the lifecycle tools of a workflow, in the order of the file.

    Tenure does that itself. This is its form, for functions that are written against one and for
    tests that stand in for it.
    """

    def load_lifecycle_tools(self) -> Sequence[LifecycleTool]: ...
    async def trigger_before_chat(self, context_variables: ContextVariables) -> Any: ...
    async def trigger_after_chat(self, context_variables: ContextVariables) -> Any: ...
    async def trigger_before_agent(
        self, agent_name: str, context_variables: ContextVariables
    ) -> Any: ...
    async def trigger_after_agent(
        self, agent_name: str, context_variables: ContextVariables
    ) -> Any: ...
