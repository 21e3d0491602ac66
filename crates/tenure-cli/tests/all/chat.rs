//! `tenure chat` on a terminal: a person who types, waits, cancels, answers and leaves.

use crate::support::{Ran, Sandbox};

const CARD: &str = "---
name: clerk
default: true
model: script:clerk.json
function_tools: [tools.py:write_note]
lifecycle_hooks: { on_start: hooks.py:start, on_shutdown: hooks.py:stop }
hooks:
  - { on: before_chat, run: hooks.py:before }
  - { on: after_chat, run: hooks.py:after }
  - { on: before_model, run: hooks.py:busy }
  - { on: wrap_tool_call, run: hooks.py:approve, policy: deny }
---
x
";
const COOK: &str = "---\nname: cook\nmodel: passthrough\n---\nx\n";
const SCRIPT: &str = r#"{"turns": [
  {"when": "note", "replies": [
    {"text": "I will write.", "call": "write_note", "with": {"text": "buy milk"}}, "Noted: {result}"]},
  {"when": "wait", "replies": [{"text": "late", "wait": "60s"}]},
  {"when": "fail", "replies": [{"error": "the model is ill"}]},
  {"when": "", "replies": ["You said <{input}>"]}]}"#;
const TOOLS: &str = "def write_note(text: str) -> str:\n    \"\"\"Writes a note.\"\"\"\n    open('note.txt', 'w').write(text + '\\n')\n    return 'written'\n";
const HOOKS: &str = "def log(line):
    open('log.txt', 'a').write(line + '\\n')


def start(ctx):
    ctx.state['mood'] = 'good'


def stop(ctx):
    log('stop')


async def before(ctx):
    log('before')
    ctx.context_variables['topic'] = 'notes'


async def after(ctx):
    log('after ' + str(ctx.outcome))


async def busy(ctx):
    log('busy')


async def approve(ctx, next):
    answer = await ctx.ask('Write this note?', action=ctx.arguments)
    return await next() if answer.decision == 'approve' else {'deny': 'no'}
";
/// Nothing is typed.
const NOTHING: &str = "= ";
const PROMPT: &str = "clerk> ";

fn office() -> Sandbox {
    Sandbox::with(&[
        ("clerk.md", CARD),
        ("cook.md", COOK),
        ("clerk.json", SCRIPT),
        ("tools.py", TOOLS),
        ("hooks.py", HOOKS),
    ])
}

fn chat(sandbox: &Sandbox, talk: &[(&str, &str)]) -> Ran {
    sandbox.on_terminal(&["chat", ".", "--trust"], talk)
}

/// What the hooks wrote down, without what they do in every turn.
fn log(sandbox: &Sandbox) -> Vec<String> {
    let log = sandbox.read("log.txt");
    log.lines().filter(|line| *line != "busy").map(str::to_owned).collect()
}

#[test]
fn a_person_talks_and_leaves_and_it_was_one_chat() {
    let sandbox = office();
    let shown = chat(
        &sandbox,
        &[
            ("Ctrl-D leaves", NOTHING),
            (PROMPT, "hello"),
            ("You said <hello>", NOTHING),
            (PROMPT, "hello again"),
            ("You said <hello again>", NOTHING),
            (PROMPT, "^D"),
        ],
    )
    .exits(0);
    assert_eq!(log(&sandbox), ["before", "after ok", "stop"], "{shown}");
}

#[test]
fn a_message_may_have_several_lines() {
    let sandbox = office();
    let shown = chat(
        &sandbox,
        &[
            // Ctrl-J, a backslash, and Alt-Enter.
            (PROMPT, "= one\\ntwo\\\\\\rthree\\x1b\\rfour\\r"),
            ("You said <one\r\ntwo\r\nthree\r\nfour>", NOTHING),
            // A fence is open until it is closed.
            (PROMPT, "= ```\\rcode\\r```\\r"),
            ("You said <```\r\ncode\r\n```>", NOTHING),
            // What is pasted is one message, and its backslashes are its own.
            (PROMPT, "= \\x1b[200~a \\\\\\nb\\x1b[201~\\r"),
            ("You said <a \\\r\nb>", NOTHING),
            (PROMPT, "/exit"),
        ],
    );
    shown.exits(0);
}

