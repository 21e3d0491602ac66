"""The turns of a conversation."""

from __future__ import annotations

from tenure_worker import PromptMessageExtended


def split_into_turns(
    messages: list[PromptMessageExtended],
) -> list[list[PromptMessageExtended]]:
    """Splits a conversation. A turn begins where the user says something new."""
    turns: list[list[PromptMessageExtended]] = []
    for message in messages:
        if not turns or (message.role == "user" and not message.tool_results):
            turns.append([])
        turns[-1].append(message)
    return turns
