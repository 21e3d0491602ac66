# Imports of the project's own files.
#
# A file of the project is a module by its path, and once for the whole worker: `hooks/a.py` is
# `tenure_project.hooks.a`, wherever and under whatever name it is imported. So two files may have a
# sibling of the same name, and relative imports are what they are in every package. The name `a` in
# an import means the file beside the one that imports, then one in the project's folder.

bootstrap: Any = importlib._bootstrap
plain_import: Any = builtins.__import__


def standard_library() -> frozenset[str]:
    """The names of its modules, which no file of a project takes."""
    names: Optional[frozenset[str]] = getattr(sys, "stdlib_module_names", None)
    if names is None:
        # Before Python 3.10 only its folders say.
        own = os.path.dirname(os.__file__)
        folders = filter(os.path.isdir, (own, os.path.join(own, "lib-dynload")))
        found = (it.partition(".")[0] for folder in folders for it in os.listdir(folder))
        names = frozenset((*sys.builtin_module_names, *found))
    return names | {"tenure"}


STANDARD_LIBRARY = standard_library()


# Names of modules, by their paths.


def quoted(part: str) -> str:
    return part.replace("%", "%25").replace(".", "%2E")


def package_name(folder: str) -> str:
    if folder == project.root:
        return TOP
    if project.has(folder):
        return ".".join((TOP, *map(quoted, folder[len(project.inside) :].split(os.sep))))
    name = f"{TOP}_{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"
    project.tops[name] = folder
    return name


def module_name(path: str) -> str:
    folder, file = os.path.split(path)
    end = next((it for it in SUFFIXES if file.endswith(it)), "")
    name = file[: len(file) - len(end)]
    if name == "__init__":
        return package_name(folder)
    # A package may have the same name as a file beside it, which a hook is in.
    is_meant = bool(end) and project.find(folder, name) in (path, None)
    return f"{package_name(folder)}.{quoted(name if is_meant else file)}"


# Modules.


class Loader(importlib.machinery.SourceFileLoader):
    """Runs a file of the project."""

    # What it runs, once that is known.
    text: Optional[bytes] = None
    code: Any = None

    def __init__(self, name: str, path: str, home: str) -> None:
        super().__init__(name, path)
        # The folder whose files it imports by their names.
        self.home = home


class Alias:
    """Gives a module under another name than its own, because a link leads to it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: Any) -> Any:
        module = sys.modules[self.name]
        self.spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.spec


def spec_of_file(path: str, name: str = "", shown: str = "") -> Any:
    """How a file is loaded: under its own name and its own path, unless others are said."""
    name, shown = name or module_name(path), shown or path
    folder, file = os.path.split(path)
    loader: Any = Loader(name, shown, folder)
    if path.endswith(SUFFIXES[:-1]):
        loader = importlib.machinery.ExtensionFileLoader(name, path)
    inner = [folder] if file.startswith("__init__.") else None
    return importlib.util.spec_from_file_location(
        name, shown, loader=loader, submodule_search_locations=inner
    )


def spec_of_folder(folder: str) -> Any:
    """How a folder that is no package with a file of its own is loaded."""
    spec = importlib.machinery.ModuleSpec(package_name(folder), None, is_package=True)
    spec.submodule_search_locations = [folder]
    return spec


def spec_in(folder: str, name: str) -> Any:
    """How a module or a package in a folder is loaded."""
    path = project.find(folder, name)
    if path is not None:
        return spec_of_file(path)
    path = os.path.join(folder, name)
    return spec_of_folder(project.real(path)) if project.is_folder(path) else None


def loaded(spec: Any) -> types.ModuleType:
    """The module, once it has run. Its package does not run for that, as it does not if a file is
    run: only an import that names the package does that."""
    module = sys.modules.get(spec.name)
    if module is None:
        with bootstrap._ModuleLockManager(spec.name):
            module = sys.modules.get(spec.name) or run(spec)
        bind(spec.name)
    elif getattr(module.__spec__, "_initializing", False):
        bootstrap._lock_unlock_module(spec.name)
    return module


def bind(name: str) -> None:
    """Makes a module an attribute of its package, if that has run."""
    package, _, last = name.rpartition(".")
    if package in sys.modules and name in sys.modules and not hasattr(sys.modules[package], last):
        setattr(sys.modules[package], last, sys.modules[name])


def run(spec: Any) -> types.ModuleType:
    module = importlib.util.module_from_spec(spec)
    spec._initializing = True
    sys.modules[spec.name] = module
    try:
        if isinstance(spec.loader, Loader):
            code: Any = spec.loader.get_code(spec.name)
            exec(code, module.__dict__)
        elif spec.loader is not None:
            spec.loader.exec_module(module)
        return sys.modules[spec.name]
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise
    finally:
        spec._initializing = False


class Finder:
    """Finds the modules of the project by their whole names, as relative imports ask for them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        top, _, rest = name.partition(".")
        if top not in project.tops:
            return None
        if not rest:
            file = project.first(project.tops[top], "__init__")
            return spec_of_file(file) if file else spec_of_folder(project.tops[top])
        last = name.rpartition(".")[2].replace("%2E", ".").replace("%25", "%")
        for folder in path or ():
            spec = spec_in(folder, last)
            exact = os.path.join(folder, last)
            if spec is None and project.is_file(exact):
                spec = spec_of_file(project.real(exact))
            if spec is not None and spec.name != name:
                loaded(spec)
                return importlib.machinery.ModuleSpec(name, Alias(spec.name))  # type: ignore[arg-type]
            if spec is not None:
                return spec
        return None


