"""Messages and what steers a model."""

from fast_agent.llm.request_params import RequestParams as RequestParams
from fast_agent.mcp.helpers.content_helpers import text_content as text_content
from fast_agent.mcp.prompt_message_extended import PromptMessageExtended as PromptMessageExtended
from fast_agent.types.conversation_summary import split_into_turns as split_into_turns
from fast_agent.types.llm_stop_reason import LlmStopReason as LlmStopReason
