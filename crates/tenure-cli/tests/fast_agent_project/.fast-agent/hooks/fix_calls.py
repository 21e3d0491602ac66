"""Corrects the names of tools that models make up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.core.logging.logger import get_logger

if TYPE_CHECKING:
    from fast_agent.hooks.hook_context import HookContext

logger = get_logger(__name__)

MEANT = {"exec": "execute", "shell": "execute", "run_command": "execute"}


async def fix_tool_names(ctx: "HookContext") -> None:
    for call in (ctx.message.tool_calls or {}).values():
        meant = MEANT.get(call.params.name)
        if meant is not None:
            logger.warning("corrected a tool's name", data={"from": call.params.name, "to": meant})
            call.params.name = meant
