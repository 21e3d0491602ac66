//! What ends something in a chat: Ctrl-C while a server or new agents are waited for, a question that
//! is left, a pipe, and files that change behind a question.

use crate::support::{Ran, Sandbox, nobody_is_left_with};
use std::io::Write as _;
use std::process::Stdio;

const CARD: &str = "---
name: clerk
model: script:clerk.json
function_tools: [tools.py:write_note]
lifecycle_hooks: { on_start: hooks.py:start, on_shutdown: hooks.py:stop }
hooks:
  - { on: before_model, run: hooks.py:busy }
  - { on: after_chat, run: hooks.py:after }
  - { on: wrap_tool_call, run: hooks.py:approve, policy: deny }
---
x
";
const SCRIPT: &str = r#"{"turns": [
  {"when": "note", "replies": [{"call": "write_note", "with": {"text": "milk"}}, "Noted: {result}"]},
  {"when": "wait", "replies": [{"text": "late", "wait": "60s"}]},
  {"when": "", "replies": ["You said <{input}>"]}]}"#;
const TOOLS: &str =
    "def write_note(text: str) -> str:\n    \"\"\"Writes a note.\"\"\"\n    return 'written'\n";
const HOOKS: &str = "import asyncio


def log(line):
    open('log.txt', 'a').write(line + '\\n')


async def start(ctx):
    log('start')


def stop(ctx):
    log('stop')


def busy(ctx):
    log('busy')


async def after(ctx):
    log('after ' + str(ctx.outcome))


async def approve(ctx, next):
    answer = await ctx.ask('Write this note?', action=ctx.arguments)
    return await next() if answer.decision == 'approve' else {'deny': 'no'}
";
/// Hooks whose agents take forever to start.
const SLOW: (&str, &str) = ("log('start')", "log('slow')\n    await asyncio.sleep(300)");
/// A server that never says what its prompt is.
const SERVER: &str = "import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if 'id' not in message or 'method' not in message:
        continue
    method, answer = message['method'], {'jsonrpc': '2.0', 'id': message['id']}
    if method == 'prompts/get':
        open('asked.txt', 'w').write('asked\\n')
        continue
    if method == 'initialize':
        answer['result'] = {
            'protocolVersion': message['params']['protocolVersion'],
            'capabilities': {'prompts': {}},
            'serverInfo': {'name': 'mute', 'version': '1'},
        }
    elif method == 'prompts/list':
        answer['result'] = {'prompts': [{'name': 'greet'}]}
    elif method == 'ping':
        answer['result'] = {}
    else:
        answer['error'] = {'code': -32601, 'message': 'unknown method'}
    print(json.dumps(answer), flush=True)
";
/// Nothing is typed.
const NOTHING: &str = "= ";
const PROMPT: &str = "clerk> ";

fn office() -> Sandbox {
    Sandbox::with(&[
        ("clerk.md", CARD),
        ("clerk.json", SCRIPT),
        ("tools.py", TOOLS),
        ("hooks.py", HOOKS),
    ])
}

/// Waits until a file of the project holds a word.
fn until(sandbox: &Sandbox, word: &str, file: &str) -> String {
    format!("$ until grep -qs {word} {}; do sleep 0.02; done", sandbox.path(file).display())
}

fn log(sandbox: &Sandbox) -> Vec<String> {
    sandbox.read("log.txt").lines().map(str::to_owned).collect()
}

#[test]
fn ctrl_c_ends_the_wait_for_a_prompt_of_a_server() {
    let sandbox = office();
    sandbox.write("tenure.toml", "[mcp.servers.mute]\ncommand = [\"python3\", \"server.py\"]\n");
    sandbox.write("server.py", SERVER);
    sandbox.write("clerk.md", &CARD.replace("---\nx\n", "servers: [mute]\n---\nx\n"));
    let asked = until(&sandbox, "asked", "asked.txt");
    let shown = sandbox.on_terminal(
        &["chat", ".", "--trust"],
        &[
            (PROMPT, "/prompt mute/greet"),
            ("", asked.as_str()),
            ("", "^C"),
            ("cancelled", NOTHING),
            (PROMPT, "hello"),
            ("You said <hello>", NOTHING),
            (PROMPT, "^D"),
        ],
    );
    let shown = shown.exits(0);
    assert_eq!(log(&sandbox), ["start", "busy", "after ok", "stop"], "{shown}");
    nobody_is_left_with(&sandbox.project().to_string_lossy());
}

