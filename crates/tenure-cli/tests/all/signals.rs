//! Signals: the first one drains, the second one kills.

use crate::support::{PATIENCE, Ran, Sandbox, nobody_is_left_with};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const CARD: &str = "---\nname: a\nmodel: script:a.json\nlifecycle_hooks:\n  on_start: hooks.py:start\n  on_shutdown: hooks.py:stop\n---\nx\n";
const HOOKS: &str = "def start(ctx):
    pass


def stop(ctx):
    open('stopped.txt', 'w').write('yes\\n')


async def busy(ctx):
    open('busy.txt', 'w').write('yes\\n')
";

/// An agent in the middle of a model call that takes a minute.
fn busy() -> Sandbox {
    let card =
        CARD.replace("---\nx", "hooks:\n  - { on: before_model, run: hooks.py:busy }\n---\nx");
    Sandbox::with(&[
        ("a.md", &card),
        ("hooks.py", HOOKS),
        ("a.json", "[{\"text\": \"late\", \"wait\": \"60s\"}]"),
    ])
}

fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

fn send(child: &Child, signal: rustix::process::Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("a process id"), signal).expect("it lives");
}

fn end(child: Child) -> Ran {
    Ran::of(child.wait_with_output().expect("it ends"))
}

#[test]
fn the_first_signal_stops_the_run_and_its_shutdown_hooks_run() {
    use rustix::process::Signal;
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let sandbox = busy();
        let child = start(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]);
        sandbox.wait_for("busy.txt");
        let began = Instant::now();
        send(&child, signal);
        let ran = end(child).exits(code).says("CANCELLED");
        assert!(began.elapsed() < Duration::from_secs(25), "{:?}\n{ran}", began.elapsed());
        assert_eq!(sandbox.read("stopped.txt"), "yes\n", "{ran}");
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn a_run_that_was_stopped_still_tells_its_result() {
    let sandbox = busy();
    let child = start(&sandbox, &["run", "a.md", "-m", "hi", "--trust", "--json", "-q"]);
    sandbox.wait_for("busy.txt");
    send(&child, rustix::process::Signal::TERM);
    let ran = end(child).exits(143);
    let result = ran.json_lines().pop().expect("a result");
    assert_eq!(result["type"], "result");
    assert_eq!(result["outcome"], "cancelled");
    assert_eq!(result["exit_code"], 143);
}

#[test]
fn nohup_keeps_a_run_alive() {
    let sandbox = busy();
    sandbox.write("a.json", "[{\"text\": \"done\", \"wait\": \"500ms\"}]");
    let program = env!("CARGO_BIN_EXE_tenure");
    let mut command =
        sandbox.other("nohup", &[program, "run", "a.md", "-m", "hi", "--trust", "-q"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("nohup");
    sandbox.wait_for("busy.txt");
    send(&child, rustix::process::Signal::HUP);
    let ran = end(child).exits(0);
    assert_eq!(ran.stdout, "done\n");
}

#[test]
fn the_first_ctrl_c_says_what_the_second_one_does() {
    let sandbox = busy();
    let child = start(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]);
    sandbox.wait_for("busy.txt");
    send(&child, rustix::process::Signal::INT);
    end(child).exits(130).says("stopping; press Ctrl-C again to kill");
}

#[test]
fn a_signal_during_the_start_rolls_it_back() {
    let hooks = "import time


def start(ctx):
    open('busy.txt', 'w').write('yes\\n')
    time.sleep(60)


def stop(ctx):
    open('stopped.txt', 'w').write('yes\\n')
";
    let sandbox = Sandbox::with(&[("a.md", CARD), ("hooks.py", hooks), ("a.json", "[\"x\"]")]);
    let child = start(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]);
    sandbox.wait_for("busy.txt");
    send(&child, rustix::process::Signal::TERM);
    let ran = end(child).exits(143);
    assert_eq!(sandbox.read("stopped.txt"), "yes\n", "{ran}");
    nobody_is_left_with(&sandbox.project().to_string_lossy());
}

#[test]
fn the_second_signal_kills_a_hook_that_hangs_and_everything_it_started() {
    let hooks = "import subprocess
import time


def start(ctx):
    pass


def stop(ctx):
    subprocess.Popen(['sleep', '3600'], start_new_session=True)
    open('stopping.txt', 'w').write('yes\\n')
    time.sleep(3600)


async def busy(ctx):
    open('busy.txt', 'w').write('yes\\n')
";
    let card = CARD
        .replace("on_shutdown: hooks.py:stop", "on_shutdown: { run: hooks.py:stop, timeout: 300s }")
        .replace("---\nx", "hooks:\n  - { on: before_model, run: hooks.py:busy }\n---\nx");
    let script = "[{\"text\": \"late\", \"wait\": \"60s\"}]";
    let sandbox = Sandbox::with(&[("a.md", &card), ("hooks.py", hooks), ("a.json", script)]);
    let child = start(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]);
    sandbox.wait_for("busy.txt");
    send(&child, rustix::process::Signal::INT);
    sandbox.wait_for("stopping.txt");
    let began = Instant::now();
    send(&child, rustix::process::Signal::INT);
    let ran = end(child).exits(130);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}\n{ran}", began.elapsed());
    nobody_is_left_with(&sandbox.home().to_string_lossy());
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn a_command_that_hangs_is_killed_too() {
    let card = "---\nname: a\nmodel: passthrough\nhooks:\n  - { on: before_agent, run: [\"sh\", \"hang.sh\"], timeout: 300s }\n---\nx\n";
    let hang = "echo yes > busy.txt\nsleep 3600 &\nsleep 3600\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("hang.sh", hang)]);
    let child = start(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]);
    sandbox.wait_for("busy.txt");
    send(&child, rustix::process::Signal::INT);
    let ran = end(child).exits(130);
    nobody_is_left_with(&sandbox.home().to_string_lossy());
    drop(ran);
}

