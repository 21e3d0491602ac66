"""An agent's configuration, as type hints name it."""

from __future__ import annotations

from enum import Enum
from typing import Literal, Optional, Protocol

ToolHooksConfig = Optional[dict[str, str]]
LifecycleHooksConfig = Optional[dict[Literal["on_start", "on_shutdown"], str]]


class AgentType(str, Enum):
    """The types of agents."""

    LLM = "llm"
    BASIC = "basic"
    CUSTOM = "custom"
    ORCHESTRATOR = "orchestrator"
    PARALLEL = "parallel"
    EVALUATOR_OPTIMIZER = "evaluator_optimizer"
    ROUTER = "router"
    CHAIN = "chain"
    ITERATIVE_PLANNER = "iterative_planner"
    MAKER = "maker"
    A2A = "a2a"


class AgentConfig(Protocol):
    """How an agent is configured."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def model(self) -> Optional[str]: ...
    @property
    def instruction(self) -> Optional[str]: ...
    @property
    def use_history(self) -> bool: ...
