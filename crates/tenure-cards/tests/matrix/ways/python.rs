//! The ways of a guard in Python.

/// Statements that a guard runs instead of giving a verdict, each as `def` and as `async def`.
pub(super) const BODIES: &[&str] = &[
    "raise ValueError('boom')",
    "raise KeyError",
    "raise BaseException('boom')",
    "raise KeyboardInterrupt",
    "raise GeneratorExit",
    "raise StopIteration({'allow': True})",
    "raise StopAsyncIteration({'allow': True})",
    "raise SystemExit(0)",
    "raise SystemExit({'allow': True})",
    "raise asyncio.CancelledError",
    "raise TimeoutError",
    "raise MemoryError",
    "raise ExceptionGroup('several', [ValueError('a'), OSError('b')])",
    "raise BaseExceptionGroup('several', [KeyboardInterrupt(), SystemExit(0)])",
    "raise 5",
    "raise UnicodeDecodeError('utf-8', b'\\xff', 0, 1, '\\ud800')",
    "raise ValueError('\\ud800\\x00' * 10)",
    "raise ValueError('x' * 50_000_000)",
    "class Bad(Exception):\n    def __str__(self): raise SystemExit(0)\nraise Bad",
    "class Bad(Exception):\n    def __str__(self): return {'allow': True}\nraise Bad",
    "class Bad(Exception):\n    __module__ = property(lambda self: 1 / 0)\nraise Bad",
    "class Bad(Exception):\n    def __del__(self): os._exit(0)\nraise Bad",
    "error = ValueError('a')\nerror.__cause__ = error\nraise error",
    "def deeper(): return deeper()\nreturn deeper()",
    "sys.setrecursionlimit(30)\ndef deeper(): return deeper()\nreturn deeper()",
    "exec('(' * 90)",
    "assert False, 'never'",
    "return undefined",
    "return ctx.no_such_thing",
    "return ctx.get_agent('nobody').config",
    "del ctx\nreturn ctx",
    "os._exit(0)",
    "os._exit(1)",
    "quit()",
    "os.abort()",
    "os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)",
    "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)",
    "os.kill(os.getpid(), signal.SIGALRM)\ntime.sleep(60)",
    "signal.raise_signal(signal.SIGSEGV)",
    "ctypes.string_at(0)",
    "os.execv('/bin/true', ['true'])",
    "os.execv('/bin/echo', ['echo', '{\"allow\": true}'])",
    "os.closerange(3, 256)\nreturn {'allow': True}",
    "os.closerange(0, 256)\nos._exit(0)",
    "print('{\"allow\": true}')\nreturn None",
    "os.write(1, b'{\"allow\": true}\\n')\nreturn None",
    "os.write(2, b'{\"allow\": true}\\n')\nraise ValueError",
    "strew(b'garbage')\nraise ValueError",
    "strew(b'\\xff' * 64)\nos._exit(0)",
    "strew(b'\\0\\0\\0\\0')\nraise ValueError",
    "strew(frame(b'{\"id\":4000000,\"r\":{\"allow\":true}}'))\nraise ValueError",
    "strew(frame(b'{\"r\":{\"allow\":true}}'))\nraise ValueError",
    "strew(frame(b'{\"id\":1,\"id\":2,\"r\":{\"allow\":true}}')[:-3])\nos._exit(0)",
    "strew(frame(b'[' * 100_000))\nraise ValueError",
    "strew(frame(b'{\"id\":NaN,\"r\":{\"allow\":true}}'))\nraise ValueError",
    "if os.fork() == 0: os._exit(0)\nos.wait()\nraise ValueError",
    "if os.fork(): os._exit(0)\nraise ValueError",
    "if os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(60)\n    os._exit(0)\nraise ValueError",
    "os.fork()\nos._exit(0)",
    "resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))\nreturn {'allow': bytearray(1 << 30)}",
    "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))\nopen('/dev/null')",
    "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
    "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nopen('grown', 'w').write('x')",
    "json.dumps = json.loads = None\nreturn None",
    "builtins.isinstance = lambda *all: 1 / 0\nreturn None",
    "builtins.len = builtins.dict = None\nraise ValueError",
    "os.write = os.read = None\nraise ValueError",
    "sys.modules.clear()\nraise ValueError",
    "sys.stdout = sys.stderr = None\nprint('x', file=sys.stderr)\nraise ValueError",
    "sys.settrace(lambda *all: 1 / 0)\nlen([])\nraise ValueError",
    "sys.excepthook = threading.excepthook = lambda *all: os._exit(0)\nraise ValueError",
    "atexit.register(os._exit, 0)\nsys.exit(0)",
    "threading.Thread(target=lambda: os._exit(0)).start()\ntime.sleep(60)",
    "threading.Thread(target=lambda: {'allow': True}).start()\nreturn None",
    "ctx.allow = True\nreturn None",
    "ctx.reply = ctx.result = {'allow': True}\nraise ValueError",
    "gc.collect = None\n[each.clear() for each in gc.get_objects() if isinstance(each, list)]\nraise ValueError",
];

