"""Parts of messages and tool calls, where the package itself is not installed."""

from mcp.types import CallToolRequest as CallToolRequest
from mcp.types import CallToolResult as CallToolResult
