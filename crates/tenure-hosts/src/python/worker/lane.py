# Lanes: the threads that functions run on.

lanes: dict[int, Lane] = {}
# How many lanes were given up and still run.
abandoned = 0


class Lane:
    """A thread of one instance, with its event loop and its socket.

    The first lane of an instance runs all of its functions. A plain function that waits for an
    answer has a further one, so that what the instance calls while it waits can run.
    """

    loop: Optional[Loop] = None
    ident = 0
    # The call whose function runs in this thread now, other than as a step of the event loop.
    running: Optional[Context] = None
    is_waiting = False
    is_abandoned = False
    # The variables of a chat that the function of this thread has for itself.
    has: Optional[Chat] = None

    def __init__(self, number: int, fd: int, about: dict[str, Any], first: Optional[Lane]) -> None:
        self.number = number
        self.pipe = Pipe(fd)
        self.about = about
        self.first = first
        self.context = contextvars.Context()
        self.calls: dict[int, Context] = {}
        self.pending: dict[asyncio.Task[Any], Context] = {}
        self.waits: dict[int, Callable[[dict[str, Any]], None]] = {}
        # Held by the one thread that reads the pipe.
        self.reading = threading.Lock()
        # Held to say what runs, and to interrupt it.
        self.lock = threading.Lock()

    def start(self) -> None:
        name = f"tenure-{self.about['name']}"
        threading.Thread(target=self.work, name=name, daemon=True).start()

    def own_loop(self) -> Loop:
        if self.loop is None:
            self.loop = Loop(self)
            asyncio.set_event_loop(self.loop)
        return self.loop

    def work(self) -> None:
        self.ident = threading.get_ident()
        try:
            if self.first is None:
                self.own_loop()
            self.serve()
        except Closed:
            pass
        finally:
            self.end()

    def serve(self) -> None:
        ready = self.pipe.ready
        while True:
            while ready:
                self.handle(decoded(ready.popleft()))
            loop = self.loop
            if self.pending or (loop is not None and loop.was_used and loop.has_work()):
                self.serve_loop(self.own_loop())
                continue
            if loop is not None:
                loop.was_used = False
            with self.reading:
                # Another thread may have read on.
                alone = self.pipe.pull() if not ready else None
            if alone is not None:
                self.handle(decoded(alone))

    def serve_loop(self, loop: Loop) -> None:
        ready = self.pipe.ready
        closed = False

        def readable() -> None:
            nonlocal closed
            try:
                alone = self.pipe.pull()
            except Closed:
                closed = True
            else:
                if alone is not None:
                    ready.append(alone)
            loop.stop()

        fd = self.pipe.fd
        with self.reading:
            loop.add_reader(fd, readable)
        try:
            while self.pending or loop.has_work():
                loop.rest()
                loop.is_looping = True
                with self.reading:
                    loop.run_forever()
                loop.is_looping = False
                if closed:
                    raise Closed
                while ready:
                    self.handle(decoded(ready.popleft()))
        finally:
            loop.is_looping = False
            loop.remove_reader(fd)

    def hear(self) -> None:
        """Reads once, and handles what those want to hear who wait; calls are kept for later."""
        ready = self.pipe.ready
        alone = self.pipe.pull()
        if alone is not None:
            ready.append(alone)
        for _ in range(len(ready)):
            message = decoded(ready.popleft())
            if "fn" in message or "def" in message:
                ready.append(message)
            else:
                self.handle(message)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While this thread waits for the host: it hears of a cancel there, and others may have the
        variables that it had."""
        chat = self.has
        self.release(chat)
        with self.lock:
            self.is_waiting = True
        try:
            # Inside the loop its thread holds this already.
            if self.loop is not None and self.loop.is_looping:
                yield
            else:
                with self.reading:
                    yield
        finally:
            with self.lock:
                self.is_waiting = False
            self.acquire(chat)

    def acquire(self, chat: Optional[Chat]) -> None:
        """Waits for the variables of a chat, for a plain function alone. An interrupt is heard."""
        if chat is not None:
            while not chat.turn.acquire(timeout=GLANCE):
                pass
            self.has = chat

    def release(self, chat: Optional[Chat]) -> None:
        """Gives them back. That of a thread that was given up is done for it."""
        with self.lock:
            if chat is not None and self.has is chat:
                self.has = None
                chat.turn.release()

    def handle(self, message: dict[str, Any]) -> None:
        if "fn" in message:
            begin(self, message)
        elif "q" in message:
            deliver = self.waits.pop(message["q"], None)
            if deliver is not None:
                deliver(message)
        elif "def" in message:
            functions.setdefault(message["def"], Function(message["function"]))
        elif "cancel" in message:
            self.cancel(message["cancel"])

    def cancel(self, id: int) -> None:
        """Cancels a call that waits, in the loop or for an answer."""
        ctx = self.calls.get(id)
        if ctx is None:
            return
        ctx._cancelled = True
        if ctx._task is not None:
            ctx._task.cancel()
        for q in ctx._waits or ():
            deliver = self.waits.pop(q, None)
            if deliver is not None:
                deliver({"q": q, "err": {"kind": "cancelled", "message": "the turn was cancelled"}})

    def interrupt(self, id: int) -> None:
        """Cancels a call whose function keeps the thread. Called by the main thread."""
        with self.lock:
            ctx = self.calls.get(id)
            if ctx is None or self.is_waiting:
                return
            runs = self.running is ctx
            if ctx._task is not None and self.loop is not None:
                runs = asyncio.current_task(self.loop) is ctx._task
            if runs:
                ctx._cancelled = True
                ctx._is_interrupted = raise_in(self.ident, asyncio.CancelledError)

    def run(self, ctx: Context, call: Callable[[Context], Any]) -> Any:
        """Runs something of a call in this thread, where a cancel can interrupt it."""
        self.calls[ctx._id] = ctx
        try:
            self.running = ctx
            return call(ctx)
        finally:
            self.settle(ctx)

    def settle(self, ctx: Context) -> None:
        """Has the interrupt of a call that is over come too late for the next. It may come in the
        middle of this."""
        while True:
            try:
                with self.lock:
                    self.running = None
                    if ctx._is_interrupted:
                        ctx._is_interrupted = False
                        raise_in(self.ident, None)
                return
            except asyncio.CancelledError:
                continue

    def end(self) -> None:
        global abandoned
        lanes.pop(self.number, None)
        if self.is_abandoned:
            abandoned -= 1
        instance = self.about["instance_id"]
        if not any(it.about["instance_id"] == instance for it in list(lanes.values())):
            live_state.pop(instance, None)
            agents.pop(instance, None)
            runners.pop(instance, None)
        loop = self.loop
        if loop is not None:
            loop.rest()
            for task in asyncio.all_tasks(loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            if not loop.is_running():
                loop.close()
        os.close(self.pipe.fd)


def raise_in(thread: int, kind: Optional[type[BaseException]]) -> bool:
    """Has a thread raise this as soon as it runs Python; or takes back what it was to raise."""
    try:
        import ctypes
    except ImportError:
        return False
    raised = None if kind is None else ctypes.py_object(kind)
    return bool(ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised) == 1)
