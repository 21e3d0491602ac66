# Files and functions.


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python itself or to an installed package."""
    # Its folder counts: that is where the bytecode is, also of a file that is a link.
    return os.path.join(os.path.realpath(os.path.dirname(path)), "").startswith(INSTALLED)


INSTALLED = tuple(
    os.path.join(os.path.realpath(it), "")
    for it in (os.path.dirname(os.__file__), *site.getsitepackages())
)


def without_bytecode() -> None:
    """Has the project's modules run from their sources alone, and leaves no bytecode there.

    Nobody reads bytecode before it runs, and it need not say what the source beside it says.
    """
    sys.dont_write_bytecode = True
    from_source: Any = importlib.machinery.SourceFileLoader
    from_bytecode: Any = importlib.machinery.SourcelessFileLoader
    source_code, bytecode = from_source.get_code, from_bytecode.get_code

    def compiled(self: Any, name: str) -> Any:
        path = self.get_filename(name)
        if is_installed(path):
            return source_code(self, name)
        return self.source_to_code(self.get_data(path), path)

    def refused(self: Any, name: str) -> Any:
        path = self.get_filename(name)
        if is_installed(path):
            return bytecode(self, name)
        raise ImportError(
            f"{path} is bytecode, which is never run; the source is needed", name=name
        )

    from_source.get_code = compiled
    from_bytecode.get_code = refused


class File:
    """A file as it was sent: compiled at once, run when it is first needed."""

    def __init__(self, number: int, path: str, source: str) -> None:
        self.number = number
        self.path = path
        self.module: Optional[types.ModuleType] = None
        self.code: Any = None
        self.source = source
        try:
            self.code = compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            pass
        linecache.cache[path] = (len(source), None, source.splitlines(True), path)

    def load(self) -> types.ModuleType:
        if self.module is not None:
            return self.module
        code = self.code or compile(self.source, self.path, "exec", dont_inherit=True)
        folder = os.path.dirname(self.path)
        if folder not in sys.path:
            sys.path.append(folder)
        about = f"{self.number} {self.path}".encode("utf-8", "replace")
        module = types.ModuleType(f"tenure_hook_{hashlib.sha256(about).hexdigest()[:16]}")
        module.__file__ = self.path
        sys.modules[module.__name__] = module
        try:
            exec(code, module.__dict__)
        except BaseException:
            del sys.modules[module.__name__]
            raise
        self.module = module
        return module


# Files come from the main thread, and are wanted by lanes.
files: dict[int, File] = {}
arrived = threading.Condition()
# One module is loaded at a time: one that is loaded may need another that waits for it.
loading = threading.RLock()


def file_of(number: int) -> File:
    """A file that the host has sent, on another way than this call."""
    with arrived:
        arrived.wait_for(lambda: number in files)
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
