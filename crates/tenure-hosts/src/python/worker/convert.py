# Values of JSON as what an annotation says: numbers, texts, choices and containers.


class Way:
    """A way from a value of JSON to what an annotation says: what it takes, and how it is made."""

    __slots__ = ("make", "wanted")

    def __init__(self, wanted: str, make: Callable[[Any], Any]) -> None:
        self.wanted = wanted
        self.make = make


def found(value: Any) -> str:
    """A value of JSON in words."""
    if value is None or isinstance(value, bool):
        return encode(value)
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return "the text " + encode(value if len(value) <= 200 else value[:200] + "…")
    return f"a list of {len(value)}" if isinstance(value, list) else "an object"


def wrong(wanted: str, value: Any) -> Misfit:
    return Misfit(f"must be {wanted}, but is {found(value)}")


# Numbers and texts.


def as_it_is(value: Any) -> Any:
    return value


def exactly(kind: type, wanted: str) -> Way:
    def make(value: Any) -> Any:
        if type(value) is kind:
            return value
        raise wrong(wanted, value)

    return Way(wanted, make)


def whole(value: Any) -> Any:
    # A number is whole however it is written.
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise wrong("an integer", value)


def number(value: Any) -> Any:
    try:
        if type(value) in (int, float):
            return float(value)
    except OverflowError:
        pass
    raise wrong("a number", value)


ANYTHING = Way("anything", as_it_is)
INTEGER = Way("an integer", whole)
PLAIN_WAYS: dict[Any, Way] = {
    str: exactly(str, "a text"),
    bool: exactly(bool, "true or false"),
    type(None): exactly(type(None), "null"),
    int: INTEGER,
    float: Way("a number", number),
    Any: ANYTHING,
    object: ANYTHING,
}


def in_iso(kind: Any, text: str) -> Any:
    # Before 3.11, `fromisoformat` knows no Z, and fractions of three or six digits alone.
    text = re.sub(r"[.,](\d+)", lambda it: "." + (it[1] + "00000")[:6], text)
    return kind.fromisoformat(re.sub(r"[Zz]$", "+00:00", text))


DURATION = re.compile(
    r"([+-]?)P(?=.)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?"
)


