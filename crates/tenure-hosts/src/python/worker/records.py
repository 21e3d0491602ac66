# Values of JSON as classes with fields: dataclasses, named tuples, typed dicts, models.

# Stand for a default where there is none: of a field that has to be there, and of one that has not.
NEEDED: Any = object()
ABSENT: Any = object()
# The name of a field, its annotation, and its default.
Field = tuple[str, Any, Any]


def of_fields(kind: Any, fields: Callable[[], list[Field]], make_one: Any, is_closed: bool) -> Way:
    """A class that is made of an object with these fields. A class may hold itself, so they are
    looked at when the first is made."""
    name = kind.__name__
    wanted = f"an object ({name})"
    ways: dict[str, tuple[Way, Any]] = {}

    def make(value: Any) -> Any:
        if not ways:
            try:
                ways.update((it, (converter(hint), default)) for it, hint, default in fields())
            except Exception as error:
                why = f"and an annotation of it cannot be resolved: {describe(error)}"
                raise Misfit(f"must be {wanted}, {why}") from None
        if type(value) is list and hasattr(kind, "_fields") and len(value) <= len(ways):
            value = dict(zip(ways, value))
        if type(value) is not dict:
            raise wrong(wanted, value)
        made = {}
        for key, it in value.items():
            if key in ways:
                way, default = ways[key]
                made[key] = it if same(it, default) else within(key, way, it)
            elif is_closed:
                known = ", ".join(f"`{it}`" for it in ways) or "none"
                raise Misfit(f"is unknown; there are {known}", key)
            else:
                made[key] = it
        for key, (way, default) in ways.items():
            if default is NEEDED and key not in made:
                raise Misfit(f"is missing; it must be {way.wanted}", key)
        try:
            return make_one(made)
        except Exception as error:
            raise refused(name, error) from None

    return Way(wanted, make)


def refused(name: str, error: BaseException) -> Misfit:
    """What a class said to the values that it was to be made of."""
    told: Any = getattr(error, "errors", None)
    if not isinstance(error, ValueError) or not callable(told):
        return Misfit(f"cannot be a {name}: {describe(error)}")
    first = told()[0]
    path = [it if isinstance(it, int) else str(it) for it in reversed(first["loc"])]
    if first["type"] in ("missing", "value_error.missing"):
        return Misfit("is missing", *path)
    input = f", but is {found(first['input'])}" if "input" in first else ""
    return Misfit(f"cannot be taken: {first['msg']}{input}", *path)


def hints_of(kind: Any, arguments: tuple[Any, ...] = ()) -> dict[str, Any]:
    """The annotations of a class, with what its type variables stand for."""
    if sys.version_info < (3, 11):
        for base in kind.__mro__:
            rewrite(base.__dict__.get("__annotations__", {}))
    hints = typing.get_type_hints(kind, include_extras=True)
    given = dict(zip(getattr(kind, "__parameters__", ()), arguments))

    def filled(hint: Any) -> Any:
        if isinstance(hint, typing.TypeVar):
            return given.get(hint, Any)
        inner = getattr(hint, "__parameters__", ())
        return hint[tuple(given.get(it, Any) for it in inner)] if inner else hint

    return {name: filled(hint) for name, hint in hints.items()} if given else hints


def fields_of_call(kind: Any, arguments: tuple[Any, ...]) -> list[Field]:
    """The fields of a dataclass: whatever its `__init__` takes."""
    hints = hints_of(kind, arguments)
    return [
        (name, hints.get(name, Any), NEEDED if it.default is it.empty else it.default)
        for name, it in inspect.signature(kind).parameters.items()
    ]


def fields_of_tuple(kind: Any, arguments: tuple[Any, ...]) -> list[Field]:
    hints, defaults = hints_of(kind, arguments), kind._field_defaults
    return [(name, hints.get(name, Any), defaults.get(name, NEEDED)) for name in kind._fields]


def fields_of_dict(kind: Any, arguments: tuple[Any, ...]) -> list[Field]:
    fields = []
    for name, hint in hints_of(kind, arguments).items():
        origin = str(typing.get_origin(hint)).rpartition(".")[2]
        is_needed = name in kind.__required_keys__ and origin != "NotRequired"
        needed = is_needed or origin == "Required"
        fields.append((name, hint, NEEDED if needed else ABSENT))
    return fields


# Models of pydantic, where it is installed. It reads JSON by its own rules.


def by_pydantic(kind: Any, validate: Callable[[Any], Any]) -> Way:
    name = getattr(kind, "__name__", str(kind))

    def make(value: Any) -> Any:
        try:
            return validate(value)
        except Exception as error:
            raise refused(name, error) from None

    return Way(f"an object ({name})", make)


def adapter(hint: Any) -> Optional[Way]:
    """What pydantic makes of an annotation, if it can."""
    try:
        from pydantic import TypeAdapter  # type: ignore[import-not-found, unused-ignore]

        adapter = TypeAdapter(hint)
    except Exception:
        return None
    return by_pydantic(hint, lambda value: adapter.validate_json(encode(value)))


def is_model(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "model_validate_json")


def of_model(kind: Any) -> Optional[Way]:
    if is_model(kind):
        return by_pydantic(kind, lambda value: kind.model_validate_json(encode(value)))
    if hasattr(kind, "parse_obj") and hasattr(kind, "__fields__"):
        return by_pydantic(kind, kind.parse_obj)
    return adapter(kind) if hasattr(kind, "__pydantic_validator__") else None


def of_models(hint: Any, hints: tuple[Any, ...]) -> Optional[Way]:
    """Which of several models it is, is for pydantic to say."""
    models = [it for it in hints if it is not type(None)]
    return adapter(hint) if len(models) > 1 and all(map(is_model, models)) else None


def has_constraints(hint: Any) -> bool:
    libraries = ("pydantic", "annotated_types")
    return any(type(it).__module__.partition(".")[0] in libraries for it in hint.__metadata__)


def of_constraints(hint: Any) -> Optional[Way]:
    return adapter(hint) if has_constraints(hint) else None
