# What hooks print.


class LogBytes(io.RawIOBase):
    """What `sys.stdout.buffer` is."""

    def __init__(self, text: LogText) -> None:
        super().__init__()
        self.text = text

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raw = bytes(data)
        self.text.write(raw.decode("utf-8", "replace"))
        return len(raw)


class LogText(io.TextIOBase):
    """What `sys.stdout` and `sys.stderr` are: each line is a frame of the call that printed it."""

    def __init__(self, stream: str, fd: int) -> None:
        super().__init__()
        self.stream = stream
        self.fd = fd
        self.buffer = LogBytes(self)
        self.stray: dict[str, Any] = {}

    encoding = "utf-8"
    errors = "replace"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self.fd

    def write(self, text: str) -> int:
        ctx = current.get()
        if ctx is not None and ctx._over:
            ctx = None
        if ctx is None:
            logs = self.stray
        elif ctx._logs is None:
            logs = ctx._logs = {}
        else:
            logs = ctx._logs
        left = logs.get(self.stream, "") + text
        if "\n" in left or len(left) > MOST_LINE:
            *lines, left = left.split("\n")
            for line in lines:
                self.line(ctx, logs, line)
            while len(left) > MOST_LINE:
                self.line(ctx, logs, left[:MOST_LINE])
                left = left[MOST_LINE:]
        logs[self.stream] = left
        return len(text)

    def line(self, ctx: Optional[Context], logs: dict[str, Any], line: str) -> None:
        if ctx is not None:
            size = logs.get("size", 0)
            if size > MOST_LOG:
                return
            logs["size"] = size + len(line) + 1
            if logs["size"] > MOST_LOG:
                line = "(more was printed, and is left out)"
        frame: dict[str, Any] = {"log": line[:MOST_LINE], "stream": self.stream}
        if ctx is None:
            control.send(frame)
        else:
            frame["id"] = ctx._id
            ctx._lane.pipe.send(frame)

    def flush(self) -> None:
        pass

    def finish(self, ctx: Context, logs: dict[str, Any]) -> None:
        """Sends what stands behind the last line break."""
        left = logs.pop(self.stream, "")
        if left:
            self.line(ctx, logs, left)


stdout = LogText("stdout", 1)
stderr = LogText("stderr", 2)


def flush_logs(ctx: Context) -> None:
    logs = ctx._logs
    if logs is not None:
        stdout.finish(ctx, logs)
        stderr.finish(ctx, logs)
