"""What hooks and tools of fast-agent import, where fast-agent itself is not installed."""

from fast_agent.context import Context as Context
from fast_agent.types import LlmStopReason as LlmStopReason
from fast_agent.types import PromptMessageExtended as PromptMessageExtended
from fast_agent.types import RequestParams as RequestParams
from fast_agent.types import text_content as text_content
