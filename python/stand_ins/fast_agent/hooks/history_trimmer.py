"""The hook that keeps of a turn its last tool call alone."""

from __future__ import annotations

from tenure_worker import LlmStopReason, PromptMessageExtended, ToolHookContext

from fast_agent.types.conversation_summary import split_into_turns


async def trim_tool_loop_history(ctx: ToolHookContext) -> None:
    """Keeps of the last turn what was asked, the last tool call with its result, and the answer."""
    turns = split_into_turns(ctx.message_history)
    if not ctx.is_turn_complete or not turns:
        return
    turn = turns[-1]
    calls = [at for at, it in enumerate(turn) if asks_for_tools(it)]
    if len(calls) < 2 or calls[-1] + 2 != len(turn) - 1:
        return
    kept = [turn[0], *turn[calls[-1] :]]
    ctx.load_message_history([*(it for before in turns[:-1] for it in before), *kept])


def asks_for_tools(message: PromptMessageExtended) -> bool:
    return message.role == "assistant" and message.stop_reason == LlmStopReason.TOOL_USE