#[test]
fn ctrl_c_cancels_the_turn_and_the_chat_goes_on() {
    let sandbox = office();
    let busy =
        format!("$ while [ ! -e {} ]; do sleep 0.02; done", sandbox.path("log.txt").display());
    let wait = format!(
        "$ while ! grep -q busy {}; do sleep 0.02; done",
        sandbox.path("log.txt").display()
    );
    let shown = chat(
        &sandbox,
        &[
            (PROMPT, "please wait"),
            ("", busy.as_str()),
            ("", wait.as_str()),
            ("", "^C"),
            ("CANCELLED", NOTHING),
            (PROMPT, "and now?"),
            ("You said <and now?>", NOTHING),
            // At the prompt it clears the line, and on an empty one it says how to leave.
            (PROMPT, "= half a thought\\x03"),
            (PROMPT, "^C"),
            ("Ctrl-D or /exit leaves", NOTHING),
            (PROMPT, "^D"),
        ],
    )
    .exits(0);
    assert_eq!(log(&sandbox), ["before", "after ok", "stop"], "{shown}");
    assert!(!shown.stdout.contains("late"), "{shown}");
}

#[test]
fn a_question_is_put_behind_what_was_said_and_the_editor_goes_on_after_it() {
    let sandbox = office();
    let shown = chat(
        &sandbox,
        &[
            (PROMPT, "a note please"),
            ("I will write.", NOTHING),
            ("Write this note?", NOTHING),
            ("re[s]pond: ", "a"),
            // What was called stays above the answer.
            ("TOOL", NOTHING),
            ("write_note", NOTHING),
            ("Noted: written", NOTHING),
            (PROMPT, "thanks"),
            ("You said <thanks>", NOTHING),
            (PROMPT, "another note"),
            ("re[s]pond: ", "^C"),
            ("CANCELLED", NOTHING),
            (PROMPT, "never mind"),
            ("You said <never mind>", NOTHING),
            (PROMPT, "^D"),
        ],
    )
    .exits(0);
    assert_eq!(sandbox.read("note.txt"), "buy milk\n", "{shown}");
    assert_eq!(log(&sandbox), ["before", "after ok", "stop"], "{shown}");
}

#[test]
fn ctrl_c_at_a_question_cancels_the_turn_and_leaves_nothing_on_the_screen() {
    let sandbox = office();
    let rounds = 3;
    let mut talk = Vec::new();
    for _ in 0..rounds {
        talk.extend([(PROMPT, "a note please"), ("re[s]pond: ", "^C"), ("CANCELLED", NOTHING)]);
    }
    // Long enough for something that is drawn over and over to be drawn.
    let rest = [(PROMPT, "$ sleep 0.4"), ("", "never mind"), ("<never mind>", NOTHING)];
    talk.extend(rest);
    talk.push((PROMPT, "^D"));
    let shown = chat(&sandbox, &talk).exits(0);
    for part in ["Traceback", "DENIED", "tenure.replies"] {
        assert!(!shown.stdout.contains(part), "{part}\n{shown}");
    }
    assert_eq!(shown.stdout.matches("CANCELLED").count(), rounds, "{shown}");
    for after in shown.stdout.split("CANCELLED").skip(1) {
        let before_next = after.split("Write this note?").next().unwrap_or_default();
        let prompt = before_next.find(PROMPT).expect("a prompt");
        let typed = before_next[prompt..].split('\n').next().unwrap_or_default();
        // Nobody waits any more, and nothing is drawn over the line that is typed.
        assert!(!before_next[..prompt].contains("waiting for you"), "{shown}");
        assert!(!typed.contains("\u{1b}[J"), "{typed:?}\n{shown}");
    }
    assert_eq!(sandbox.read("note.txt"), "", "{shown}");
}

#[test]
fn the_commands_show_what_there_is() {
    let sandbox = office();
    let shown = chat(
        &sandbox,
        &[
            (PROMPT, "/agents"),
            ("* clerk", NOTHING),
            (PROMPT, "/hooks before_chat"),
            ("hooks.py:before", NOTHING),
            (PROMPT, "/state"),
            ("\"good\"", NOTHING),
            ("\"notes\"", NOTHING),
            (PROMPT, "/tools"),
            ("Writes a note.", NOTHING),
            (PROMPT, "hello"),
            ("You said <hello>", NOTHING),
            (PROMPT, "/history"),
            ("You said <hello>", NOTHING),
            (PROMPT, "/usage"),
            ("TOTAL", NOTHING),
            (PROMPT, "/servers"),
            ("there are no servers", NOTHING),
            (PROMPT, "/clear"),
            ("forgotten", NOTHING),
            (PROMPT, "/history"),
            ("nothing has been said", NOTHING),
            (PROMPT, "@cook soup"),
            ("\nsoup", NOTHING),
            (PROMPT, "/agent cook"),
            ("cook> ", "/agnets"),
            ("did you mean /agents?", NOTHING),
            ("cook> ", "/ex\t"),
        ],
    )
    .exits(0);
    assert_eq!(log(&sandbox), ["before", "after ok", "stop"], "{shown}");
}

