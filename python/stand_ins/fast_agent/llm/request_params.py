"""What steers a model."""

from __future__ import annotations

from typing import Any

from tenure_worker import Block


class RequestParams(Block):
    """Parameters of a request, by name."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
