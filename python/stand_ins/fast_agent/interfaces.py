"""Agents, as type hints name them."""

from __future__ import annotations

from typing import Any, Optional, Protocol


class AgentProtocol(Protocol):
    """An agent as a hook gets to see it. It cannot be sent messages."""

    @property
    def name(self) -> str: ...
    @property
    def config(self) -> Any: ...
    @property
    def message_history(self) -> list[Any]: ...


class LlmAgentProtocol(AgentProtocol, Protocol):
    """The same: every agent has a model."""


class FastAgentLLMProtocol(Protocol):
    """An agent's model, of which a hook knows the name."""

    @property
    def model_name(self) -> Optional[str]: ...
