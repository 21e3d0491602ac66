# Annotations, and the functions that have them.

class_ways: dict[Any, Way] = {}
UNIONS: tuple[Any, ...] = (Union, getattr(types, "UnionType", Union))
LISTS: dict[Any, Any] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection), list),
    **dict.fromkeys((set, abc.Set, abc.MutableSet), set),
    frozenset: frozenset,
    deque: deque,
}
DICTS: dict[Any, Any] = {
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), dict),
    OrderedDict: OrderedDict,
}
WRAPPERS = ("Required", "NotRequired", "ReadOnly", "Final")


def converter(hint: Any) -> Way:
    """The way from a value of JSON to what an annotation says."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return of_name(hint)
    if origin in UNIONS:
        return of_models(hint, arguments) or of_union(arguments)
    if origin is typing.Literal:
        return one_of(list(arguments))
    if hasattr(hint, "__metadata__"):
        return of_constraints(hint) or converter(arguments[0])
    if origin is tuple and arguments:
        if arguments[-1] is ...:
            return of_items(tuple, converter(arguments[0]))
        return of_places([converter(it) for it in arguments if it != ()])
    if origin in LISTS or origin is tuple:
        each = converter(arguments[0]) if arguments else ANYTHING
        return of_items(LISTS.get(origin, tuple), each)
    if origin in DICTS:
        key, each = (converter(it) for it in arguments or (Any, Any))
        return of_keys(DICTS[origin], key, each)
    if hasattr(origin, "__value__"):
        return converter(origin.__value__[arguments])
    if str(origin).rpartition(".")[2] in WRAPPERS:
        return converter(arguments[0])
    return of_class(origin, arguments)


def of_name(hint: Any) -> Way:
    if hint is None or hint is Any:
        return PLAIN_WAYS[type(hint) if hint is None else hint]
    if isinstance(hint, typing.TypeVar):
        return converter(hint.__bound__ or Any)
    for alias in ("__supertype__", "__value__"):
        # A NewType, and `type X = ...`.
        if hasattr(hint, alias):
            return converter(getattr(hint, alias))
    if not isinstance(hint, type):
        # An InitVar; anything else is no type at all.
        return converter(getattr(hint, "type", None)) if hasattr(hint, "type") else of_none(hint)
    way = class_ways.get(hint)
    if way is None:
        way = class_ways[hint] = PLAIN_WAYS.get(hint) or of_class(hint, ())
    return way


def of_class(kind: Any, arguments: tuple[Any, ...]) -> Way:
    if kind in LISTS or kind is tuple:
        return of_items(LISTS.get(kind, tuple), ANYTHING)
    if kind in DICTS:
        return of_keys(DICTS[kind], ANYTHING, ANYTHING)
    if not isinstance(kind, type) or kind is type:
        return of_none(kind)
    if issubclass(kind, enum.Enum):
        return one_of(list(kind), kind)
    model = of_model(kind)
    if model is not None:
        return model
    if hasattr(kind, "__dataclass_fields__"):
        return of_fields(
            kind, lambda: fields_of_call(kind, arguments), lambda it: kind(**it), is_closed=True
        )
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return of_fields(
            kind, lambda: fields_of_tuple(kind, arguments), lambda it: kind(**it), is_closed=True
        )
    if issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
        return of_fields(kind, lambda: fields_of_dict(kind, arguments), as_it_is, is_closed=False)
    return of_standard(kind) or of_none(kind)


def of_none(kind: Any) -> Way:
    """What no JSON becomes, unless it is one."""
    name = getattr(kind, "__name__", None) or str(kind)

    def make(value: Any) -> Any:
        if isinstance(kind, type) and kind is not type:
            try:
                if isinstance(value, kind):
                    return value
            except TypeError:
                pass
        raise Misfit(f"must be a {name}, and no JSON becomes one")

    return Way(f"a {name}", make)


def is_plain(hint: Any) -> bool:
    """Whether what JSON has is what an annotation says. The host has held it against the schema."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        inner = getattr(hint, "__supertype__", hint)
        return inner in OF_JSON if inner is hint else is_plain(inner)
    if origin is typing.Literal:
        return all(type(it) in SCALARS for it in arguments)
    if hasattr(hint, "__metadata__"):
        return not has_constraints(hint) and is_plain(arguments[0])
    if LISTS.get(origin) is list or origin in UNIONS:
        return all(map(is_plain, arguments))
    if DICTS.get(origin) is dict:
        key, each = arguments or (str, Any)
        return key in (str, Any) and is_plain(each)
    return False


def rewrite(annotations: dict[str, Any]) -> None:
    """Writes annotations that are texts so that old Pythons can evaluate them: 3.9 has no `|` for
    types, and 3.10 takes an `InitVar` for none."""
    import ast

    class Bars(ast.NodeTransformer):
        def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
            self.generic_visit(node)
            if not isinstance(node.op, ast.BitOr):
                return node
            sides = f"{ast.unparse(node.left)}, {ast.unparse(node.right)}"
            return ast.parse(f"__import__('typing').Union[{sides}]", mode="eval").body

    for name, text in annotations.items():
        if not isinstance(text, str):
            continue
        inner = re.fullmatch(r"(?:\w+\.)?InitVar\[(.*)\]", text, re.DOTALL)
        text = annotations[name] = inner[1] if inner else text
        if "|" in text and sys.version_info < (3, 10):
            annotations[name] = ast.unparse(Bars().visit(ast.parse(text, mode="eval")))


def resolved(annotation: Any, function: Any) -> Any:
    """An annotation as the module of its function understands it."""

    def stub() -> None: ...

    names = {it.__name__: it for it in getattr(function, "__type_params__", ())}
    stub.__annotations__ = {"it": annotation}
    if sys.version_info < (3, 11):
        rewrite(stub.__annotations__)
    return typing.get_type_hints(stub, function.__globals__, names, include_extras=True)["it"]


def unresolved(error: BaseException) -> Way:
    def make(value: Any) -> Any:
        raise Misfit(f"has an annotation that cannot be resolved: {describe(error)}")

    return Way("anything", make)


def parameters_of(function: Any) -> Any:
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF).parameters
    return inspect.signature(function).parameters


def conversions_of(body: Any) -> Optional[Callable[[dict[str, Any]], dict[str, Any]]]:
    """How arguments become what a function says; None if they are that already."""
    function = inspect.unwrap(body)
    if not isinstance(function, types.FunctionType):
        return None
    ways: dict[str, tuple[Way, Any]] = {}
    others: Optional[Way] = None
    parameters = parameters_of(function)
    for name, it in parameters.items():
        if name in GIVEN_BY_HOST or it.annotation is it.empty:
            continue
        try:
            hint = resolved(it.annotation, function)
            if is_plain(hint):
                continue
            way = converter(hint)
        except Exception as error:
            way = unresolved(error)
        if it.kind is it.VAR_KEYWORD:
            others = way
        else:
            ways[name] = (way, it.default)
    if not ways and others is None:
        return None

    def convert(arguments: dict[str, Any]) -> dict[str, Any]:
        made = dict(arguments)
        for name, value in arguments.items():
            if name in ways:
                way, default = ways[name]
                if not same(value, default):
                    made[name] = within(name, way, value)
            elif others is not None and name not in parameters:
                made[name] = within(name, others, value)
        return made

    return convert
