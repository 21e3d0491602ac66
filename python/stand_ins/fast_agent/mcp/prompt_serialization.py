"""Conversations in files: JSON, or texts behind lines that say who speaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Union

from tenure_worker import Block, CallToolRequest, CallToolResult, PromptMessageExtended

SPEAKERS = {"---USER": "user", "---ASSISTANT": "assistant"}


def save_messages(messages: list[Any], file_path: Union[str, Path], **_: Any) -> None:
    """Writes a conversation."""
    path = Path(file_path)
    if path.suffix.lower() == ".json":
        said = {"messages": messages}
        text = json.dumps(said, default=as_json, indent=2, ensure_ascii=False)
    else:
        lines = {role: line for line, role in SPEAKERS.items()}
        text = "\n".join(f"{lines.get(it.role, '---USER')}\n{it.all_text()}" for it in messages)
    path.write_text(text, encoding="utf-8")


def load_messages(file_path: Union[str, Path]) -> list[Any]:
    """Reads a conversation."""
    path = Path(file_path)
    text = path.read_text(encoding="utf-8")
    if path.suffix.lower() == ".json":
        return [message(it) for it in json.loads(text)["messages"]]
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.strip() in SPEAKERS:
            found.append((SPEAKERS[line.strip()], []))
        elif found:
            found[-1][1].append(line)
    return [PromptMessageExtended(role, "\n".join(lines).strip()) for role, lines in found]


def as_json(value: Any) -> Any:
    if isinstance(value, Block):
        fields = value.model_dump().items()
        return {key: it for key, it in fields if it is not None and not key.startswith("_")}
    raise TypeError(f"a {type(value).__name__} cannot be written")


def message(said: dict[str, Any]) -> PromptMessageExtended:
    said = dict(said)
    calls, results = said.pop("tool_calls", None), said.pop("tool_results", None)
    content = said.pop("content", None) or []
    if isinstance(content, dict):
        content = [content]
    made = PromptMessageExtended(content=[part(it) for it in content], **said)
    if calls:
        made.tool_calls = {id: call(it) for id, it in calls.items()}
    if results:
        made.tool_results = {id: result(it) for id, it in results.items()}
    return made


def part(said: Any) -> Any:
    return Block(**said) if isinstance(said, dict) else said


def call(said: dict[str, Any]) -> CallToolRequest:
    return CallToolRequest(**said.get("params", said))


def result(said: dict[str, Any]) -> CallToolResult:
    more = {key: it for key, it in said.items() if key != "content"}
    return CallToolResult(content=[part(it) for it in said.get("content", [])], **more)