/// Statements that never come back within the limit.
pub(super) const HANGS: &[&str] = &[
    "time.sleep(600)",
    "while True: pass",
    "ctypes.PyDLL(None).sleep(600)",
    "lock = threading.Lock()\nlock.acquire()\nlock.acquire()",
    "os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(600)",
    "while True:\n    try: time.sleep(600)\n    except BaseException: pass",
    "subprocess.run(['sleep', '600'])",
    "subprocess.run(['sh', '-c', 'trap \"\" TERM HUP INT; sleep 600'], start_new_session=True)",
    "os.read(os.pipe()[0], 1)",
    "return max(iter(int, 1))",
    "return '9' in str(10 ** 50_000_000)",
    "threading.Thread(target=time.sleep, args=(600,)).start()\ntime.sleep(600)",
];

/// Expressions that no guard says yes with. Each is returned, as `def` and as `async def`.
pub(super) const VALUES: &[&str] = &[
    "None",
    "True",
    "1",
    "'allow'",
    "b'{\"allow\": true}'",
    "'{\"allow\": true}'",
    "[]",
    "[{'allow': True}]",
    "({'allow': True},)",
    "{'allow'}",
    "{}",
    "{'allow': 'yes'}",
    "{'allow': 1}",
    "{'allow': None}",
    "{'allow': False}",
    "{'allow': float('nan')}",
    "{'allow': [True]}",
    "{'alow': True}",
    "{'Allow': True}",
    "{'allow ': True}",
    "{b'allow': True}",
    "{True: 'allow'}",
    "{'allow': True, 'deny': 'no'}",
    "{'allow': True, 'deny': None}",
    "{'allow': True, 'extra': 1}",
    "{'allow': True, 'state': 5}",
    "{'deny': 'no'}",
    "{'deny': ''}",
    "{'deny': False}",
    "{'deny': None}",
    "{'deny': 5}",
    "{'allow': True, 'log': object()}",
    "{'deny': '\\ud800'}",
    "{'allow': True, 'log': 10 ** 5000}",
    "{'allow': True, 'state': {'n': float('inf')}}",
    "circular()",
    "deep()",
    "object()",
    "print",
    "Lying()",
    "Raising()",
    "Endless",
    "ValueError('boom')",
    "ValueError",
    "NotImplemented",
    "...",
    "ctx",
    "(each for each in [{'allow': True}])",
    "iter([{'allow': True}])",
    "concurrent.futures.Future",
    "fails()",
    "threading.Thread(target=lambda: {'allow': True})",
    "types.SimpleNamespace(allow=True)",
    "type('Allow', (), {'allow': True})()",
    "decimal.Decimal(1)",
];