# Imports by name.


def home_of(within: dict[str, Any]) -> Optional[str]:
    """The folder of a file of the project, by its globals."""
    loader = within.get("__loader__")
    kind = type(loader)
    if kind is Loader:
        home: str = loader.home  # type: ignore[union-attr]
        return home
    return own_home(loader.path) if kind is from_source else None  # type: ignore[union-attr]


@functools.cache
def own_home(path: str) -> Optional[str]:
    return own_folder(os.path.dirname(path))


@functools.cache
def own_folder(folder: str) -> Optional[str]:
    """The folder as it is known if it is the project's, and no installed package is there."""
    if not isinstance(folder, str):
        return None
    known = project.real(os.path.abspath(folder))
    is_own = project.has(known) and not is_installed(os.path.join(folder, "x"))
    return known if is_own else None


def sibling(home: str, name: str) -> Any:
    """How the project's module of this name is loaded for a file in a folder."""
    if name in STANDARD_LIBRARY:
        return None
    added = (own_folder(it) for it in sys.path)
    for folder in dict.fromkeys((home, project.root, *added)):
        path = project.find(folder, name) if folder is not None else None
        if path is not None:
            return spec_of_file(path)
    return None


def around(home: str, name: str) -> Any:
    """The same where nothing of this name is installed: in a folder around, or a folder itself."""
    folders = [home, project.root]
    while project.has(home) and home != project.root:
        home = os.path.dirname(home)
        folders.append(home)
    for folder in folders:
        path = project.find(folder, name)
        if path is not None:
            return spec_of_file(path)
    for folder in folders:
        path = os.path.join(folder, name)
        if project.is_folder(path):
            return spec_of_folder(project.real(path))
    # What is there and may not run is told from what is not there.
    found: Any = importlib.machinery.PathFinder.find_spec(name, folders)
    if found is not None and found.has_location:
        project.source(found.origin)
        found.loader.get_code(name)
    return None


def project_import(
    name: str,
    globals: Optional[dict[str, Any]] = None,
    locals: Any = None,
    fromlist: Any = (),
    level: int = 0,
) -> Any:
    if level == 0:
        home = home_of(sys._getframe(1).f_globals if globals is None else globals)
        if home is not None:
            return imported(home, name, fromlist)
    return plain_import(name, globals, locals, fromlist, level)


def imported(home: str, name: str, fromlist: Any) -> Any:
    head, dot, rest = name.partition(".")
    spec = sibling(home, head)
    if spec is None:
        try:
            return plain_import(name, None, None, fromlist, 0)
        except ModuleNotFoundError as error:
            if error.name != head:
                raise
            missing = error
        spec = around(home, head)
        if spec is None:
            raise missing
    top = loaded(spec)
    if not rest and not fromlist:
        return top
    name = spec.name + dot + rest
    leaf = plain_import(name, None, None, fromlist or ("__name__",), 0)
    # Those that ran before their packages did are not attributes yet.
    while name != spec.name:
        bind(name)
        name = name.rpartition(".")[0]
    return leaf if fromlist else top


def import_module(name: str, package: Optional[str] = None) -> Any:
    home = None if name.startswith(".") else home_of(sys._getframe(1).f_globals)
    if home is None:
        return plain_import_module(name, package)
    return imported(home, name, ("__name__",))


def reload(module: types.ModuleType) -> Any:
    package = getattr(module, "__name__", "").rpartition(".")[0]
    if package.partition(".")[0] in project.tops:
        plain_import_module(package)
    return plain_reload(module)


plain_import_module: Any = importlib.import_module
plain_reload: Any = importlib.reload


def import_by_path(about: dict[str, Any]) -> None:
    """Has files of the project imported by their paths."""
    global project
    project = Project(about)
    builtins.__import__ = project_import  # type: ignore[assignment]
    importlib.import_module = import_module
    importlib.reload = reload
    sys.meta_path.insert(0, Finder())
