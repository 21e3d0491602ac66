"""What tool hooks are given."""

from __future__ import annotations

from typing import Any, Protocol

from tenure_worker import ToolHookContext as HookContext

from fast_agent.interfaces import AgentProtocol

__all__ = ["HookAgentProtocol", "HookContext", "HookRunner"]


class HookRunner(Protocol):
    """What runs the turn."""

    @property
    def iteration(self) -> int: ...
    @property
    def request_params(self) -> Any: ...


class HookAgentProtocol(AgentProtocol, Protocol):
    """The agent that the hook runs in."""

    def load_message_history(self, messages: Any) -> None: ...
    def get_agent(self, name: str) -> Any: ...
