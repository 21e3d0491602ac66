"""What hooks raise."""

from __future__ import annotations


class FastAgentError(Exception):
    """An error with details."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(f"{message}\n\n{details}" if details else message)
        self.message = message
        self.details = details


class AgentConfigError(FastAgentError):
    """An agent that is not configured well."""


class ServerConfigError(FastAgentError):
    """A tool server that is not configured well."""


class ModelConfigError(FastAgentError):
    """A model that is not configured well."""
