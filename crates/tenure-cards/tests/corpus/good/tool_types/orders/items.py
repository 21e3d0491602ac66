from dataclasses import dataclass, field
from enum import Enum


class Size(Enum):
    SMALL = "small"
    BIG = "big"


@dataclass
class Item:
    name: str
    size: Size = Size.SMALL
    parts: "list[Item]" = field(default_factory=list)
