"""Messages."""

from tenure_worker import PromptMessageExtended

__all__ = ["PromptMessageExtended"]
