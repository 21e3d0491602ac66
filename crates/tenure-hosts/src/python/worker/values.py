# Values as hooks see them.


class Fields(dict[str, Any]):
    """An object of JSON whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        return lifted(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def lifted(owner: dict[str, Any], name: str, value: Any) -> Any:
    """The value with attributes; kept in its owner, so that changes to it are changes there."""
    if type(value) is dict:
        value = owner[name] = Fields(value)
    elif type(value) is list:
        value[:] = [Fields(it) if type(it) is dict else it for it in value]
    return value


# Which worker this is. What lived in another one is never taken for something that lives here.
LIFE = os.urandom(6).hex()
UNSAID: Any = object()
# The host reads integers of 64 bits, and 128 levels of lists and objects with those of the frame.
INTEGERS = range(-(1 << 63), 1 << 64)
MOST_DEPTH = 100
TOO_DEEP = f"it has more than {MOST_DEPTH} levels of lists and objects, or contains itself"
LONG_NUMBER = re.compile(r"\d{19}")


class Unfit(ValueError):
    """A value that is JSON to Python, and cannot be read by others."""


def encoded(value: Any) -> str:
    """The value as JSON that every reader takes. Raises what `encode` does for what is not JSON."""
    try:
        text = encode(value)
    except (RecursionError, ValueError) as error:
        if is_deep(value):
            raise Unfit(TOO_DEEP) from None
        if isinstance(error, ValueError):
            raise Unfit(f"JSON has no such number: {error}") from None
        raise
    if LONG_NUMBER.search(text):
        no_long_integer(value)
    if text.count("[") + text.count("{") > MOST_DEPTH and is_deep(value):
        raise Unfit(TOO_DEEP)
    return text


def no_long_integer(value: Any) -> None:
    """Raises for an integer that others cannot read."""
    if isinstance(value, dict):
        for it in value.values():
            no_long_integer(it)
    elif isinstance(value, (list, tuple)):
        for it in value:
            no_long_integer(it)
    elif isinstance(value, int) and not isinstance(value, bool) and value not in INTEGERS:
        raise OverflowError(f"{str(value)[:20]}... is an integer of more than 64 bits")


def is_deep(value: Any) -> bool:
    """Whether it has more levels than others read, as has what contains itself."""
    level = [value]
    for _ in range(MOST_DEPTH):
        # By their ids, so that what contains itself several times does not grow.
        inner: dict[int, Any] = {}
        for it in level:
            if isinstance(it, dict):
                inner.update((id(one), one) for one in it.values())
            elif isinstance(it, (list, tuple)):
                inner.update((id(one), one) for one in it)
        if not inner:
            return False
        level = list(inner.values())
    return True


def as_data(value: Any) -> Any:
    """The JSON that others read of a value which only Python has: an enum, a set, an integer of any
    size, and what holds them. Raises for anything else, which is an object that lives here."""
    if isinstance(value, enum.Enum):
        return as_data(value.value)
    if isinstance(value, dict):
        return {as_key(as_data(key)): as_data(it) for key, it in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_data(it) for it in value]
    if isinstance(value, (set, frozenset)):
        return sorted((as_data(it) for it in value), key=encode)
    if value is None or isinstance(value, (str, bool, float)):
        return value
    if isinstance(value, int):
        return value if value in INTEGERS else str(value)
    raise TypeError(f"{type(value).__qualname__} is no data")


def as_key(key: Any) -> str:
    return key if isinstance(key, str) else encode(key)


def readable(value: Any) -> tuple[Any, str]:
    """What others read of a value, and its text."""
    try:
        return value, encoded(value)
    except Unfit:
        raise
    except NOT_JSON:
        if is_deep(value):
            raise Unfit(TOO_DEEP) from None
        data = as_data(value)
        return data, encoded(data)


class Stored(dict[str, Any]):
    """Values that outlive the call. Those that are not JSON stay alive in this worker.

    One that lived in another worker is not there, and whoever takes it all the same is told so.
    """

    def __init__(self, values: dict[str, Any], live: dict[Any, Any]) -> None:
        super().__init__()
        self._live = live
        self._base: dict[str, str] = {}
        self._lost: dict[str, dict[str, Any]] = {}
        # The live values as this call knows them: another one may put others in their place.
        self._own: dict[str, Any] = {}
        for key, value in values.items():
            if type(value) is dict and "$live" in value:
                mark = self._mark(key, value)
                if mark not in live:
                    self._lost[key] = value
                    continue
                self[key] = self._own[key] = live[mark]
            else:
                self[key] = value
            self._base[key] = encode(value)

    def __missing__(self, key: str) -> Any:
        if key in self._lost:
            raise self._loss(key)
        raise KeyError(key)

    def get(self, key: str, default: Any = UNSAID) -> Any:
        if default is UNSAID:
            return self[key] if key in self or key in self._lost else None
        return super().get(key, default)

    def pop(self, key: str, default: Any = UNSAID) -> Any:
        if key in self._lost and key not in self:
            loss = self._loss(key)
            self._forget(key)
            if default is UNSAID:
                raise loss
            return default
        return super().pop(key) if default is UNSAID else super().pop(key, default)

    def __delitem__(self, key: str) -> None:
        if key in self._lost and key not in self:
            self._forget(key)
        else:
            super().__delitem__(key)

    def _loss(self, key: str) -> BaseException:
        stand_in = self._lost[key]
        loss: BaseException = tenure.LostObject(key, stand_in["$live"], stand_in.get("by"))
        return loss

    def _forget(self, key: str) -> None:
        """Has a lost value removed with the next changes."""
        del self._lost[key]
        self._base[key] = ""

    def _mark(self, key: str, stand_in: dict[str, Any]) -> Any:
        """What a live value is kept under."""
        return key if stand_in.get("id") == LIFE else None

    def _keep(self, key: str, value: Any) -> dict[str, Any]:
        """Keeps a live value, and gives what stands in for it elsewhere."""
        base = self._base.get(key)
        if base is not None and base.startswith('{"$live":'):
            stand_in: dict[str, Any] = json.loads(base)
            if self._held(key, stand_in) is value:
                return stand_in
        stand_in = {"$live": type(value).__qualname__, "id": self._add(key, value)}
        ctx = current.get()
        if ctx is not None:
            function = ctx._function
            file = os.path.basename(files[function.file].path)
            stand_in["by"] = f"{file}:{function.name}"
        return stand_in

    def _take_back(self, key: str) -> None:
        """Undoes the write of a value that cannot be kept."""
        base = self._base.get(key)
        if base:
            self[key] = self._known(key, base)
        else:
            del self[key]

    def _known(self, key: str, base: str) -> Any:
        """The value that the host knows by this text."""
        value = json.loads(base)
        if type(value) is dict and "$live" in value:
            return self._held(key, value)
        return value

    def _held(self, key: str, stand_in: dict[str, Any]) -> Any:
        """The live value that something stands in for."""
        return self._own.get(key)

    def _add(self, key: str, value: Any) -> str:
        """Keeps a live value, and gives its id."""
        self._live[key] = self._own[key] = value
        return LIFE

    def _drop(self, key: str) -> None:
        self._live.pop(key, None)

    def changes(self) -> tuple[dict[str, Any], list[str]]:
        """What changed since the last time, and what is gone."""
        patch: dict[str, Any] = {}
        base = self._base
        # Another function of the chat may write at the same time.
        for key, value in list(self.items()):
            try:
                value, text = readable(value)
            except Unfit as error:
                self._take_back(key)
                raise Unfit(f"`{key}` cannot be kept: {error}") from None
            except NOT_JSON:
                value = self._keep(key, value)
                text = encode(value)
            else:
                if base.get(key) != text:
                    self._drop(key)
            if base.get(key) != text:
                base[key] = text
                patch[key] = value
        gone = [key for key in base if key not in self]
        for key in gone:
            self._drop(key)
            del base[key]
        return patch, gone


class Kept(Stored):
    """The variables of what is no chat: only this worker has them, and keeps them all."""

    def changes(self) -> tuple[dict[str, Any], list[str]]:
        return {}, []


numbered = iter(range(1, 1 << 62))
# How many live values of a chat are kept although no variable stands for them any more.
MOST_UNNAMED = 64


class Shared(Stored):
    """The variables of a chat: one object for all of its functions in this worker, so that each
    sees at once what the others write.

    A live value has an id, and the chat says which one counts: if what a call wrote is refused, the
    value from before is still the one.
    """

    def __init__(self) -> None:
        super().__init__({}, {})
        self._at = -1
        # The number of the patch that a key was last sent with.
        self._sent: dict[str, int] = {}
        self._patches = 0
        # The call that has written a key, until the host is told.
        self._writers: dict[str, Any] = {}

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self._writers[key] = current.get()

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._writers[key] = current.get()

    def pop(self, key: str, default: Any = UNSAID) -> Any:
        value = super().pop(key, default)
        self._writers[key] = current.get()
        return value

    def update(self, *others: Any, **more: Any) -> None:
        for key, value in dict(*others, **more).items():
            self[key] = value

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def undo(self, ctx: Context) -> None:
        """Takes back what a call has written that failed, in place too, and that nobody else has
        written since."""
        for key in {*self, *self._base}:
            if self._writers.get(key, ctx) is not ctx:
                continue
            base = self._base.get(key)
            self._writers.pop(key, None)
            if not base:
                dict.pop(self, key, None)
            elif key not in self._lost and not self._is_as(key, base):
                dict.__setitem__(self, key, self._known(key, base))

    def _is_as(self, key: str, base: str) -> bool:
        """Whether a value is the one that the host knows, which then keeps its type."""
        if key not in self:
            return False
        try:
            return readable(self[key])[1] == base
        except NOT_JSON:
            return base.startswith('{"$live":')

    def merge(self, values: dict[str, Any], at: int, seen: dict[str, int]) -> None:
        """Takes over what changed elsewhere. `at` says how new the values are, `seen` which patch
        of this worker the host has last decided on, by key: what was sent since counts more."""
        if at < self._at:
            return
        self._at = at
        base = self._base
        for key, value in values.items():
            text = encode(value)
            if base.get(key) == text or self._sent.get(key, 0) > seen.get(key, 0):
                continue
            base[key] = text
            self._lost.pop(key, None)
            if type(value) is dict and "$live" in value:
                mark = self._mark(key, value)
                if mark not in self._live:
                    dict.pop(self, key, None)
                    self._lost[key] = value
                    continue
                value = self._live[mark]
            dict.__setitem__(self, key, value)
        gone = [it for it in base if it not in values and self._sent.get(it, 0) <= seen.get(it, 0)]
        for key in gone:
            del base[key]
            self._lost.pop(key, None)
            dict.pop(self, key, None)
        if len(self._live) > MOST_UNNAMED:
            named = {it.get("id") for it in values.values() if type(it) is dict and "$live" in it}
            for id in list(self._live)[:-MOST_UNNAMED]:
                if id not in named:
                    del self._live[id]

    def changes(self) -> tuple[dict[str, Any], list[str]]:
        patch, gone = super().changes()
        self._writers.clear()
        if patch or gone:
            self._patches += 1
            self._sent.update(dict.fromkeys((*patch, *gone), self._patches))
        return patch, gone

    def _mark(self, key: str, stand_in: dict[str, Any]) -> Any:
        return stand_in.get("id")

    def _held(self, key: str, stand_in: dict[str, Any]) -> Any:
        return self._live.get(stand_in.get("id"))

    def _add(self, key: str, value: Any) -> str:
        id = f"{LIFE}-{next(numbered)}"
        self._live[id] = value
        return id

    def _drop(self, key: str) -> None:
        """It goes when no variable has stood for it for a while."""


class Chat:
    """What the functions of one chat share in this worker."""

    def __init__(self) -> None:
        self.data = Shared()
        self.variables = Variables(self.data)
        # Held to read and write what the host knows.
        self.lock = threading.Lock()
        # Held by the plain function that has the variables: such functions run one after the other.
        self.turn = threading.Lock()


chats: dict[str, Chat] = {}
own_variables: dict[str, Variables] = {}


def chat_of(id: str) -> Chat:
    chat = chats.get(id)
    return chats.setdefault(id, Chat()) if chat is None else chat


# What the platform says of a chat, and nothing else may change.
SYSTEM_KEYS = ("workflow_name", "app_id", "chat_id", "user_id")


class Variables:
    """The context variables, as a mapping and as `.data`."""

    def __init__(self, data: Optional[dict[str, Any]] = None) -> None:
        self._data: Any = data if isinstance(data, Stored) else Kept(data or {}, {})

    @property
    def data(self) -> Any:
        return self._data

    @data.setter
    def data(self, data: dict[str, Any]) -> None:
        if data is not self._data:
            given = dict(data)
            self.clear()
            self._data.update(given)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Variables:
        return cls(dict(data))

    def to_dict(self) -> dict[str, Any]:
        return dict(self._data)

    def get(self, key: str, default: Any = UNSAID) -> Any:
        return self._data.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self._data[key] = value

    def update(self, other: Any = (), **more: Any) -> None:
        self._data.update(other.data if isinstance(other, Variables) else other, **more)

    def contains(self, key: str) -> bool:
        return key in self._data

    def remove(self, key: str) -> bool:
        was_there = key in self._data or key in self._data._lost
        self._data.pop(key, None)
        return was_there

    def clear(self) -> None:
        """Removes all variables but those that are the platform's own."""
        for key in [*self._data, *self._data._lost]:
            if key not in SYSTEM_KEYS:
                del self._data[key]

    def keys(self) -> Any:
        return self._data.keys()

    def values(self) -> Any:
        return self._data.values()

    def items(self) -> Any:
        return self._data.items()

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._data[key] = value

    def __delitem__(self, key: str) -> None:
        del self._data[key]

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __iter__(self) -> Any:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"ContextVariables({dict(self._data)!r})"


class Result:
    """What `next` gave. Unchanged, it is handed on as it is."""

    _q: int
    _said: str
    _keys: tuple[str, ...] = ()

    def __init__(self, q: int, value: dict[str, Any]) -> None:
        self._q = q
        self.__dict__.update((key, lifted(value, key, it)) for key, it in value.items())
        self._keys = tuple(value)
        self._said = encode(self._value())

    def _value(self) -> dict[str, Any]:
        return {key: self.__dict__[key] for key in self._keys}

    def __str__(self) -> str:
        return str(self.__dict__.get("content", self.__dict__.get("text", "")))

    def __repr__(self) -> str:
        return f"Result({self._value()!r})"
