from dataclasses import dataclass
from typing import Annotated, Literal, Optional


@dataclass
class Place:
    city: str
    zip: Optional[str] = None


def search(
    query: Annotated[str, "what to look for"],
    place: Place,
    tags: list[str] | None = None,
    order: Literal["new", "old"] = "new",
    limit: "int" = 10,
    **more,
):
    """Searches.

    :param tags: only these
    """
