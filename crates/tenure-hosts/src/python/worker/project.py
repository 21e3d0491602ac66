# The project: which of its files may be imported, and what runs of them.

TOP = "tenure_project"
SUFFIXES = (*importlib.machinery.EXTENSION_SUFFIXES, ".py")


class Project:
    """The folder of the project, and the files in it that may be imported."""

    is_forked = False

    def __init__(self, about: dict[str, Any]) -> None:
        self.root = os.path.realpath(about["root"])
        self.inside = os.path.join(self.root, "")
        # By folder, the names of the files that were checked; none: any that is there.
        self.files: Optional[dict[str, set[str]]] = None
        if about["files"] is not None:
            self.files = {folder: set(names) for folder, names in about["files"].items()}
        # Files and folders that are others under another name.
        self.links: dict[str, str] = about.get("links", {})
        # Every folder that one of the files is beneath.
        self.folders: set[str] = set()
        for folder in self.files or ():
            while folder not in self.folders and folder != os.path.dirname(folder):
                self.folders.add(folder)
                folder = os.path.dirname(folder)
        # The folders of installed packages of the project, each with its separator.
        self.installed = tuple(os.path.join(it, "") for it in about.get("installed", ()))
        # How an installed file was when the host was last asked about it, and who asks.
        self.held: dict[str, tuple[int, ...]] = {}
        self.asking = threading.Lock()
        # What runs of a file, if the host has sent it; or in words why it may not run.
        self.sources: dict[str, Union[bytes, str]] = {}
        # Packages that are in no other, and their folders.
        self.tops: dict[str, str] = {TOP: self.root}
        self.found: dict[tuple[str, str], Optional[str]] = {}

    def has(self, path: str) -> bool:
        return path == self.root or path.startswith(self.inside)

    def real(self, path: str) -> str:
        """A file or folder as it is known, whatever links lead to it."""
        if self.files is None:
            real = os.path.realpath(path)
            return real if self.has(real) or not self.has(path) else path
        path = os.path.abspath(path)
        known = self.links.get(path)
        if known is not None:
            return known
        folder, name = os.path.split(path)
        if not name or path in self.folders:
            return path
        path = os.path.join(self.real(folder), name)
        return self.links.get(path, path)

    def is_file(self, path: str) -> bool:
        if self.files is None:
            return os.path.isfile(path) or path in self.sources
        folder, name = os.path.split(self.real(path))
        return name in self.files.get(folder, ())

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path) if self.files is None else self.real(path) in self.folders

    def first(self, folder: str, name: str) -> Optional[str]:
        """The file of this name in a folder, with whatever suffix Python looks for first."""
        paths = (os.path.join(folder, name + end) for end in SUFFIXES)
        path = next(filter(self.is_file, paths), None)
        return path and self.real(path)

    def find(self, folder: str, name: str) -> Optional[str]:
        """The file of a package, or else of a module."""
        known = self.found.get((folder, name), "")
        if known != "":
            return known
        inner = os.path.join(folder, name)
        package = self.first(inner, "__init__") if self.is_folder(inner) else None
        path = package or self.first(folder, name)
        if path is not None or self.files is not None:
            self.found[folder, name] = path
        return path

    def source(self, path: str) -> Optional[bytes]:
        """What runs of a file; none if that is what the file has. Waits for the host."""
        known = self.real(path)
        if known not in self.sources:
            if self.files is None:
                return None
            if not self.is_file(known):
                beyond = os.path.realpath(path)
                if self.is_file(beyond):
                    return self.source(beyond)
                if self.has(path) or self.has(beyond):
                    raise unchecked(path)
                return None
            if self.is_forked:
                raise ImportError(
                    f"{path} cannot be imported in a process that was forked: import it before"
                )
            control.send({"want": known})
            wait_until(lambda: known in self.sources)
        source = self.sources[known]
        if isinstance(source, str):
            raise ImportError(source, path=path)
        return source

    def is_cache_held(self, path: str) -> bool:
        """Whether the bytecode of an installed file may be used: the project's is what was checked.
        Raises if the file itself is not."""
        file = in_real_folder(path)
        if not file.startswith(self.installed):
            return True
        cache = importlib.util.cache_from_source(file)
        if os.path.exists(cache) and self.refusal(cache) is None:
            return True
        self.hold(file)
        return False

    def hold(self, path: str) -> None:
        """Raises if a file is an installed one of the project and not as it was checked."""
        file = in_real_folder(path)
        why = self.refusal(file) if file.startswith(self.installed) else None
        if why is not None:
            raise ImportError(why, path=path)

    def refusal(self, file: str) -> Optional[str]:
        """Why an installed file may not run; none if it may. Waits for the host."""
        if self.is_forked:
            # There is no host to ask any more.
            return None
        try:
            seen = os.stat(file)
        except OSError as error:
            return f"{file} cannot be looked at: {error}"
        marks = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        with self.asking:
            if self.held.get(file) != marks:
                self.sources.pop(file, None)
                control.send({"want": file})
                wait_until(lambda: file in self.sources)
                self.held[file] = marks
        said = self.sources[file]
        return said if isinstance(said, str) else None

    def hold_archive(self, archive: str) -> None:
        """Raises if modules would come out of an archive of the project: those are not checked."""
        file = in_real_folder(os.path.abspath(archive))
        is_own = self.has(file) or self.has(os.path.realpath(archive))
        if self.files is None or not is_own:
            return
        if file.startswith(self.installed):
            self.hold(file)
        else:
            raise ImportError(
                f"{archive} is an archive, whose modules were not checked; unpack it beneath the "
                "folder of a hook, and start again",
                path=archive,
            )