/// Ends within the time, or the test fails and the program is killed.
#[track_caller]
fn ends_within(mut child: Child, time: Duration) -> Option<i32> {
    let until = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status.code();
        }
        if Instant::now() > until {
            child.kill().expect("it can be killed");
            panic!("it did not end within {time:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Hooks that print far more than any pipe holds.
const LOUD: &str = "import time


def stop(ctx):
    open('stopping.txt', 'w').write('yes\\n')
    time.sleep(REST)
    open('stopped.txt', 'w').write('yes\\n')


async def busy(ctx):
    for _ in range(5000):
        print('x' * 200)
    open('busy.txt', 'w').write('yes\\n')
";

/// An agent whose hook has filled both streams, which nobody reads.
fn loud(rest: &str) -> Sandbox {
    let card = CARD
        .replace("  on_start: hooks.py:start\n", "")
        .replace("on_shutdown: hooks.py:stop", "on_shutdown: { run: hooks.py:stop, timeout: 300s }")
        .replace("---\nx", "hooks:\n  - { on: before_model, run: hooks.py:busy }\n---\nx");
    Sandbox::with(&[
        ("a.md", &card),
        ("hooks.py", &LOUD.replace("REST", rest)),
        ("a.json", "[{\"text\": \"late\", \"wait\": \"60s\"}]"),
    ])
}

#[test]
fn a_stream_that_nobody_reads_does_not_keep_a_run_from_being_stopped() {
    for more in [&["--trust"][..], &["--trust", "--json", "-q"][..]] {
        let sandbox = loud("0");
        let mut child = start(&sandbox, &[&["run", "a.md", "-m", "hi"], more].concat());
        // Kept open, and never read.
        let pipes = (child.stdout.take(), child.stderr.take());
        sandbox.wait_for("busy.txt");
        send(&child, rustix::process::Signal::TERM);
        assert_eq!(ends_within(child, Duration::from_secs(10)), Some(143), "{more:?}");
        assert_eq!(sandbox.read("stopped.txt"), "yes\n");
        drop(pipes);
    }
}

#[test]
fn a_stream_that_nobody_reads_does_not_keep_the_second_signal_from_killing() {
    let sandbox = loud("3600");
    let mut child = start(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]);
    let pipes = (child.stdout.take(), child.stderr.take());
    sandbox.wait_for("busy.txt");
    send(&child, rustix::process::Signal::TERM);
    sandbox.wait_for("stopping.txt");
    send(&child, rustix::process::Signal::TERM);
    assert_eq!(ends_within(child, Duration::from_secs(10)), Some(143));
    assert_eq!(sandbox.read("stopped.txt"), "");
    nobody_is_left_with(&sandbox.home().to_string_lossy());
    drop(pipes);
}

#[test]
fn a_reader_that_pauses_loses_nothing() {
    let sandbox = loud("0");
    sandbox.write("a.json", "[\"done\"]");
    // More than a pipe holds, and less than is kept of a hook.
    sandbox.write("hooks.py", &LOUD.replace("REST", "0").replace("5000", "1000"));
    let mut child = start(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]);
    sandbox.wait_for("stopped.txt");
    // Longer than anybody is waited for once the program is told to end.
    std::thread::sleep(Duration::from_millis(2500));
    assert!(child.try_wait().expect("it can be waited for").is_none(), "it waits for its reader");
    let ran = end(child).exits(0).says("Summary");
    assert_eq!(ran.stderr.lines().filter(|line| line.contains("busy: xxx")).count(), 1000);
}

#[test]
fn the_second_ctrl_c_leaves_the_terminal_on_a_fresh_line() {
    let sandbox = loud("3600");
    sandbox.write("hooks.py", &LOUD.replace("REST", "3600").replace("5000", "1"));
    let talk = [("model call 1", "^C"), ("hooks.py:stop at on_shutdown", "^C")];
    let shown = sandbox.on_terminal(&["run", "a.md", "-m", "hi", "--trust"], &talk).exits(130);
    assert!(shown.stdout.ends_with("\r\n"), "{shown:?}");
}
