# The main thread.


def handle(message: dict[str, Any]) -> None:
    if "fn" in message:
        begin(message)
    elif "q" in message:
        deliver = waits.pop(message["q"], None)
        if deliver is not None:
            deliver(message)
    elif "file" in message:
        files[message["file"]] = File(message["file"], message["path"], message["source"])
    elif "def" in message:
        functions[message["def"]] = Function(message["function"])
    elif "cancel" in message:
        cancel(message["cancel"])
    elif "about" in message:
        abouts[message["about"]] = message["instance"]
    elif "forget" in message:
        live_state.pop(abouts.pop(message["forget"], {}).get("instance_id", ""), None)
    elif "exit" in message:
        sys.exit(0)


def cancel(id: int) -> None:
    ctx = calls.get(id)
    if ctx is None:
        return
    ctx._cancelled = True
    if ctx._task is not None:
        ctx._task.cancel()
    for q in ctx._waits or ():
        deliver = waits.pop(q, None)
        if deliver is not None:
            deliver({"q": q, "err": {"kind": "cancelled", "message": "the turn was cancelled"}})


def serve() -> None:
    while True:
        while ready:
            handle(decoded(ready.popleft()))
        if pending or (loop.was_used and loop.has_work()):
            serve_loop()
        else:
            loop.was_used = False
            alone = pull()
            if alone is not None:
                handle(decoded(alone))


def serve_loop() -> None:
    def readable() -> None:
        alone = pull()
        if alone is not None:
            ready.append(alone)
        loop.stop()

    fd = IN
    loop.add_reader(fd, readable)
    try:
        while pending or loop.has_work():
            loop.rest()
            loop.is_looping = True
            loop.run_forever()
            loop.is_looping = False
            while ready:
                handle(decoded(ready.popleft()))
    finally:
        loop.is_looping = False
        loop.remove_reader(fd)


def in_child() -> None:
    """After a fork: the child is no worker. What it prints goes where its children's does."""
    global OUT
    for fd in (IN, SPARE_IN, OUT):
        try:
            os.close(fd)
        except OSError:
            pass
    OUT = -1
    sys.stdout = open(1, "w", closefd=False, errors="replace")
    sys.stderr = open(2, "w", closefd=False, errors="replace")


__file__ = "<tenure worker>"


def install(package: list[tuple[str, str]]) -> None:
    """Makes the modules of the package that hooks import, of which there are no files."""
    sys.modules["tenure"] = tenure
    tenure.__path__ = []
    for name, source in package:
        if name.partition(".")[0] in INSTALLABLE:
            stand_ins[name] = source
            continue
        module = tenure if name == "tenure" else types.ModuleType(name)
        module.__file__ = f"<{name}>"
        module.__package__ = "tenure"
        sys.modules[name] = module
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)
        if module is not tenure:
            setattr(tenure, name.rpartition(".")[2], module)
    install_stand_ins()


def main(package: str) -> None:
    global IN, SPARE_IN, OUT, loop
    IN = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 64)
    SPARE_IN = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 192)
    OUT = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 64)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    os.register_at_fork(after_in_child=in_child)

    # What a function logs at `INFO` is a line of its log, unless it says otherwise itself.
    logging.getLogger().setLevel(logging.INFO)
    if logging.lastResort is not None:
        logging.lastResort.setLevel(logging.INFO)
    without_bytecode()
    install(json.loads(package))
    loop = Loop()
    asyncio.set_event_loop(loop)
    threading.Thread(target=watch_host, name="tenure-host", daemon=True).start()
    # What is here now stays; nobody has to look at it again.
    gc.collect()
    gc.freeze()
    send({"ready": os.getpid()})
    sys.stdout = stdout
    sys.stderr = stderr
    serve()