#[test]
fn what_was_said_is_remembered_by_the_next_program_and_by_nobody_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = office();
    chat(&sandbox, &[(PROMPT, "remember me"), ("<remember me>", NOTHING), (PROMPT, "^D")]).exits(0);
    let file = sandbox.home().join(".local/state/tenure/history");
    let mode = file.metadata().expect("it is kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Arrow up, and Ctrl-R.
    chat(
        &sandbox,
        &[
            (PROMPT, "= \\x1b[A\\r"),
            ("You said <remember me>", NOTHING),
            (PROMPT, "something else"),
            ("You said <something else>", NOTHING),
            (PROMPT, "= \\x12remem\\r"),
            ("You said <remember me>", NOTHING),
            (PROMPT, "^D"),
        ],
    )
    .exits(0);
}

#[test]
fn a_turn_that_fails_is_told_and_the_chat_goes_on() {
    let sandbox = office();
    let shown = chat(
        &sandbox,
        &[
            (PROMPT, "fail"),
            ("the model is ill", NOTHING),
            (PROMPT, "hello"),
            ("You said <hello>", NOTHING),
            (PROMPT, "^D"),
        ],
    )
    .exits(0);
    assert_eq!(log(&sandbox), ["before", "after ok", "stop"], "{shown}");
}

#[test]
fn a_signal_ends_the_chat_and_its_ends_run() {
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let kill = format!("$ kill -{signal} $PID");
        // In the middle of a turn.
        let sandbox = office();
        let wait = format!(
            "$ until grep -qs busy {}; do sleep 0.02; done",
            sandbox.path("log.txt").display()
        );
        let talk = [(PROMPT, "please wait"), ("", wait.as_str()), ("", kill.as_str())];
        let shown = chat(&sandbox, &talk).exits(code);
        assert_eq!(log(&sandbox), ["before", "after cancelled", "stop"], "{shown}");
        // While a line is typed: the terminal is left as it was found.
        let sandbox = office();
        let shown = chat(&sandbox, &[(PROMPT, "= half a li"), ("half", kill.as_str())]).exits(code);
        assert_eq!(log(&sandbox), ["before", "after cancelled", "stop"], "{shown}");
        assert!(shown.stdout.contains("\u{1b}[?2004l"), "{shown}");
    }
}

#[test]
fn the_third_ctrl_c_leaves_a_turn_that_does_not_end() {
    let sandbox = office();
    let hooks = HOOKS.replace(
        "async def approve",
        "async def hang(ctx):\n    import time\n    log('hanging')\n    time.sleep(2)\n\n\nasync def approve",
    );
    sandbox.write("hooks.py", &hooks);
    sandbox.write(
        "clerk.md",
        &CARD.replace("---\nx\n", "  - { on: after_agent, run: hooks.py:hang }\n---\nx\n"),
    );
    let until = |word: &str| {
        let log = sandbox.path("log.txt");
        format!("$ until grep -qs {word} {}; do sleep 0.02; done", log.display())
    };
    let (busy, hanging) = (until("busy"), until("hanging"));
    let shown = chat(
        &sandbox,
        &[
            (PROMPT, "please wait"),
            ("", busy.as_str()),
            ("", "^C"),
            ("", hanging.as_str()),
            ("", "^C"),
            ("the turn is still ending; press Ctrl-C again to leave", "^C"),
            ("stopping; press Ctrl-C again to kill", NOTHING),
        ],
    )
    .exits(130);
    let ends: Vec<_> = log(&sandbox).into_iter().filter(|line| line.starts_with("after")).collect();
    assert_eq!(ends, ["after cancelled"], "{shown}");
    assert_eq!(log(&sandbox).last().map(String::as_str), Some("stop"), "{shown}");
}

#[test]
fn who_leaves_a_turn_that_hangs_leaves_no_line_of_it() {
    let sandbox = office();
    let hooks = HOOKS.replace(
        "async def approve",
        "async def hang(ctx):\n    import time\n    log('hanging')\n    time.sleep(5)\n\n\nasync def approve",
    );
    sandbox.write("hooks.py", &hooks);
    sandbox.write(
        "clerk.md",
        &CARD.replace("---\nx\n", "  - { on: after_agent, run: hooks.py:hang }\n---\nx\n"),
    );
    let until = format!(
        "$ until grep -qs hanging {}; do sleep 0.02; done",
        sandbox.path("log.txt").display()
    );
    let shown = chat(
        &sandbox,
        &[
            (PROMPT, "hello"),
            ("", until.as_str()),
            ("at after_agent", "^C"),
            ("", "$ sleep 0.3"),
            ("", "^C"),
            ("press Ctrl-C again to leave", "^C"),
            ("stopping; press Ctrl-C again to kill", "$ sleep 0.3"),
            ("at after_agent", "^C"),
        ],
    )
    .exits(130);
    let drawn = shown.stdout.rfind("at after_agent").expect("a live line");
    let wiped = shown.stdout.rfind("A\u{1b}[J");
    assert!(wiped.is_some_and(|at| at > drawn), "{shown}");
}

