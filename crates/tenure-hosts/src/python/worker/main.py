# The main thread: it hears the host out, and runs no function.


class Control(Pipe):
    """The conversation about the worker itself. Sockets of lanes come along with its frames."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self.socket = socket.socket(fileno=fd)
        self.fds: deque[int] = deque()

    def read(self) -> bytes:
        room = socket.CMSG_SPACE(FDS * array("i").itemsize)
        chunk, rights, _, _ = self.socket.recvmsg(CHUNK, room)
        for level, kind, data in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array("i")
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
                self.fds.extend(fds)
        return chunk

    def handle(self, message: dict[str, Any]) -> None:
        global abandoned
        if "lane" in message:
            # Away from the numbers that hooks may take for their own.
            fd = self.fds.popleft()
            own = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64)
            os.close(fd)
            first = lanes.get(message["first"])
            opened = Lane(message["lane"], own, message["instance"], first)
            lanes[opened.number] = opened
            opened.start()
        elif "file" in message:
            with arrived:
                file = File(message["file"], message["path"], message["source"])
                files.setdefault(file.number, file)
                arrived.notify_all()
        elif "module" in message:
            source = message.get("source", "").encode(message.get("encoding", "utf-8"))
            with arrived:
                project.sources[message["module"]] = message.get("refused") or source
                arrived.notify_all()
        elif "interrupt" in message:
            at = lanes.get(message["at"])
            if at is not None:
                at.interrupt(message["interrupt"])
            self.send({"heard": message["interrupt"]})
        elif "abandon" in message:
            if message["abandon"] in lanes:
                lane = lanes.pop(message["abandon"])
                lane.is_abandoned = True
                lane.release(lane.has)
                abandoned += 1
        elif "exit" in message:
            sys.exit(0)


# The most sockets that come along with what is read at once.
FDS = 64
control: Control


def in_child() -> None:
    """After a fork: the child is no worker. What it prints goes where its children's does."""
    for fd in (control.fd, *(it.pipe.fd for it in list(lanes.values()))):
        try:
            os.close(fd)
        except OSError:
            pass
    project.is_forked = True
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


def main(about: str) -> None:
    global control
    said = json.loads(about)
    control = Control(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 64))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    os.register_at_fork(after_in_child=in_child)
    # Every lane has a socket and the files of its event loop.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    # What a function logs at `INFO` is a line of its log, unless it says otherwise itself.
    logging.getLogger().setLevel(logging.INFO)
    if logging.lastResort is not None:
        logging.lastResort.setLevel(logging.INFO)
    run_as_checked()
    import_by_path(said["project"])
    install(said["package"])
    # What is here now stays; nobody has to look at it again.
    gc.collect()
    gc.freeze()
    control.send({"ready": os.getpid()})
    sys.stdout = stdout
    sys.stderr = stderr
    try:
        while True:
            control.handle(control.take())
    except Closed:
        end_group()
