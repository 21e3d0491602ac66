# What is compiled when it is first needed: most workers run no function that needs it.

# The parts convert, records, hints and plain. The host puts their source here.
LATER = ""
later_lock = threading.Lock()
UNREAD: Any = object()
GIVEN_BY_HOST = ("ctx", "context_variables")
SCALARS = (str, bool, int, float, type(None))
# What JSON has, and so needs no conversion.
OF_JSON: tuple[Any, ...] = (*SCALARS, None, Any, object, list, dict)


def load_later() -> None:
    global LATER
    with later_lock:
        if LATER:
            exec(compile(LATER, __file__, "exec"), globals())
            LATER = ""


class Misfit(Exception):
    """Why an argument cannot become what its annotation says, with its place."""

    def __init__(self, what: str, *path: Union[str, int]) -> None:
        super().__init__(what)
        self.what = what
        # From the inside out.
        self.path: list[Union[str, int]] = list(path)

    def __str__(self) -> str:
        place = ""
        for part in reversed(self.path):
            if isinstance(part, int):
                place += f"[{part}]"
            else:
                place += f".{part}" if place else part
        return f"argument `{place}` {self.what}"


def plan_of(body: Any) -> Optional[Callable[[dict[str, Any]], dict[str, Any]]]:
    """How arguments become what a function's annotations say; None if they are that already."""
    try:
        annotations: dict[str, Any] = getattr(body, "__annotations__", {})
        own = (it for name, it in annotations.items() if name not in (*GIVEN_BY_HOST, "return"))
        plain = all(any(it is kind for kind in OF_JSON) for it in own)
    except Exception:
        # Since Python 3.14 they are evaluated here, those of no interest too.
        plain = False
    if plain and not hasattr(body, "__wrapped__"):
        return None
    load_later()
    return conversions_of(body)


def tool_text(value: Any) -> str:
    """What a model reads of what a tool returned: a text as it is, anything else as JSON."""
    if type(value) is str:
        return value
    load_later()
    return text_of_result(value)
