"""Types and helpers for hooks and tools of Tenure that are written in Python.

A hook is a function that takes a context. What it returns decides. ``None`` goes on, except from a
guard (``policy: deny``), which has to return ``allow()`` or call ``next``: silence is no consent::

    from tenure import ToolContext, ToolResult, deny

    async def guard(ctx: ToolContext):
        if ctx.arguments.get("path", "").startswith("/etc"):
            return deny("not below /etc")
        return await ctx.next()

Nothing has to be installed for that: inside a worker ``import tenure`` always works. Install the
package where an editor or a type checker should know the types.
"""

from .config import Config, HookSpec
from .contexts import (
    CallContext,
    ChatContext,
    EndContext,
    HookContext,
    LifecycleContext,
    ModelContext,
    ResponseContext,
    SyncCallContext,
    SyncModelContext,
    SyncToolContext,
    ToolContext,
    TransitionContext,
    TurnContext,
)
from .lifecycle import (
    AgentLifecycleContext,
    AgentLifecycleHooks,
    AgentProtocol,
    LifecycleHookFunction,
    LifecycleTool,
    LifecycleToolManager,
    LifecycleTrigger,
)
from .replies import (
    Answer,
    Cancelled,
    Denied,
    LostObject,
    NextError,
    Reply,
    allow,
    approve,
    continue_with,
    deny,
    finish,
    jump,
    modify,
    reject,
)
from .tools import Effect, tool
from .views import (
    AgentContext,
    AgentRegistry,
    AgentView,
    ChatPoint,
    ContextVariables,
    Decision,
    ExecutionContext,
    Message,
    ModelResult,
    Outcome,
    Point,
    Request,
    Response,
    ToolCall,
    ToolInfo,
    ToolResult,
    ToolStatus,
    Usage,
)

__all__ = [
    "AgentContext",
    "AgentLifecycleContext",
    "AgentLifecycleHooks",
    "AgentProtocol",
    "AgentRegistry",
    "AgentView",
    "Answer",
    "CallContext",
    "Cancelled",
    "ChatContext",
    "ChatPoint",
    "Config",
    "ContextVariables",
    "Decision",
    "Denied",
    "Effect",
    "EndContext",
    "ExecutionContext",
    "HookContext",
    "HookSpec",
    "LifecycleContext",
    "LifecycleHookFunction",
    "LifecycleTool",
    "LifecycleToolManager",
    "LifecycleTrigger",
    "LostObject",
    "Message",
    "ModelContext",
    "ModelResult",
    "NextError",
    "Outcome",
    "Point",
    "Reply",
    "Request",
    "Response",
    "ResponseContext",
    "SyncCallContext",
    "SyncModelContext",
    "SyncToolContext",
    "ToolCall",
    "ToolContext",
    "ToolInfo",
    "ToolResult",
    "ToolStatus",
    "TransitionContext",
    "TurnContext",
    "Usage",
    "allow",
    "approve",
    "continue_with",
    "deny",
    "finish",
    "jump",
    "modify",
    "reject",
    "tool",
]
