//! What the hooks of the matrix do, as a person would write them.

use tenure_core::hook::Point;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Command,
    Python,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Agrees,
    Denies,
    SaysNothing,
    Raises,
    Exits1,
    Exits2,
    OsExit,
    Missing,
    NotExecutable,
    Crashes,
    Hangs,
    Nonsense,
    Floods,
    ClosesPipes,
    NotUtf8,
}

/// Whether a hook may say that what it stands before may happen.
pub(crate) fn decides(point: Point) -> bool {
    !point.is_end() && point != Point::OnTransition
}

/// The command as a shell script.
pub(crate) fn script(deed: Deed, point: Point) -> String {
    let body = match deed {
        Deed::Agrees if decides(point) => r#"cat >/dev/null; echo '{"allow": true}'"#,
        Deed::Agrees => "cat >/dev/null; echo '{}'",
        Deed::Denies => r#"cat >/dev/null; echo '{"deny": "not today"}'"#,
        Deed::SaysNothing => "cat >/dev/null",
        Deed::Exits1 => "cat >/dev/null; exit 1",
        Deed::Exits2 => r#"echo '{"allow": true}'; exit 2"#,
        Deed::Crashes => "kill -SEGV $$",
        Deed::Hangs => "trap '' TERM INT; (trap '' TERM INT; sleep 600) & sleep 600",
        Deed::Nonsense => "echo 'sure, go ahead'",
        Deed::Floods => "head -c 100000000 /dev/zero | tr '\\0' 'x'",
        Deed::ClosesPipes => "exec <&- >&- 2>&-; exit 0",
        Deed::NotUtf8 => "printf '{\"log\": \"\\377\\376\"}'",
        Deed::Missing | Deed::NotExecutable => "exit 0",
        Deed::Raises | Deed::OsExit => unreachable!("only Python does that"),
    };
    format!("#!/bin/sh\n{body}\n")
}

/// The hook as a Python file with the function `hook`.
pub(crate) fn module(deed: Deed, point: Point) -> String {
    let wraps = matches!(point, Point::WrapToolCall | Point::WrapModelCall);
    let parameters = if wraps { "ctx, next" } else { "ctx" };
    let agree = match (wraps, decides(point)) {
        (true, _) => "return await next()",
        (false, true) => "return {'allow': True}",
        (false, false) => "return None",
    };
    let not_utf8 = format!("os.write(1, b'\\xff\\xfe\\n'); {agree}");
    let (keyword, body) = match deed {
        Deed::Agrees => ("async def", agree),
        Deed::Denies => ("async def", "return {'deny': 'not today'}"),
        Deed::Raises => ("async def", "raise ValueError('boom')"),
        Deed::Exits1 => ("async def", "sys.exit(1)"),
        Deed::Exits2 => ("def", "sys.exit(2)"),
        Deed::OsExit => ("def", "os._exit(3)"),
        Deed::Crashes => ("def", "signal.raise_signal(signal.SIGSEGV)"),
        Deed::Hangs => ("def", "hang()"),
        Deed::Nonsense => ("async def", "return {'nonsense': 1}"),
        Deed::Floods => ("async def", "return {'log': 'x' * 100_000_000}"),
        Deed::ClosesPipes => ("def", "os.closerange(0, 256)"),
        Deed::NotUtf8 => ("async def", not_utf8.as_str()),
        Deed::SaysNothing => ("async def", "{'deny': 'without return'}"),
        Deed::Missing => ("def", "return None"),
        Deed::NotExecutable => unreachable!("only commands do that"),
    };
    format!(
        "import os\nimport signal\nimport sys\nimport time\n\n\n\
         def hang():\n    signal.signal(signal.SIGTERM, signal.SIG_IGN) if is_main() else None\n    \
         os.fork()\n    time.sleep(600)\n\n\n\
         def is_main():\n    import threading\n\n    \
         return threading.current_thread() is threading.main_thread()\n\n\n\
         {keyword} hook({parameters}):\n    {body}\n"
    )
}
