"""The worker's own classes, as the modules beside this file import them."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Optional

class Block:
    def __init__(self, **fields: Any) -> None: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def model_dump(self, **options: Any) -> dict[str, Any]: ...

class TextContent(Block):
    type: str
    text: str
    def __init__(self, text: str = "", type: str = "text", **more: Any) -> None: ...

class CallToolRequestParams(Block):
    name: str
    arguments: Any

class CallToolRequest(Block):
    params: Any

class CallToolResult(Block):
    content: list[Any]
    isError: bool

class LlmStopReason(str, Enum):
    END_TURN = "endTurn"
    TOOL_USE = "toolUse"

class PromptMessageExtended(Block):
    role: str
    content: list[Any]
    tool_calls: Optional[dict[str, Any]]
    tool_results: Optional[dict[str, Any]]
    stop_reason: Any
    def __init__(self, role: str = "user", content: Any = None, **more: Any) -> None: ...
    def all_text(self) -> str: ...

class Context:
    """What a lifecycle hook gets."""

class ToolHookContext(Context):
    """What a tool hook gets."""

    @property
    def is_turn_complete(self) -> bool: ...
    @property
    def message_history(self) -> list[PromptMessageExtended]: ...
    def load_message_history(self, messages: Iterable[PromptMessageExtended]) -> None: ...

def text_of(block: Any) -> Optional[str]: ...
