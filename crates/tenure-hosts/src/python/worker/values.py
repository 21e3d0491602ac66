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


class Config(Fields):
    """Fields of which some may be absent."""

    def __getattr__(self, name: str) -> Any:
        if name in ("model", "instruction", "temperature", "max_tokens") and name not in self:
            return None
        return super().__getattr__(name)


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


class Stored(dict[str, Any]):
    """Values that outlive the call. Those that are not JSON stay alive in this worker.

    One that lived in another worker is not there, and whoever takes it all the same is told so.
    """

    def __init__(self, values: dict[str, Any], live: dict[Any, Any]) -> None:
        super().__init__()
        self._live = live
        self._base: dict[str, str] = {}
        self._lost: dict[str, dict[str, Any]] = {}
        for key, value in values.items():
            if type(value) is dict and "$live" in value:
                mark = self._mark(key, value)
                if mark not in live:
                    self._lost[key] = value
                    continue
                self[key] = live[mark]
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
            if self._live.get(self._mark(key, stand_in)) is value:
                return stand_in
        stand_in = {"$live": type(value).__qualname__, "id": self._add(key, value)}
        ctx = current.get()
        if ctx is not None:
            function = ctx._function
            file = os.path.basename(files[function.file].path)
            stand_in["by"] = f"{file}:{function.name}"
        return stand_in

    def _add(self, key: str, value: Any) -> str:
        """Keeps a live value, and gives its id."""
        self._live[key] = value
        return LIFE

    def _drop(self, key: str) -> None:
        self._live.pop(key, None)

    def changes(self) -> tuple[dict[str, Any], list[str]]:
        """What changed since the last time, and what is gone."""
        patch: dict[str, Any] = {}
        base = self._base
        for key, value in self.items():
            try:
                text = encode(value)
            except NOT_JSON:
                value = self._keep(key, value)
                text = encode(value)
            else:
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
    """The variables of what is no chat: nobody else has them, so this worker keeps them all."""

    def __init__(self, live: dict[Any, Any]) -> None:
        super().__init__({}, live)
        self.update(live)

    def changes(self) -> tuple[dict[str, Any], list[str]]:
        self._live.clear()
        self._live.update(self)
        return {}, []


numbered = iter(range(1, 1 << 62))
# How many live values of a chat are kept although no variable stands for them any more.
MOST_UNNAMED = 64


class Shared(Stored):
    """The variables of a chat. A live value has an id, and the chat says which one counts: if what
    a call wrote is refused, the value from before is still the one."""

    def __init__(self, values: dict[str, Any], live: dict[Any, Any]) -> None:
        super().__init__(values, live)
        if len(live) > MOST_UNNAMED:
            named = {it.get("id") for it in values.values() if type(it) is dict and "$live" in it}
            for id in list(live)[:-MOST_UNNAMED]:
                if id not in named:
                    del live[id]

    def _mark(self, key: str, stand_in: dict[str, Any]) -> Any:
        return stand_in.get("id")

    def _add(self, key: str, value: Any) -> str:
        id = f"{LIFE}-{next(numbered)}"
        self._live[id] = value
        return id

    def _drop(self, key: str) -> None:
        """It goes when no variable has stood for it for a while."""


class Variables:
    """The context variables, as mappings and as `.data`."""

    def __init__(self, data: Stored) -> None:
        self.data = data

    def get(self, key: str, default: Any = UNSAID) -> Any:
        return self.data.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.data[key] = value

    def remove(self, key: str) -> bool:
        was_there = key in self.data or key in self.data._lost
        self.data.pop(key, None)
        return was_there

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.data[key] = value

    def __delitem__(self, key: str) -> None:
        del self.data[key]

    def __contains__(self, key: object) -> bool:
        return key in self.data

    def __iter__(self) -> Any:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


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