#[test]
fn without_a_terminal_every_line_is_a_message() {
    let sandbox = office();
    let args = ["chat", ".", "--trust"];
    let ran = sandbox.run_with_input(&args, "hello\n\nfail\n@cook soup\nbye").exits(0);
    assert_eq!(ran.stdout, "You said <hello>\nsoup\nYou said <bye>\n", "{ran}");
    assert!(ran.stderr.contains("the model is ill"), "{ran}");
    assert!(!ran.stderr.contains(PROMPT), "{ran}");
    assert_eq!(log(&sandbox), ["before", "after ok", "stop"], "{ran}");
    let wrong = "/nope\n@zoe hi\n/prompt files/x\nhi\n";
    let ran = sandbox.run_with_input(&args, wrong).exits(0);
    assert_eq!(ran.stdout, "You said <hi>\n", "{ran}");
    for part in ["there is no /nope", "there is no agent `zoe`", "no tool server"] {
        assert!(ran.stderr.contains(part), "{part}\n{ran}");
    }
    let ran = sandbox.run_with_input(&["chat", ".", "--trust", "--quiet"], "hi\n").exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("You said <hi>\n", ""));
}

#[test]
fn nothing_steers_the_terminal_and_no_secret_is_streamed() {
    let sandbox = office();
    sandbox.write("tenure.toml", "[hooks]\nenv = [\"SERVICE_API_KEY\"]\n");
    let answer = "before \\u001b[2J\\u001b]0;title\\u0007 after, the key is {input}, the end";
    sandbox.write("clerk.json", &format!("[\"{answer}\"]"));
    let shown = sandbox.on_terminal_with(
        &[("SERVICE_API_KEY", "sk very secret 1")],
        &["chat", ".", "--trust"],
        &[(PROMPT, "sk very secret 1"), (", the end", NOTHING), (PROMPT, "^D")],
    );
    let shown = shown.exits(0);
    assert!(!shown.stdout.contains("\u{1b}[2J") && !shown.stdout.contains("title"), "{shown}");
    assert!(shown.stdout.contains("after, the key is [redacted], the end"), "{shown}");
    let history = sandbox.home().join(".local/state/tenure/history");
    let history = std::fs::read_to_string(history).expect("it is kept");
    assert!(!history.contains("secret"), "{history}");
}

#[test]
fn files_that_change_are_taken_while_the_person_types_and_what_was_said_stays() {
    let sandbox = office();
    let change = |text: &str| {
        let script = SCRIPT.replace("You said", text);
        let new = sandbox.path("clerk.json.new");
        std::fs::write(&new, script).expect("a file");
        format!("$ mv {} {}", new.display(), sandbox.path("clerk.json").display())
    };
    let change = change("Now you said");
    let shown = sandbox.on_terminal(
        &["chat", ".", "--trust", "--watch"],
        &[
            (PROMPT, "hello"),
            ("You said <hello>", NOTHING),
            (PROMPT, "= half a "),
            ("half a ", change.as_str()),
            ("reloaded", NOTHING),
            // What was typed is still there, below what was told.
            ("half a ", "thought"),
            ("Now you said <half a thought>", NOTHING),
            (PROMPT, "/history"),
            ("You said <hello>", NOTHING),
            ("Now you said <half a thought>", NOTHING),
            (PROMPT, "^D"),
        ],
    );
    let shown = shown.exits(0);
    let expected = ["before", "after ok", "stop", "before", "after ok", "stop"];
    assert_eq!(log(&sandbox), expected, "{shown}");
}

#[test]
fn what_has_to_be_trusted_anew_waits_for_the_person() {
    let sandbox = office();
    let new = sandbox.path("hooks.py.new");
    std::fs::write(&new, format!("{HOOKS}\n# changed\n")).expect("a file");
    let change = format!("$ mv {} {}", new.display(), sandbox.path("hooks.py").display());
    let shown = sandbox.on_terminal(
        &["chat", ".", "--watch"],
        &[
            ("Trust it and go on?", "y"),
            (PROMPT, "= hello"),
            ("hello", change.as_str()),
            ("has to be trusted: press Enter", ""),
            ("Trust it and go on?", "y"),
            ("reloaded", NOTHING),
            ("You said <hello>", NOTHING),
            (PROMPT, "^D"),
        ],
    );
    let shown = shown.exits(0);
    let expected = ["before", "after ok", "stop", "before", "after ok", "stop"];
    assert_eq!(log(&sandbox), expected, "{shown}");
}
