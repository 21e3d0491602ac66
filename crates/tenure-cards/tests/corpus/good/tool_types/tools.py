from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from elsewhere import Unknown
from orders.items import Item

if TYPE_CHECKING:
    from tenure import CallContext


def order(items: list[Item], due: date, receipt: Path | None = None, more: Unknown = None, ctx: CallContext = None):
    """Orders."""