def in_duration(kind: Any, text: str) -> Any:
    parts = DURATION.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    sign, *amounts = parts.groups()
    weeks, days, hours, minutes = (int(it or 0) for it in amounts[:4])
    seconds = float((amounts[4] or "0").replace(",", "."))
    made = kind(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -made if sign == "-" else made


def in_decimal(kind: Any, value: Any) -> Any:
    # The shortest digits of a float are those that were written.
    made = kind(repr(value) if type(value) is float else value)
    if not made.is_finite():
        raise ValueError(value)
    return made


def called(kind: Any, value: Any) -> Any:
    return kind(value)


# By the name of a class: the types of JSON that become one, what they have to be, and how. The
# classes themselves are imported only by who uses them.
STANDARD: dict[str, tuple[tuple[type, ...], str, Callable[[Any, Any], Any]]] = {
    "datetime.datetime": ((str,), "a date and time such as 2026-01-31T09:30:00Z", in_iso),
    "datetime.date": ((str,), "a date such as 2026-01-31", lambda it, text: it.fromisoformat(text)),
    "datetime.time": ((str,), "a time such as 09:30:00", in_iso),
    "datetime.timedelta": ((str,), "a duration such as P1DT2H30M", in_duration),
    "decimal.Decimal": ((str, int, float), "a decimal number such as 12.50", in_decimal),
    "uuid.UUID": ((str,), "a UUID such as 6fa459ea-ee8a-3ca4-894e-db77e160355e", called),
    "pathlib.PurePath": ((str,), "a path", called),
    "builtins.bytes": ((str,), "a text", lambda it, text: it(text, "utf-8")),
    "builtins.str": ((str,), "a text", called),
    "builtins.int": ((int,), "an integer", called),
    "builtins.float": ((int, float), "a number", called),
    "builtins.dict": ((dict,), "an object", called),
    "builtins.list": ((list,), "a list", called),
    "builtins.set": ((list,), "a list", called),
    "builtins.frozenset": ((list,), "a list", called),
    "builtins.tuple": ((list,), "a list", called),
}


def of_standard(kind: type) -> Optional[Way]:
    """A class of Python's own, or one that is made like it."""
    for base in kind.__mro__:
        known = STANDARD.get(f"{base.__module__.partition('._')[0]}.{base.__qualname__}")
        if known is not None:
            return standard(kind, *known)
    return None


def standard(kind: type, types: tuple[type, ...], wanted: str, how: Any) -> Way:
    def make(value: Any) -> Any:
        try:
            if type(value) in types:
                return how(kind, value)
        except (ValueError, TypeError, ArithmeticError):
            pass
        raise wrong(wanted, value)

    return Way(wanted, make)


# Choices.


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def told(choice: Any) -> Any:
    """What stands for a choice in JSON: the value of a member, or its name if JSON has no such."""
    if isinstance(choice, enum.Enum):
        return choice.value if type(choice.value) in SCALARS else choice.name
    return choice.decode() if isinstance(choice, bytes) else choice


def one_of(choices: list[Any], kind: Any = None) -> Way:
    wanted = " or ".join(encode(told(it)) for it in choices)

    def make(value: Any) -> Any:
        for it in choices:
            if same(told(it), value):
                return it
        for it in choices:
            if isinstance(it, enum.Enum) and value == it.name:
                return it
        if kind is not None and type(value) in (int, str):
            # Flags together, and whatever `_missing_` of the class takes.
            try:
                return kind(value)
            except Exception:
                pass
        raise wrong(wanted, value)

    return Way(wanted, make)


# Containers.


def within(part: Union[str, int], way: Way, value: Any) -> Any:
    try:
        return way.make(value)
    except Misfit as error:
        error.path.append(part)
        raise


def gathered(kind: Any, made: Any) -> Any:
    try:
        return made if type(made) is kind else kind(made)
    except TypeError as error:
        raise Misfit(f"cannot be a {kind.__name__}: {describe(error)}") from None


def of_items(kind: Any, each: Way) -> Way:
    def make(value: Any) -> Any:
        if type(value) is not list:
            raise wrong("a list", value)
        return gathered(kind, [within(at, each, it) for at, it in enumerate(value)])

    return Way("a list", make)


def of_places(places: list[Way]) -> Way:
    wanted = f"a list of {len(places)}"

    def make(value: Any) -> Any:
        if type(value) is not list or len(value) != len(places):
            raise wrong(wanted, value)
        return tuple(within(at, way, value[at]) for at, way in enumerate(places))

    return Way(wanted, make)


def of_keys(kind: Any, key: Way, each: Way) -> Way:
    def key_of(text: str) -> Any:
        try:
            return key.make(text)
        except Misfit as error:
            # A key is a text, also where it stands for a number.
            try:
                return key.make(json.loads(text))
            except (Misfit, ValueError):
                raise Misfit(f"has a key that {error.what}", text) from None

    def make(value: Any) -> Any:
        if type(value) is not dict:
            raise wrong("an object", value)
        made = {key_of(text): within(text, each, it) for text, it in value.items()}
        return gathered(kind, made)

    return Way("an object", make)


def of_union(hints: tuple[Any, ...]) -> Way:
    ways = [converter(it) for it in hints]
    # What is a date alone is no moment.
    ways.sort(key=lambda way: way.wanted.startswith("a date and time"))
    wanted = " or ".join(dict.fromkeys(way.wanted for way in ways))
    as_they_are = tuple(it for it in hints if it in (int, float, bool, type(None)))

    def make(value: Any) -> Any:
        if type(value) in as_they_are:
            return value
        deepest: Optional[Misfit] = None
        for way in ways:
            try:
                return way.make(value)
            except Misfit as error:
                # The one that got furthest says best what is wrong.
                if error.path and (deepest is None or len(error.path) > len(deepest.path)):
                    deepest = error
        raise deepest or wrong(wanted, value)

    return Way(wanted, make)
