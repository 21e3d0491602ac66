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
        if name in ("model", "instruction") and name not in self:
            return None
        return super().__getattr__(name)


def lifted(owner: dict[str, Any], name: str, value: Any) -> Any:
    """The value with attributes; kept in its owner, so that changes to it are changes there."""
    if type(value) is dict:
        value = owner[name] = Fields(value)
    elif type(value) is list:
        value[:] = [Fields(it) if type(it) is dict else it for it in value]
    return value


class Stored(dict[str, Any]):
    """Values that outlive the call. Those that are not JSON stay alive in this worker."""

    def __init__(self, values: dict[str, Any], live: dict[str, Any]) -> None:
        super().__init__()
        self._live = live
        self._base: dict[str, str] = {}
        for key, value in values.items():
            self._base[key] = encode(value)
            if type(value) is dict and "$live" in value:
                if key in live:
                    self[key] = live[key]
            else:
                self[key] = value
        for key in live:
            if key not in self._base:
                self[key] = live[key]

    def changes(self) -> dict[str, Any]:
        """What changed since the last time."""
        patch: dict[str, Any] = {}
        base, live = self._base, self._live
        for key, value in self.items():
            try:
                text = encode(value)
            except NOT_JSON:
                live[key] = value
                value = {"$live": type(value).__qualname__}
                text = encode(value)
            else:
                live.pop(key, None)
            if base.get(key) != text:
                base[key] = text
                patch[key] = value
        for key in [key for key in base if key not in self]:
            live.pop(key, None)
            if base[key] != "null":
                base[key] = "null"
                patch[key] = None
        return patch


class Variables:
    """The context variables, as mappings and as `.data`."""

    def __init__(self, data: Stored) -> None:
        self.data = data

    def get(self, key: str, default: Any = None) -> Any:
        return self.data.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.data[key] = value

    def remove(self, key: str) -> bool:
        return self.data.pop(key, self) is not self

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
