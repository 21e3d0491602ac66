//! The program that a worker runs.

/// Reads the worker's source and the package that hooks import, each behind its length. The package
/// is JSON: pairs of a name and a source.
pub(super) const BOOTSTRAP: &str = "\
import os
def r(n):
    b = b''
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: os._exit(70)
        b += c
    return b
def t(): return r(int.from_bytes(r(4), 'little')).decode()
exec(compile(t(), '<tenure worker>', 'exec')); main(t())
";

/// The worker: its parts, one behind the other, and as a text those that it compiles when it first
/// needs them. The order is also that of `scripts/python-checks`.
pub(super) const WORKER: &str = concat!(
    include_str!("worker/frames.py"),
    include_str!("worker/output.py"),
    include_str!("worker/values.py"),
    include_str!("worker/later.py"),
    include_str!("worker/context.py"),
    include_str!("worker/questions.py"),
    include_str!("worker/modules.py"),
    include_str!("worker/loop.py"),
    include_str!("worker/calls.py"),
    include_str!("worker/replies.py"),
    include_str!("worker/messages.py"),
    include_str!("worker/tool_hooks.py"),
    include_str!("worker/workflow.py"),
    include_str!("worker/main.py"),
    "\nLATER = r'''",
    include_str!("worker/convert.py"),
    include_str!("worker/records.py"),
    include_str!("worker/hints.py"),
    include_str!("worker/plain.py"),
    "'''\n",
);

/// The package that hooks import: its modules by name, each behind those that it imports.
pub(super) const PACKAGE: [(&str, &str); 6] = [
    ("tenure.views", include_str!("../../../../python/tenure/views.py")),
    ("tenure.replies", include_str!("../../../../python/tenure/replies.py")),
    ("tenure.tools", include_str!("../../../../python/tenure/tools.py")),
    ("tenure.contexts", include_str!("../../../../python/tenure/contexts.py")),
    ("tenure.lifecycle", include_str!("../../../../python/tenure/lifecycle.py")),
    ("tenure", include_str!("../../../../python/tenure/__init__.py")),
];
