# Files and functions.


class File:
    """A file as it was sent: compiled at once, run when it is first needed."""

    def __init__(self, number: int, path: str, source: str) -> None:
        self.number = number
        self.path = path
        self.module: Optional[types.ModuleType] = None
        self.code: Any = None
        self.text = source.encode()
        try:
            self.code = compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            pass
        # Found here and not at the first call, since a spare is sent its files before it is needed.
        self.real = project.real(path)
        self.name = module_name(self.real)
        self.spec = self.spec_as(self.name)
        # Others may import it too.
        project.sources.setdefault(self.real, self.text)

    def load(self) -> types.ModuleType:
        if self.module is not None:
            return self.module
        spec = self.spec
        known = sys.modules.get(self.name)
        if known is not None and getattr(known.__loader__, "text", None) != self.text:
            # The file was another one when it was imported, or sent for another function.
            spec = self.spec_as(f"{self.name}%{self.number}")
        self.module = loaded(spec)
        return self.module

    def spec_as(self, name: str) -> Any:
        spec = spec_of_file(self.real, name, self.path)
        spec.loader.text, spec.loader.code = self.text, self.code
        return spec


# Files come from the main thread, and are wanted by lanes.
files: dict[int, File] = {}
arrived = threading.Condition()
# One module is loaded at a time: one that is loaded may need another that waits for it.
loading = threading.RLock()


def file_of(number: int) -> File:
    """A file that the host has sent, on another way than this call."""
    wait_until(lambda: number in files)
    return files[number]


functions: dict[int, Function] = {}
EXTRAS: dict[str, Callable[[Context], Any]] = {
    "context_variables": lambda ctx: ctx.context_variables,
    "next": lambda ctx: ctx.next,
    "input": lambda ctx: ctx.input,
    "request": lambda ctx: ctx.request,
    "response": lambda ctx: ctx.response,
    "output": lambda ctx: ctx.output,
    "outcome": lambda ctx: ctx.outcome,
    "arguments": lambda ctx: ctx.arguments,
    "tool": lambda ctx: ctx.tool,
    "state": lambda ctx: ctx.state,
    "reason": lambda ctx: ctx.reason,
}


class Function:
    """A function of a file, and how it is called."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.file: int = message["file"]
        self.name: str = message["name"]
        self.is_async: bool = message["async"]
        takes: list[str] = message["takes"]
        self.takes_ctx = "ctx" in takes
        self.takes_variables = "context_variables" in takes
        named = [it for it in takes if it in EXTRAS]
        first = next((it for it in takes if it not in EXTRAS), None)
        self.ctx_name = first
        self.extras = [(it, EXTRAS[it]) for it in named]
        # Whether the context is all that it takes, which is usual.
        self.is_plain = first is not None and not named
        self.body: Any = None
        # How a tool's arguments become what its annotations say; None if they are that already.
        self.plan: Any = UNREAD

    def call(self, ctx: Context) -> Any:
        """Calls it as a hook: its first own parameter is the context, others go by their names."""
        if not self.extras:
            return self.body(ctx) if self.ctx_name is not None else self.body()
        named = {name: make(ctx) for name, make in self.extras}
        if self.ctx_name is not None:
            named[self.ctx_name] = ctx
        return self.body(**named)

    def resolve(self) -> None:
        with loading:
            body: Any = file_of(self.file).load()
        for part in self.name.split("."):
            body = getattr(body, part)
        if not callable(body):
            raise TypeError(f"`{self.name}` is not a function")
        self.body = body
