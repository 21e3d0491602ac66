"""Opens something when an agent starts, and closes it when it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.core.logging.logger import get_logger
from fast_agent.hooks import AgentLifecycleContext, show_hook_message

if TYPE_CHECKING:
    from fast_agent.hooks import HookContext

logger = get_logger(__name__)


class Session:
    def __init__(self) -> None:
        self.turns = 0


async def open_session(ctx: AgentLifecycleContext) -> None:
    ctx.agent._session = Session()
    logger.info("session opened", data={"agent": ctx.agent_name})


async def report_turn(ctx: "HookContext") -> None:
    if not ctx.is_turn_complete:
        return
    ctx.agent._session.turns += 1
    show_hook_message(ctx, f"{len(ctx.message_history)} messages", hook_name="session")


async def close_session(ctx: AgentLifecycleContext) -> None:
    logger.info("session closed", turns=ctx.agent._session.turns)
