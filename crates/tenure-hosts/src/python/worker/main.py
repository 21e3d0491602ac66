# The main thread: it hears the host out, and runs no function.


class Control(Pipe):
    """The conversation about the worker itself. Pipes of lanes come along with its frames."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd, fd)
        self.socket = socket.socket(fileno=fd)
        self.fds: deque[int] = deque()

    def read(self) -> bytes:
        room = socket.CMSG_SPACE(FDS * array("i").itemsize)
        chunk, rights, _, _ = self.socket.recvmsg(CHUNK, room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array("i")
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
                self.fds.extend(fds)
        return chunk

    def own(self) -> int:
        """The next descriptor, away from the numbers that hooks may take for their own."""
        fd = self.fds.popleft()
        own = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64)
        os.close(fd)
        return own

    def open_lane(self, message: dict[str, Any]) -> None:
        pipe = Pipe(self.own(), self.own())
        opened = Lane(message["lane"], pipe, lanes.get(message["first"]))
        lanes[opened.number] = opened
        opened.start()

    def handle(self, message: dict[str, Any]) -> None:
        if "lane" in message:
            try:
                self.open_lane(message)
            except (OSError, RuntimeError) as error:
                # No descriptors or threads are left. What others have goes on.
                self.send({"lost": message["lane"], "why": f"no thread could be started: {error}"})
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
            # Those that have not begun come first: none of them begins when another one ends.
            for id, number in sorted(message["interrupt"], key=lambda it: is_begun(*it)):
                at = lanes.get(number)
                self.send({"heard": id, "at": "unbegun" if at is None else at.interrupt(id)})
        elif "abandon" in message:
            number = message["abandon"]
            lane = lanes.pop(number, None)
            self.send({"abandoned": number, "begun": lane.give_up() if lane is not None else []})
        elif "exit" in message:
            sys.exit(0)


def is_begun(id: int, number: int) -> bool:
    lane = lanes.get(number)
    return lane is not None and id in lane.calls


# The most descriptors that come along with what is read at once.
FDS = 64
control: Control


def in_child() -> None:
    """After a fork: the child is no worker. What it prints goes where its children's does."""
    os._exit = leave
    pipes = [it.pipe for it in list(open_lanes)]
    own = {control.fd, *control.fds, *(it.fd for it in pipes), *(it.out for it in pipes)}
    for fd in own:
        try:
            os.close(fd)
        except OSError:
            pass
    project.is_forked = True
    sys.stdout = open(1, "w", closefd=False, errors="replace")
    sys.stderr = open(2, "w", closefd=False, errors="replace")


leave = os._exit


def exit_at_once(status: int) -> typing.NoReturn:
    """Ends the process, and says first which function does that to its neighbours."""
    ctx = current.get()
    if ctx is not None:
        function = ctx._function
        by = f"{os.path.basename(files[function.file].path)}:{function.name}"
        control.send({"exits": ctx._id, "why": f"{by} called os._exit({status})"})
    leave(status)


PR_SET_DUMPABLE = 4
is_private = False


def be_private() -> None:
    """Keeps other processes of the user from reading this one's memory and from opening its pipes,
    by which they could answer in a guard's place."""
    global is_private
    if not is_private:
        is_private = True
        try:
            import ctypes
        except ImportError:
            return
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


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
    # Every lane has two pipes and the files of its event loop.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    # What a function logs at `INFO` is a line of its log, unless it says otherwise itself.
    logging.getLogger().setLevel(logging.INFO)
    if logging.lastResort is not None:
        logging.lastResort.setLevel(logging.INFO)
    run_as_checked()
    import_by_path(said["project"])
    install(said["package"])
    os._exit = exit_at_once
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
