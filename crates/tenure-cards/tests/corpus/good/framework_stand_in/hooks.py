import fast_agent.core.logging
from fast_agent import hooks
from fast_agent.core.logging.logger import get_logger
from fast_agent.hooks import AgentLifecycleContext, HookContext, show_hook_message
from fast_agent.types import *
from mcp.types import CallToolResult, TextContent

logger = get_logger(__name__)


async def start(ctx: AgentLifecycleContext) -> None:
    from fast_agent.mcp.helpers.content_helpers import get_text
