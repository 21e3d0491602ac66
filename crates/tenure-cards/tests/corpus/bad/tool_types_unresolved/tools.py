from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from shapes import Circle, Sqare

if TYPE_CHECKING:
    from datetime import date
    from tenure import CallContext


def plan(day: date, shape: Sqare, other: Optional[Circel], ctx: CallContext):
    """Plans a day."""