project: Project


def in_real_folder(path: str) -> str:
    """A file under the name of its real folder; it may be a link itself."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def unchecked(path: str) -> ImportError:
    return ImportError(
        f"{path} was not checked when the agents were loaded, so it is not imported; name it in an "
        "`import` of a checked file or put it beneath the folder of a hook, and start again",
        path=path,
    )


def wait_until(is_there: Callable[[], bool]) -> None:
    """Waits for what the host sends to the main thread."""
    if threading.current_thread() is threading.main_thread():
        while not is_there():
            control.handle(control.take())
    with arrived:
        arrived.wait_for(is_there)


# What runs, however it is imported.


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python itself or to an installed package."""
    # Its folder counts: that is where the bytecode is, also of a file that is a link.
    return os.path.join(os.path.realpath(os.path.dirname(path)), "").startswith(INSTALLED)


INSTALLED = tuple(
    os.path.join(os.path.realpath(it), "")
    for it in (os.path.dirname(os.__file__), *site.getsitepackages())
)
from_source: Any = importlib.machinery.SourceFileLoader
from_bytecode: Any = importlib.machinery.SourcelessFileLoader
from_extension: Any = importlib.machinery.ExtensionFileLoader
source_code, bytecode = from_source.get_code, from_bytecode.get_code
create = from_extension.create_module
archives: Any = importlib.import_module("zipimport")
from_archive: Any = archives._get_module_code
open_code = io.open_code


def run_as_checked() -> None:
    """Has the project's modules run from their sources alone, as they were checked, and leaves no
    bytecode there.

    Nobody reads bytecode before it runs, and it need not say what the source beside it says.
    """
    sys.dont_write_bytecode = True

    def compiled(self: Any, name: str) -> Any:
        path = self.get_filename(name)
        if is_installed(path):
            if project.is_cache_held(path):
                return source_code(self, name)
            return self.source_to_code(self.get_data(path), path)
        text = getattr(self, "text", None) or project.source(path)
        if text is None:
            text = self.get_data(path)
        if isinstance(self, Loader):
            self.text = text
        remember(path, text)
        return getattr(self, "code", None) or self.source_to_code(text, path)

    def refused(self: Any, name: str) -> Any:
        path = self.get_filename(name)
        if is_installed(path):
            project.hold(path)
            return bytecode(self, name)
        raise ImportError(
            f"{path} is bytecode, which is never run; the source is needed", name=name
        )

    def created(self: Any, spec: Any) -> Any:
        if is_installed(self.path):
            project.hold(self.path)
        else:
            project.source(self.path)
        return create(self, spec)

    def unpacked(self: Any, name: str) -> Any:
        project.hold_archive(self.archive)
        return from_archive(self, name)

    def opened(path: Any) -> Any:
        # `runpy` reads by this what it runs.
        full = os.path.abspath(os.fsdecode(path))
        if is_installed(full):
            project.hold(full)
            return open_code(path)
        text = project.source(full)
        return open_code(path) if text is None else io.BytesIO(text)

    archives._get_module_code = unpacked
    io.open_code = opened
    from_source.get_code = compiled
    from_bytecode.get_code = refused
    from_extension.create_module = created


def remember(path: str, text: bytes) -> None:
    """Has tracebacks show what ran, whatever the file has by then."""
    try:
        lines = importlib.util.decode_source(text).splitlines(True)
    except (SyntaxError, UnicodeDecodeError):
        return
    linecache.cache[path] = (len(text), None, lines, path)
