//! Secrets do not come out of the program, whoever says them.

use crate::support::{Ran, Sandbox};

const KEY: &str = "sk-live-\"0123456789";
const URL: &str = "postgres://me:hunter22@db.example/x";
const HEADER: &str = "header-value-1";

const CONFIG: &str = "[hooks]\nenv = [\"SERVICE_API_KEY\", \"DATABASE_URL\", \"REGION\"]\n";

/// A hook that prints what it knows, a tool that gives it back, and a hook that makes it the
/// answer.
const HOOKS: &str = "\
import os
KEY = os.environ['SERVICE_API_KEY']

def start(ctx):
    print('key', KEY, 'at', os.environ['DATABASE_URL'], os.environ['REGION'])

def tool() -> str:
    return 'the tool knows ' + KEY

def end(ctx):
    return {'output': 'the answer is ' + KEY}

async def ask(ctx, next):
    await ctx.ask('May I use ' + KEY + '?', action={'key': KEY})
    return await next()

def stop(ctx):
    raise RuntimeError('could not log out with ' + KEY)
";

fn project(more: &str) -> Sandbox {
    let card = format!(
        "---\nname: a\nmodel: script:a.json\nfunction_tools: hooks.py:tool\nsave_trajectory: true\nuse_history: false\n\
         lifecycle_hooks: {{ on_start: hooks.py:start, on_shutdown: hooks.py:stop }}\n\
         hooks:\n  - {{ on: after_agent, run: hooks.py:end }}\n{more}---\nx\n"
    );
    Sandbox::with(&[
        ("tenure.toml", CONFIG),
        ("a.md", &card),
        ("a.json", "[{\"call\": \"tool\", \"with\": {}}, \"done\"]"),
        ("hooks.py", HOOKS),
    ])
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let mut command = sandbox.command(args);
    command.env("SERVICE_API_KEY", KEY).env("DATABASE_URL", URL).env("REGION", "eu-central");
    command.env("CUSTOM", HEADER);
    let ran = Ran::of(command.output().expect("the program starts"));
    // The key is also looked for without what JSON would escape.
    for secret in [KEY, URL, HEADER, "0123456789", "hunter22"] {
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!all.contains(secret), "{secret} came out\n{ran}");
    }
    ran
}

#[test]
fn what_hooks_print_raise_and_answer_is_redacted() {
    let sandbox = project("");
    let ran = run(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]).exits(0);
    assert_eq!(ran.stdout, "the answer is [redacted]\n");
    ran.says("key [redacted] at [redacted] eu-central").says("could not log out with [redacted]");
}

#[test]
fn events_and_the_result_are_redacted_and_stay_json() {
    let sandbox = project("");
    let ran = run(&sandbox, &["run", "a.md", "-m", "hi", "--trust", "--json"]).exits(0);
    let lines = ran.json_lines();
    let result = lines.last().expect("a result");
    assert_eq!(result["output"], "the answer is [redacted]");
    assert!(result["failures"].to_string().contains("with [redacted]"), "{result}");
    let printed = |line: &serde_json::Value| line.to_string().contains("key [redacted] at");
    assert!(lines.iter().any(printed), "{ran}");
}

#[test]
fn an_error_and_a_question_are_redacted() {
    let sandbox = project("  - { on: wrap_tool_call, run: hooks.py:ask, policy: deny }\n");
    let args = ["run", "a.md", "-m", "hi", "--trust"];
    run(&sandbox, &args).exits(7).says("May I use [redacted]?");
    run(&sandbox, &[&args[..], &["--no-store"]].concat()).exits(5).says("May I use [redacted]?");
    sandbox.write("hooks.py", &HOOKS.replace("    print(", "    raise KeyError("));
    run(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]).exits(1).says("[redacted]");
    let ran = run(&sandbox, &["run", "a.md", "-m", "hi", "--trust", "--json"]).exits(1);
    let lines = ran.json_lines();
    let error = lines.last().expect("a result")["error"].to_string();
    assert!(error.contains("[redacted]"), "{error}");
}

#[test]
fn what_is_stored_is_redacted() {
    let sandbox = project("");
    run(&sandbox, &["run", "a.md", "-m", "hi", "--trust"]).exits(0);
    let folder = std::fs::read_dir(sandbox.path(".tenure/trajectories")).expect("it was saved");
    let files: Vec<_> = folder.map(|it| it.expect("a file").path()).collect();
    assert_eq!(files.len(), 1);
    let text = std::fs::read_to_string(&files[0]).expect("it can be read");
    assert!(text.contains("the tool knows [redacted]"), "{text}");
    assert!(!text.contains("0123456789"), "{text}");
}

#[test]
fn a_value_in_a_secret_field_is_redacted_whatever_its_variable_is_called() {
    let echo = "---\nname: a\nmodel: passthrough\nmcp_connect:\n  - { target: \
                \"http://127.0.0.1:1/mcp\", name: far, headers: { A: \"Bearer ${CUSTOM}\" } }\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", echo)]);
    run(&sandbox, &["check"]).exits(0);
    run(&sandbox, &["explain", "a.md"]).exits(0);
    run(&sandbox, &["doctor"]);
    run(&sandbox, &["dump", "a.md"]).exits(0).prints("Bearer ${CUSTOM}");
    let ran = run(&sandbox, &["run", "a.md", "-m", &format!("say {HEADER}"), "--trust"]).exits(0);
    assert_eq!(ran.stdout, "say [redacted]\n");
    // A process has no headers; what is said about that shows the card as it is written.
    sandbox.write("a.md", &echo.replace("http://127.0.0.1:1/mcp", "x"));
    run(&sandbox, &["check"]).exits(3).prints("Bearer ${CUSTOM}");
}

#[test]
fn a_short_value_and_an_ordinary_variable_are_left_alone() {
    let sandbox = project("");
    let mut command = sandbox.command(&["run", "a.md", "-m", "hi", "--trust"]);
    command.env("SERVICE_API_KEY", "tiny").env("DATABASE_URL", "db").env("REGION", "eu-central");
    let ran = Ran::of(command.output().expect("the program starts")).exits(0);
    assert_eq!(ran.stdout, "the answer is tiny\n");
    ran.says("key tiny at db eu-central");
}
