from typing import TYPE_CHECKING

import fast_agent.core.fastagent
from fast_agent.hooks import AgentLifecycleContext, save_session_history
from fast_agent.session import get_session_manager

if TYPE_CHECKING:
    from fast_agent.core.harness import AgentHarness

try:
    from fast_agent.ui.console_display import ConsoleDisplay
except ImportError:
    ConsoleDisplay = None


async def start(ctx: AgentLifecycleContext) -> None: ...
