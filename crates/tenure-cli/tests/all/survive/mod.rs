//! Runs that survive: the program is killed, a person is waited for, a conversation goes on.

mod asks;
mod kills;
mod places;
mod strangers;
mod talks;

use crate::support::{PATIENCE, Ran, Sandbox};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tenure_core::engine::{RunInfo, RunQuery};
use tenure_store::{AskInfo, AskQuery, Store, StoreKeys};

/// How many calls the counting agent makes.
const CALLS: usize = 5;

const COUNTER: &str = "---\nname: counter\nmodel: script:counter.json\nfunction_tools:\n  - { entrypoint: tools.py:count, effect: idempotent }\nlifecycle_hooks: { on_start: hooks.py:start, on_shutdown: hooks.py:stop }\nhooks:\n  - { on: after_agent, run: hooks.py:after }\n---\nx\n";

const TOOLS: &str = "import time


def note(line):
    with open('effects.txt', 'a') as file:
        file.write(line + '\\n')


def count(n: int) -> str:
    \"\"\"Counts.\"\"\"
    note(f'begin {n}')
    time.sleep(0.05)
    note(f'done {n}')
    return f'counted {n}'
";

const HOOKS: &str = "def note(line):
    with open('ends.txt', 'a') as file:
        file.write(line + '\\n')


def start(ctx):
    pass


def stop(ctx):
    note('stop')


def after(ctx):
    note('after')
";

/// An agent that takes its time and leaves a line for everything that it does.
fn counter(config: &str) -> Sandbox {
    let calls = (1..=CALLS)
        .map(|n| format!("{{\"call\": \"count\", \"with\": {{\"n\": {n}}}, \"wait\": \"60ms\"}}"));
    let script = format!("[{}, \"the end: {{result}}\"]", calls.collect::<Vec<_>>().join(", "));
    Sandbox::with(&[
        ("tenure.toml", config),
        ("counter.md", COUNTER),
        ("counter.json", &script),
        ("tools.py", TOOLS),
        ("hooks.py", HOOKS),
    ])
}

/// An agent whose tool a person has to approve.
fn clerk(config: &str) -> Sandbox {
    let card = "---\nname: clerk\nmodel: script:clerk.json\nfunction_tools: [tools.py:write_note]\nhooks:\n  - { on: wrap_tool_call, run: hooks.py:approve, policy: deny }\n---\nx\n";
    let hooks = "async def approve(ctx, next):
    answer = await ctx.ask('Write this note?', action=ctx.arguments)
    if answer.decision == 'approve':
        return await next()
    return {'deny': answer.value}
";
    let tools = "def write_note(text: str) -> str:\n    \"\"\"Writes.\"\"\"\n    open('note.txt', 'a').write(text + '\\n')\n    return 'written'\n";
    let script =
        "[{\"call\": \"write_note\", \"with\": {\"text\": \"buy milk\"}}, \"the end: {result}\"]";
    Sandbox::with(&[
        ("tenure.toml", config),
        ("clerk.md", card),
        ("clerk.json", script),
        ("tools.py", tools),
        ("hooks.py", hooks),
    ])
}

fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Kills with -9, and waits until it is gone.
fn kill(mut child: Child) {
    child.kill().expect("it can be killed");
    child.wait().expect("it is over");
}

/// Waits until `done`.
#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn store(sandbox: &Sandbox) -> Store {
    let file = sandbox.path(".tenure/tenure.db");
    Store::open_existing_with(file, &keys(sandbox)).expect("it is recorded")
}

/// Where the user of a sandbox has the keys of stores.
fn keys(sandbox: &Sandbox) -> StoreKeys {
    StoreKeys::folder(sandbox.home().join("data/tenure/stores"))
}

fn runs(sandbox: &Sandbox) -> Vec<RunInfo> {
    store(sandbox).runs(&RunQuery::default()).expect("its runs")
}

fn only_run(sandbox: &Sandbox) -> RunInfo {
    let mut runs = runs(sandbox);
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

fn only_ask(sandbox: &Sandbox) -> AskInfo {
    let mut asks = store(sandbox).asks(&AskQuery::open()).expect("its questions");
    assert_eq!(asks.len(), 1, "{asks:?}");
    asks.remove(0)
}

/// How often a line is in a file.
fn times(sandbox: &Sandbox, file: &str, line: &str) -> usize {
    sandbox.read(file).lines().filter(|it| *it == line).count()
}

/// The last line of `--json`.
fn result(ran: &Ran) -> Value {
    ran.json_lines().pop().expect("a result")
}
