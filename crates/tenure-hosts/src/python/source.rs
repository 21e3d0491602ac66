//! The program that a worker runs.

/// Reads the worker's source and what it is told at first, each behind its length. The latter is JSON: the
/// package that hooks import, as pairs of a name and a source, and the project.
pub(super) const BOOTSTRAP: &str = "\
import os
def r(n):
    b = b''
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: os._exit(70)
        b += c
    return b
def t(): return r(int.from_bytes(r(4), 'little')).decode()
exec(compile(t(), '<tenure worker>', 'exec')); main(t())
";

/// The worker: its parts, one behind the other, and as a text those that it compiles when it first
/// needs them. The order is also that of `scripts/python-checks`.
pub(super) const WORKER: &str = concat!(
    include_str!("worker/frames.py"),
    include_str!("worker/output.py"),
    include_str!("worker/values.py"),
    include_str!("worker/config.py"),
    include_str!("worker/later.py"),
    include_str!("worker/context.py"),
    include_str!("worker/questions.py"),
    include_str!("worker/project.py"),
    include_str!("worker/imports.py"),
    include_str!("worker/modules.py"),
    include_str!("worker/loop.py"),
    include_str!("worker/lane.py"),
    include_str!("worker/calls.py"),
    include_str!("worker/replies.py"),
    include_str!("worker/messages.py"),
    include_str!("worker/tool_hooks.py"),
    include_str!("worker/stand_ins.py"),
    include_str!("worker/workflow.py"),
    include_str!("worker/main.py"),
    "\nLATER = r'''",
    include_str!("worker/convert.py"),
    include_str!("worker/records.py"),
    include_str!("worker/hints.py"),
    include_str!("worker/plain.py"),
    "'''\n",
);

macro_rules! stand_in {
    ($name:literal, $path:literal) => {
        ($name, include_str!(concat!("../../../../python/stand_ins/", $path, ".py")))
    };
}

/// The package that hooks import: its modules by name, each behind those that it imports.
pub(super) const PACKAGE: [(&str, &str); 7] = [
    ("tenure.config", include_str!("../../../../python/tenure/config.py")),
    ("tenure.views", include_str!("../../../../python/tenure/views.py")),
    ("tenure.replies", include_str!("../../../../python/tenure/replies.py")),
    ("tenure.tools", include_str!("../../../../python/tenure/tools.py")),
    ("tenure.contexts", include_str!("../../../../python/tenure/contexts.py")),
    ("tenure.lifecycle", include_str!("../../../../python/tenure/lifecycle.py")),
    ("tenure", include_str!("../../../../python/tenure/__init__.py")),
];

/// The modules that stand in for those of frameworks which are not installed, by name.
///
/// Sources that were written for fast-agent import these. A worker imports them lazily, and only
/// where the package itself is not in its environment; `tenure check` reads them to know which
/// imports they can satisfy.
pub const STAND_INS: &[(&str, &str)] = &[
    stand_in!("fast_agent", "fast_agent/__init__"),
    stand_in!("fast_agent.agents.agent_types", "fast_agent/agents/agent_types"),
    stand_in!("fast_agent.constants", "fast_agent/constants"),
    stand_in!("fast_agent.context", "fast_agent/context"),
    stand_in!("fast_agent.core.exceptions", "fast_agent/core/exceptions"),
    stand_in!("fast_agent.core.logging.logger", "fast_agent/core/logging/logger"),
    stand_in!("fast_agent.hooks", "fast_agent/hooks/__init__"),
    stand_in!("fast_agent.hooks.history_trimmer", "fast_agent/hooks/history_trimmer"),
    stand_in!("fast_agent.hooks.hook_context", "fast_agent/hooks/hook_context"),
    stand_in!("fast_agent.hooks.hook_messages", "fast_agent/hooks/hook_messages"),
    stand_in!("fast_agent.hooks.lifecycle_hook_context", "fast_agent/hooks/lifecycle_hook_context"),
    stand_in!("fast_agent.hooks.lifecycle_hook_types", "fast_agent/hooks/lifecycle_hook_types"),
    stand_in!("fast_agent.interfaces", "fast_agent/interfaces"),
    stand_in!("fast_agent.llm.request_params", "fast_agent/llm/request_params"),
    stand_in!("fast_agent.mcp.helpers.content_helpers", "fast_agent/mcp/helpers/content_helpers"),
    stand_in!("fast_agent.mcp.prompt_message_extended", "fast_agent/mcp/prompt_message_extended"),
    stand_in!("fast_agent.mcp.prompt_serialization", "fast_agent/mcp/prompt_serialization"),
    stand_in!("fast_agent.types", "fast_agent/types/__init__"),
    stand_in!("fast_agent.types.conversation_summary", "fast_agent/types/conversation_summary"),
    stand_in!("fast_agent.types.llm_stop_reason", "fast_agent/types/llm_stop_reason"),
    stand_in!("mcp", "mcp/__init__"),
    stand_in!("mcp.types", "mcp/types"),
    stand_in!("mcp_types", "mcp_types/__init__"),
];