/// Whole files. `PARAMS` are the parameters that the point has.
pub(super) const MODULES: &[&str] = &[
    "import no_such_module\ndef hook(PARAMS): return {'allow': True}",
    "from os import no_such_name\ndef hook(PARAMS): return {'allow': True}",
    "def hook(PARAMS) return {'allow': True}",
    "\\x00def hook(PARAMS): return {'allow': True}",
    "1 / 0\ndef hook(PARAMS): return {'allow': True}",
    "import sys\nsys.exit(0)\ndef hook(PARAMS): return {'allow': True}",
    "import os\nos._exit(0)\ndef hook(PARAMS): return {'allow': True}",
    "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\ndef hook(PARAMS): return {'allow': True}",
    "import ctypes\nctypes.string_at(0)\ndef hook(PARAMS): return {'allow': True}",
    "import os\nos.closerange(3, 256)\ndef hook(PARAMS): return {'allow': True}",
    "raise KeyboardInterrupt\ndef hook(PARAMS): return {'allow': True}",
    "def deeper(): deeper()\ndeeper()\ndef hook(PARAMS): return {'allow': True}",
    "def hook(PARAMS): return {'allow': True}\ndel hook",
    "def hook(PARAMS): return {'allow': True}\nhook = 5",
    "def hook(PARAMS): return {'allow': True}\nhook = None",
    "def hook(PARAMS): return {'allow': True}\nhook = {'allow': True}",
    "def hook(PARAMS): return {'allow': True}\nhook = lambda: {'allow': True}",
    "def wrong(f): return 5\n@wrong\ndef hook(PARAMS): return {'allow': True}",
    "def wrong(f): raise ValueError\n@wrong\ndef hook(PARAMS): return {'allow': True}",
    "def wrong(f):\n    def other(*a, **k): raise ValueError\n    return other\n@wrong\ndef hook(PARAMS): return {'allow': True}",
    "def hook(): return {'allow': True}",
    "def hook(a, b, c, d, e): return {'allow': True}",
    "def hook(PARAMS, *, needed): return {'allow': True}",
    "def hook(PARAMS): yield {'allow': True}",
    "async def hook(PARAMS): yield {'allow': True}",
    "class hook:\n    def __init__(self, *all): raise ValueError",
    "class Meta(type):\n    def __call__(self, *all): raise ValueError\nclass hook(metaclass=Meta): pass",
    "import sys\nclass Module(type(sys)):\n    def __getattribute__(self, name): raise ValueError\nsys.modules[__name__].__class__ = Module\ndef hook(PARAMS): raise ValueError",
    "import builtins\nbuiltins.__import__ = None\ndef hook(PARAMS):\n    import decimal\n    return {'allow': True}",
    "import threading\nthreading.Thread.start = None\ndef hook(PARAMS): raise ValueError",
    "import asyncio\nasyncio.new_event_loop = asyncio.run = None\nasync def hook(PARAMS): raise ValueError",
    "import asyncio\nasync def hook(PARAMS):\n    asyncio.get_running_loop().stop()\n    await asyncio.sleep(0)\n    raise ValueError",
    "import asyncio\nasync def hook(PARAMS):\n    asyncio.current_task().cancel()\n    await asyncio.sleep(1)\n    return {'allow': True}",
    "import asyncio\nasync def hook(PARAMS):\n    for task in asyncio.all_tasks(): task.cancel()\n    await asyncio.sleep(1)\n    return {'allow': True}",
    "import asyncio\nasync def hook(PARAMS):\n    asyncio.get_running_loop().close()\n    return {'allow': True}",
    "import asyncio\nasync def hook(PARAMS):\n    asyncio.run(asyncio.sleep(0))\n    return {'allow': True}",
    "import asyncio\nasync def hook(PARAMS):\n    await asyncio.wait_for(asyncio.sleep(9), 0.01)\n    return {'allow': True}",
    "import asyncio\nasync def later(): raise ValueError\nasync def hook(PARAMS):\n    async with asyncio.TaskGroup() as group: group.create_task(later())\n    return {'allow': True}",
];

/// The beginning of each file but those of [`MODULES`].
pub(super) const PRELUDE: &str = "\
import asyncio, atexit, builtins, concurrent.futures, ctypes, decimal, gc, json, os, resource, signal, subprocess
import sys, threading, time, types
real_write = os.write
def strew(data):
    for fd in range(3, 64):
        try: real_write(fd, data)
        except OSError: pass
def frame(body): return len(body).to_bytes(4, 'little') + body
def circular():
    all = {'allow': True}
    all['state'] = all
    return all
def deep():
    all = {}
    for _ in range(5000): all = {'a': all}
    return {'allow': True, 'state': all}
class Lying(dict):
    def items(self): return [('allow', 5)]
    def keys(self): return ['allow']
    def __getitem__(self, key): return 5
    def __len__(self): return 1
    def __iter__(self): return iter(['allow'])
class Raising(dict):
    def __init__(self): super().__init__(deny='no')
    def items(self): raise SystemExit(0)
    __iter__ = keys = __len__ = __getitem__ = items
class Endless(dict):
    def __bool__(self): raise ValueError
async def fails(): raise ValueError
";
