"""What a tool says of itself."""

from __future__ import annotations

from typing import Any, Callable, Literal, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

Effect = Literal["idempotent", "keyed", "at_most_once"]
"""What a crash means for a call of a tool that was under way.

``idempotent``
    Doing it twice is as good as doing it once: the call is made again.
``keyed``
    The call is made again with the same ``ctx.idempotency_key``, by which whoever does the work
    knows that it has been done.
``at_most_once``
    It is not made again: a person says what came of it. This is what counts if nothing is said.
"""


def tool(*, effect: Effect) -> Callable[[F], F]:
    """Says what a crash means for a call of this function. The function stays as it is.

    It is found in the source, which is read and not run: write the word itself::

        @tenure.tool(effect="keyed")
        async def send(to: str, ctx: tenure.CallContext) -> str: ...

    What a card says of the tool counts more.
    """

    def declared(function: F) -> F:
        return function

    return declared
