//! What only looks at a project executes nothing and connects nowhere (G13), as the kernel sees it.

use crate::support::Sandbox;

const CARD: &str = "---\nname: a\nmodel: passthrough\nfunction_tools: [tools.py:roll]\nlifecycle_hooks:\n  on_start: hooks.py:start\nhooks:\n  - { on: before_agent, run: [\"sh\", \"audit.sh\"] }\n---\nx\n";

fn project() -> Sandbox {
    Sandbox::with(&[
        ("a.md", CARD),
        ("hooks.py", "open('ran.txt', 'w')\n\n\nasync def start(ctx):\n    pass\n"),
        ("tools.py", "def roll(sides: int) -> str:\n    \"\"\"Rolls.\"\"\"\n    return '4'\n"),
        ("audit.sh", "touch ran.txt\necho '{}'\n"),
    ])
}

/// What the program executed and connected to, its own start left out.
fn traced(sandbox: &Sandbox, args: &[&str], code: i32) -> Vec<String> {
    let log = sandbox.home().join("strace.log");
    let path = log.to_string_lossy().into_owned();
    let mut all = vec!["-f", "-e", "trace=execve,execveat,connect,socket", "-o", &path, "--"];
    all.push(env!("CARGO_BIN_EXE_tenure"));
    all.extend(args);
    let output = sandbox.other("strace", &all).output().unwrap_or_else(|error| {
        panic!("this test needs strace (`apt-get install strace`): {error}")
    });
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    let text = std::fs::read_to_string(log).expect("strace writes its log");
    let calls = text
        .lines()
        .filter(|line| ["execve", "connect(", "socket("].iter().any(|call| line.contains(call)));
    // The first is the program itself.
    calls.skip(1).map(str::to_owned).collect()
}

#[test]
fn g13_looking_executes_nothing_and_connects_nowhere() {
    let sandbox = project();
    let looks: [&[&str]; 9] = [
        &["check", "."],
        &["check", ".", "--format", "sarif"],
        &["explain", "."],
        &["explain", ".", "--json"],
        &["dump", "a.md"],
        &["dump", "a.md", "--format", "yaml"],
        &["schema", "card"],
        &["completions", "bash"],
        &["trust", "review", "."],
    ];
    for args in looks {
        assert_eq!(traced(&sandbox, args, 0), Vec::<String>::new(), "{args:?}");
    }
    assert!(!sandbox.path("ran.txt").exists());
}

#[test]
fn g13_an_untrusted_run_executes_nothing_and_connects_nowhere() {
    let sandbox = project();
    let calls = traced(&sandbox, &["run", ".", "-m", "hi"], 4);
    assert_eq!(calls, Vec::<String>::new());
    assert!(!sandbox.path("ran.txt").exists());
}

#[test]
fn g13_a_trusted_run_is_seen_to_execute() {
    // So that the tests above can fail.
    let sandbox = project();
    let calls = traced(&sandbox, &["run", ".", "-m", "hi", "--trust"], 0);
    assert!(calls.iter().any(|call| call.contains("execve")), "{calls:?}");
}

#[test]
fn g13_doctor_does_not_run_the_interpreter_of_a_project_that_is_not_trusted() {
    let sandbox = project();
    sandbox.write(".venv/bin/python", "#!/bin/sh\ntouch ran.txt\n");
    let path = sandbox.path(".venv/bin/python");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("chmod");
    sandbox.run(&["doctor"]);
    assert!(!sandbox.path("ran.txt").exists());
}
