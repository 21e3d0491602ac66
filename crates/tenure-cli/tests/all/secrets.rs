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

#[test]
fn a_key_that_is_written_in_a_card_is_not_dumped() {
    let key = "a-key-of-nobody-0123";
    let card = format!(
        "---\nname: a\nmodel: passthrough\napi_key: {key}\nmcp_connect:\n  - {{ target: \
         \"https://x.example/mcp\", name: far, headers: {{ Authorization: \"Bearer \
         header-token-0456\", Accept: text/plain }} }}\n---\nUse ghp_0123456789abcdefghijABCDEFGHIJ.\n"
    );
    let sandbox = Sandbox::with(&[("a.md", &card)]);
    for format in ["markdown", "yaml"] {
        let ran = sandbox.run(&["dump", "a.md", "--format", format]).exits(0);
        for secret in [key, "header-token-0456", "ghp_0123456789"] {
            assert!(!ran.stdout.contains(secret), "{ran}");
        }
        let ran = ran.prints("api_key: [redacted]").prints("text/plain");
        ran.says("a secret that is written in `a.md` is left out");
    }
    // What holds no secret is printed as it is written.
    sandbox.write("a.md", "---\nname: a\nmodel: passthrough\napi_key: ${MINE}\n---\nx\n");
    let ran = sandbox.run(&["dump", "a.md"]).exits(0).prints("api_key: ${MINE}");
    assert!(!ran.stderr.contains("left out"), "{ran}");
}

#[test]
fn the_key_of_a_provider_goes_to_no_other_host_by_a_header() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it does not wait");
    let address = listener.local_addr().expect("an address");
    let near = format!("http://{address}/mcp");
    for (url, variable) in [
        (&*near, "OPENAI_API_KEY"),
        ("https://tools.example/mcp", "OPENAI_API_KEY"),
        ("http://api.openai.com/mcp", "OPENAI_API_KEY"),
        // The same key by another name.
        (&*near, "MINE"),
    ] {
        let card = "---\nname: a\nmodel: passthrough\nservers: [far]\n---\nx\n";
        let config = format!(
            "[mcp.servers.far]\nurl = \"{url}\"\nheaders = {{ Authorization = \"Bearer \
             ${{{variable}}}\" }}\n"
        );
        let sandbox = Sandbox::with(&[("tenure.toml", &config), ("a.md", card)]);
        let run = |sandbox: &Sandbox| {
            let mut command =
                sandbox.command(&["run", "a.md", "-m", "hi", "--trust", "--no-store"]);
            command.env("OPENAI_API_KEY", "openai-value-0013").env("MINE", "openai-value-0013");
            Ran::of(command.output().expect("the program starts"))
        };
        let ran = run(&sandbox);
        assert_ne!(ran.code, Some(0), "{url} {variable}: {ran}");
        let ran = ran.says("T0709").says("tenure.toml").says("the key of `openai`");
        assert!(!format!("{ran}").contains("openai-value-0013"), "{ran}");
        assert!(listener.accept().is_err(), "{url} {variable}: it was sent");
        // Only the user's own configuration may allow it, and a server on this machine then gets it.
        if url == near {
            let file = sandbox.home().join(".config/tenure/config.toml");
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
            let allowed = "[providers.openai]\nallow_hosts = [\"127.0.0.1\"]\n";
            std::fs::write(file, allowed).expect("it is written");
            let taking = std::thread::spawn({
                let listener = listener.try_clone().expect("a second handle");
                move || {
                    let until = std::time::Instant::now() + crate::support::PATIENCE;
                    while std::time::Instant::now() < until {
                        // The caller is hung up on: that there was a call is all there is to know.
                        if listener.accept().is_ok() {
                            return true;
                        }
                        std::thread::sleep(std::time::Duration::from_millis(5));
                    }
                    false
                }
            });
            let ran = run(&sandbox);
            assert!(!format!("{ran}").contains("T0709"), "{ran}");
            assert!(taking.join().expect("no panic"), "{ran}");
            while listener.accept().is_ok() {}
        }
    }
}
