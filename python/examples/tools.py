"""Tools: their parameters become what their annotations say."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Optional

from tenure import CallContext, tool


class Size(Enum):
    SMALL = "small"
    BIG = "big"


@dataclass
class Item:
    """Something to order.

    Attributes:
        name: as the shop calls it
        price: for one of them
    """

    name: str
    price: Decimal
    size: Size = Size.SMALL
    parts: list[Item] = field(default_factory=list)


@dataclass
class Receipt:
    total: Decimal
    due: date


@tool(effect="keyed")
async def order(
    items: list[Item],
    due: Annotated[date, "the day by which everything has to be there"],
    patience: timedelta = timedelta(days=2),
    tags: Optional[set[str]] = None,
    *,
    ctx: CallContext,
) -> Receipt:
    """Orders things."""
    ctx.log(f"{ctx.idempotency_key}: {len(items)} items, tagged {sorted(tags or ())}")
    return Receipt(sum((item.price for item in items), Decimal(0)), due + patience)
