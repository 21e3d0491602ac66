"""Why a model stopped."""

from tenure_worker import LlmStopReason

__all__ = ["LlmStopReason"]