#[test]
fn ctrl_c_ends_a_reload_and_the_old_agents_stay() {
    let sandbox = office();
    sandbox.write("hooks.slow", &HOOKS.replace(SLOW.0, SLOW.1));
    let slow = until(&sandbox, "slow", "log.txt");
    let shown = sandbox.on_terminal(
        &["chat", ".", "--trust", "--watch"],
        &[
            (PROMPT, "$ cp hooks.slow .h.tmp && mv .h.tmp hooks.py"),
            ("", slow.as_str()),
            ("", "^C"),
            ("cancelled:", NOTHING),
            ("the running agents stay as they are", NOTHING),
            (PROMPT, "hello"),
            ("You said <hello>", NOTHING),
            (PROMPT, "^D"),
        ],
    );
    let shown = shown.exits(0);
    let ends: Vec<_> = log(&sandbox).into_iter().filter(|line| line != "busy").collect();
    assert_eq!(ends, ["start", "slow", "stop", "after ok", "stop"], "{shown}");
    nobody_is_left_with(&sandbox.project().to_string_lossy());
}

#[test]
fn ctrl_c_ends_the_question_of_a_reload_and_the_keyboard_is_free() {
    let sandbox = office();
    sandbox.write("hooks.two", &format!("{HOOKS}\n# changed\n"));
    let shown = sandbox.on_terminal(
        &["chat", ".", "--watch"],
        &[
            ("Trust it and go on?", "y"),
            (PROMPT, "$ cp hooks.two .h.tmp && mv .h.tmp hooks.py"),
            ("press Enter to look at it", ""),
            ("Trust it and go on?", "^C"),
            ("cancelled:", NOTHING),
            ("the running agents stay as they are", NOTHING),
            (PROMPT, "hello"),
            ("You said <hello>", NOTHING),
            (PROMPT, "^D"),
        ],
    );
    let shown = shown.exits(0);
    assert_eq!(log(&sandbox), ["start", "busy", "after ok", "stop"], "{shown}");
    sandbox.run(&["trust", "status"]).exits(4);
}

#[test]
fn who_leaves_a_question_cancels_the_turn_and_leaves_the_chat() {
    let sandbox = office();
    let shown = sandbox.on_terminal(
        &["chat", ".", "--trust"],
        &[(PROMPT, "a note please"), ("re[s]pond: ", "^D"), ("CANCELLED", NOTHING)],
    );
    let shown = shown.exits(0);
    // The model is not asked again, neither with a result nor with a refusal.
    assert_eq!(log(&sandbox), ["start", "busy", "after ok", "stop"], "{shown}");
    assert!(!shown.stdout.contains("Noted"), "{shown}");
}

#[test]
fn in_a_piped_chat_ctrl_c_stops_the_program() {
    let sandbox = office();
    let mut command = sandbox.command(&["chat", ".", "--trust"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"please wait\nand then?\n").expect("it reads");
    while !log(&sandbox).contains(&"busy".to_owned()) {
        assert!(child.try_wait().expect("its state").is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it lives");
    // Nothing more is said to it, so that it ends whatever it makes of that.
    drop(stdin);
    let ran = Ran::of(child.wait_with_output().expect("it ends")).exits(130);
    assert_eq!(ran.stdout, "", "{ran}");
    assert_eq!(log(&sandbox), ["start", "busy", "after cancelled", "stop"], "{ran}");
}

/// A chat that runs a command, and what changes that command.
fn audited() -> (Sandbox, String) {
    let sandbox = office();
    let hook = "  - { on: before_agent, run: [\"sh\", \"audit.sh\"] }\n---\nx\n";
    sandbox.write("clerk.md", &CARD.replace("---\nx\n", hook));
    sandbox.write("audit.sh", "cat > /dev/null; echo '{}'\n");
    (sandbox, "$ echo 'touch ran.txt' >> audit.sh".to_owned())
}

#[test]
fn g13_a_file_that_changes_while_a_chat_asks_for_trust_does_not_run() {
    let (sandbox, change) = audited();
    let talk = [("Trust it and go on?", change.as_str()), ("", "y"), ("changed since", NOTHING)];
    let shown = sandbox.on_terminal(&["chat", "."], &talk).exits(4);
    assert!(shown.stdout.contains("audit.sh"), "{shown}");
    assert_eq!(log(&sandbox), Vec::<String>::new(), "{shown}");
}

#[test]
fn g13_a_file_that_changes_while_a_reload_asks_for_trust_is_not_taken() {
    let (sandbox, change) = audited();
    let shown = sandbox.on_terminal(
        &["chat", ".", "--watch"],
        &[
            ("Trust it and go on?", "y"),
            (PROMPT, "$ echo '# another' >> audit.sh"),
            ("press Enter to look at it", ""),
            ("Trust it and go on?", change.as_str()),
            ("", "y"),
            ("the project changed since it was read", NOTHING),
            ("not reloaded:", NOTHING),
            // And that change is told as well.
            ("press Enter to look at it", "^D"),
            ("Trust it and go on?", "n"),
        ],
    );
    let shown = shown.exits(0);
    assert_eq!(log(&sandbox), ["start", "after ok", "stop"], "no other agent was started: {shown}");
}
