# Lanes: the threads that functions run on.

lanes: dict[int, Lane] = {}
# All whose threads run, those that were given up too.
open_lanes: set[Lane] = set()
# How many calls are remembered that were refused, or that the host was told of when they began.
MOST_NOTED = 4096


class Lane:
    """A thread of one instance, with its event loop and its pipes.

    The first lane of an instance runs all of its functions. A plain function that waits for an
    answer has a further one, so that what the instance calls while it waits can run.
    """

    loop: Optional[Loop] = None
    ident = 0
    # The call whose function runs in this thread now, other than as a step of the event loop.
    running: Optional[Context] = None
    # Nothing is raised in a thread that waits, for the host or for the variables of a chat. What
    # would have been is noted here.
    is_waiting = False
    noted: Optional[Context] = None
    is_abandoned = False
    # The variables of a chat that the function of this thread has for itself.
    has: Optional[Chat] = None

    def __init__(self, number: int, pipe: Pipe, first: Optional[Lane]) -> None:
        self.number = number
        self.pipe = pipe
        # The instance, of which the first frame tells.
        self.about: dict[str, Any] = {}
        self.first = first
        self.context = contextvars.Context()
        self.calls: dict[int, Context] = {}
        self.pending: dict[asyncio.Task[Any], Context] = {}
        self.waits: dict[int, Callable[[dict[str, Any]], None]] = {}
        # Held by the one thread that reads the pipe.
        self.reading = threading.Lock()
        # Held to say what runs, and to interrupt it.
        self.lock = threading.Lock()
        # Calls that were cancelled before they were read: they do not begin any more.
        self.refused: OrderedDict[int, None] = OrderedDict()
        # Calls that waited before they began, and which have.
        self.begun: deque[int] = deque(maxlen=MOST_NOTED)

    def start(self) -> None:
        open_lanes.add(self)
        threading.Thread(target=self.work, daemon=True).start()

    def own_loop(self) -> Loop:
        if self.loop is None:
            self.loop = own_loop()
            self.loop.lane = self
        return self.loop

    def work(self) -> None:
        self.ident = threading.get_ident()
        try:
            if self.first is None:
                self.own_loop()
            self.serve()
        except Closed:
            pass
        except OSError as error:
            # No descriptors are left for an event loop.
            control.send({"lost": self.number, "why": f"no thread could be started: {error}"})
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
            self.heed()
            self.is_waiting = True
        try:
            # Inside the loop its thread holds this already.
            if self.loop is not None and self.loop.is_looping:
                yield
            else:
                with self.reading:
                    yield
        finally:
            self.wait_no_longer()
            self.acquire(chat)

    def wait_no_longer(self) -> None:
        with self.lock:
            self.is_waiting = False
            noted, self.noted = self.noted, None
        # It may have heard of its cancel from the host already.
        if noted is not None and not noted._cancelled:
            noted._cancelled = True
            raise asyncio.CancelledError

    def heed(self) -> None:
        """Raises what is about to be raised in this thread. With the lock held, and behind this,
        nothing is raised in between two lines."""
        if self.is_abandoned:
            raise Closed
        if self.running is not None and self.running._is_interrupted:
            raise asyncio.CancelledError

    def acquire(self, chat: Optional[Chat]) -> None:
        """Waits for the variables of a chat, for a plain function alone."""
        if chat is None:
            return
        with self.lock:
            self.heed()
            if chat.turn.acquire(blocking=False):
                self.has = chat
                return
            self.is_waiting = True
        try:
            while self.noted is None and not self.is_abandoned:
                if chat.turn.acquire(timeout=GLANCE):
                    self.has = chat
                    break
        finally:
            self.wait_no_longer()
        with self.lock:
            self.heed()

    def release(self, chat: Optional[Chat]) -> None:
        """Gives them back."""
        if chat is not None:
            with self.lock:
                self.heed()
                self.free(chat)

    def free(self, chat: Optional[Chat]) -> None:
        """The same with the lock held, by whichever thread."""
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
        elif "instance" in message:
            self.assign(message)

    def assign(self, message: dict[str, Any]) -> None:
        """Makes this the lane of an instance."""
        if message["guard"]:
            be_private()
        self.about = message["instance"]
        threading.current_thread().name = f"tenure-{self.about['name']}"

    def cancel(self, id: int) -> None:
        """Cancels a call that waits, in the loop or for an answer."""
        ctx = self.calls.get(id)
        if ctx is None:
            self.refuse(id)
            return
        ctx._cancelled = True
        if ctx._task is not None:
            ctx._task.cancel()
        end_waits(ctx, CANCELLED)

    def refuse(self, id: int) -> None:
        """Has a call that was not read yet never begin."""
        self.refused[id] = None
        if len(self.refused) > MOST_NOTED:
            self.refused.popitem(last=False)

    def interrupt(self, id: int) -> str:
        """Cancels a call whose function keeps the thread, and says how far it has come. Called by
        the main thread."""
        with self.lock:
            ctx = self.calls.get(id)
            if ctx is None:
                if id in self.begun:
                    return "runs"
                self.refuse(id)
                return "unbegun"
            runs = self.running is ctx
            if ctx._task is not None and self.loop is not None:
                runs = asyncio.current_task(self.loop) is ctx._task
            if runs and self.is_waiting:
                self.noted = ctx
            elif runs:
                ctx._cancelled = True
                ctx._is_interrupted = raise_in(self.ident, asyncio.CancelledError)
            return "loads" if ctx._function.body is None else "runs"

    def give_up(self) -> list[int]:
        """Begins no more calls, and says which have begun. Called by the main thread."""
        with self.lock:
            self.is_abandoned = True
            self.free(self.has)
            return list(self.begun)

    def run(self, ctx: Context, call: Callable[[Context], Any]) -> Any:
        """Runs something of a call in this thread, where a cancel can interrupt it."""
        with self.lock:
            if self.is_abandoned:
                raise Closed
            if self.refused and self.refused.pop(ctx._id, UNSAID) is None:
                raise asyncio.CancelledError
            self.calls[ctx._id] = ctx
            self.running = ctx
        try:
            return call(ctx)
        finally:
            self.settle(ctx)

    def tell_begun(self, ctx: Context) -> None:
        """Tells the host that a function begins. It is never made again elsewhere then."""
        with self.lock:
            if self.is_abandoned:
                raise Closed
            self.begun.append(ctx._id)
        self.pipe.write(b'{"id":%d,"began":true}' % ctx._id)

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
        lanes.pop(self.number, None)
        open_lanes.discard(self)
        instance = self.about.get("instance_id", "")
        if self.is_abandoned:
            # The instance goes on, on another thread.
            control.send({"returned": self.number})
        elif not any(it.about.get("instance_id") == instance for it in list(lanes.values())):
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
        os.close(self.pipe.out)


def own_loop() -> Loop:
    """An event loop for the thread that makes it."""
    loop = Loop()
    asyncio.set_event_loop(loop)
    return loop


def raise_in(thread: int, kind: Optional[type[BaseException]]) -> bool:
    """Has a thread raise this as soon as it runs Python; or takes back what it was to raise."""
    try:
        import ctypes
    except ImportError:
        return False
    raised = None if kind is None else ctypes.py_object(kind)
    return bool(ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised) == 1)
