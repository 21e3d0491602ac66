"""Parts of messages and tool calls, where the package itself is not installed."""

from tenure_worker import CallToolRequest as CallToolRequest
from tenure_worker import CallToolRequestParams as CallToolRequestParams
from tenure_worker import CallToolResult as CallToolResult
from tenure_worker import TextContent as TextContent
