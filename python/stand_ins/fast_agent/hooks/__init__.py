"""What hooks are given, and what they say with it."""

from fast_agent.hooks.history_trimmer import trim_tool_loop_history as trim_tool_loop_history
from fast_agent.hooks.hook_context import HookContext as HookContext
from fast_agent.hooks.hook_messages import show_hook_failure as show_hook_failure
from fast_agent.hooks.hook_messages import show_hook_message as show_hook_message
from fast_agent.hooks.lifecycle_hook_context import (
    AgentLifecycleContext as AgentLifecycleContext,
)
