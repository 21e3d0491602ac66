//! Looking back: what runs left on record, answered and stopped from other terminals.

mod answers;
mod files;
mod person;
mod stops;
mod timeline;

use crate::support::{PATIENCE, Ran, Sandbox};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const CARD: &str = "---\nname: clerk\nmodel: script:clerk.json\nfunction_tools: [tools.py:write_note]\nlifecycle_hooks: { on_start: hooks.py:start, on_shutdown: hooks.py:stop }\nhooks:\n  - { on: wrap_tool_call, run: hooks.py:approve, policy: deny }\n---\nx\n";
const SCRIPT: &str =
    "[{\"call\": \"write_note\", \"with\": {\"text\": \"buy milk\"}}, \"the end: {result}\"]";
const TOOLS: &str = "def write_note(text: str) -> str:\n    \"\"\"Writes.\"\"\"\n    open('note.txt', 'a').write(text + '\\n')\n    return 'written'\n";
const HOOKS: &str = "async def approve(ctx, next):
    answer = await ctx.ask('Write this note?', action=ctx.arguments)
    if answer.decision == 'approve':
        return await next()
    if answer.decision == 'edit':
        return await next(answer.value)
    return {'deny': answer.value}


def start(ctx):
    print('up')


def stop(ctx):
    open('stopped.txt', 'a').write('yes\\n')
";

/// A project with an agent whose tool a person has to approve.
fn clerk() -> Sandbox {
    Sandbox::with(&[
        ("tenure.toml", ""),
        ("clerk.md", CARD),
        ("clerk.json", SCRIPT),
        ("tools.py", TOOLS),
        ("hooks.py", HOOKS),
    ])
}

const RUN: &[&str] = &["run", "clerk.md", "-m", "go", "--trust", "-q"];
const RESUME: &[&str] = &["run", "--resume", "--trust", "-q"];

/// The clerk, who has asked and waits. Its question's id.
fn waiting() -> (Sandbox, String) {
    let sandbox = clerk();
    sandbox.run(RUN).exits(7);
    let asks = sandbox.run(&["asks", "--json"]).exits(0).json_lines();
    assert_eq!(asks.len(), 1, "{asks:?}");
    let id = asks[0]["id"].as_str().expect("an id").to_owned();
    (sandbox, id)
}

/// The clerk after a whole run: asked, approved from elsewhere, gone on.
fn done() -> Sandbox {
    let (sandbox, ask) = waiting();
    sandbox.run(&["answer", &ask, "approve", "--by", "ada"]).exits(0);
    sandbox.run(RESUME).exits(0);
    sandbox
}

/// The signature of an answer: the system's user, with the given name beside it.
fn signed(name: &str) -> String {
    format!("{} ({name})", user())
}

/// The name of the system's user.
fn user() -> String {
    let output = std::process::Command::new("id").arg("-un").output().expect("`id` is there");
    String::from_utf8(output.stdout).expect("a name").trim().to_owned()
}

fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The columns of a line without its times: what a row of a timeline says.
fn rows(ran: &Ran) -> Vec<String> {
    let row = |line: &str| {
        let label = [
            "life", "run", "agent", "chat", "turn", "hook", "model", "tool", "ask", "step", "log",
            "phase", "event",
        ];
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().take(4).position(|word| label.contains(word))?;
        Some(words[at..].join(" "))
    };
    ran.stdout.lines().skip_while(|line| !line.is_empty()).filter_map(row).collect()
}
