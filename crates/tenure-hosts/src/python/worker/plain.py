# Results as JSON.


def text_of_result(value: Any) -> str:
    made = in_json(value, str)
    if isinstance(made, str):
        return made
    try:
        return json.dumps(made, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        place = not_a_number(made)
        if place is None:
            raise error
        raise ValueError(f"the result has {place}, and JSON has no such number") from None


def in_json(value: Any, other: Callable[[Any], str]) -> Any:
    """A value as JSON, in the form in which an argument of its type is given. What has none is told
    by `other`."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if isinstance(value, enum.Enum):
        return told(value)
    if kind is list or kind is tuple:
        return [it if type(it) in SCALARS else in_json(it, other) for it in value]
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, type):
        return other(value)
    if isinstance(value, abc.Mapping):
        return {in_key(key, other): in_json(it, other) for key, it in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {it: in_json(getattr(value, it), other) for it in names_of_fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {it: in_json(getattr(value, it), other) for it in value._fields}
    if isinstance(value, (set, frozenset)):
        return in_json(in_order(value), other)
    if isinstance(value, (list, tuple, deque)):
        return [in_json(it, other) for it in value]
    if isinstance(value, bytes):
        return of_bytes(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    for name in ("isoformat", "tolist", "_asdict"):
        if hasattr(value, name):
            return in_json(getattr(value, name)(), other)
    if hasattr(value, "__fields__") and hasattr(value, "json"):
        return json.loads(value.json())
    if hasattr(value, "total_seconds"):
        return in_iso_duration(value)
    standard = {"Decimal": "decimal", "UUID": "uuid", "PurePath": "pathlib"}
    if any(standard.get(it.__name__) == it.__module__.partition("._")[0] for it in kind.__mro__):
        return str(value)
    return other(value)


def in_key(key: Any, other: Callable[[Any], str]) -> str:
    made = in_json(key, other)
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)


def names_of_fields(value: Any) -> list[str]:
    """The fields of a dataclass; variables of the class are among `__dataclass_fields__`, too."""
    return [
        it.name for it in value.__dataclass_fields__.values() if it._field_type.name == "_FIELD"
    ]


def in_order(values: Any) -> list[Any]:
    """The items of a set: the same set is always told alike, if its items can be compared."""
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        import base64

        return base64.b64encode(value).decode()


def in_iso_duration(value: Any) -> str:
    sign, value = ("-", -value) if value.total_seconds() < 0 else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06}".rstrip("0") if value.microseconds else ""
    days = f"{value.days}D" if value.days else ""
    parts = [(hours, f"{hours}H"), (minutes, f"{minutes}M")]
    parts.append((seconds or fraction, f"{seconds}{fraction}S"))
    clock = "".join(text for amount, text in parts if amount)
    if not days and not clock:
        clock = "0S"
    return f"{sign}P{days}" + (f"T{clock}" if clock else "")


def not_a_number(value: Any, place: str = "") -> Optional[str]:
    """The first number that JSON does not have, with its place."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"{value} at `{place}`" if place else f"{value}"
    if isinstance(value, dict):
        parts = ((f"{place}.{key}" if place else str(key), it) for key, it in value.items())
    elif isinstance(value, list):
        parts = ((f"{place}[{at}]", it) for at, it in enumerate(value))
    else:
        return None
    return next((it for at, one in parts if (it := not_a_number(one, at))), None)
