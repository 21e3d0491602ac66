//! What only looks at a project executes nothing and connects nowhere (G13), as the kernel sees it.

use crate::support::Sandbox;

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

const CARD: &str = "---\nname: a\nmodel: passthrough\nfunction_tools: [tools.py:roll]\nlifecycle_hooks:\n  on_start: hooks.py:start\nhooks:\n  - { on: before_agent, run: [\"sh\", \"audit.sh\"] }\n---\nx\n";

fn project() -> Sandbox {
    Sandbox::with(&[
        ("a.md", CARD),
        ("hooks.py", "open('ran.txt', 'w')\n\n\nasync def start(ctx):\n    pass\n"),
        ("tools.py", "def roll(sides: int) -> str:\n    \"\"\"Rolls.\"\"\"\n    return '4'\n"),
        ("audit.sh", "touch ran.txt\necho '{}'\n"),
    ])
}

/// What the program executed and connected to, its own starts left out, if it ended with this code.
fn traced(sandbox: &Sandbox, args: &[&str], code: i32) -> Vec<String> {
    let (ended, calls) = traced_calls(sandbox, args);
    assert_eq!(ended, Some(code), "{args:?}: {calls:?}");
    calls
}

/// The code that the program ended with, and what it executed and connected to, its own starts left out.
fn traced_calls(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, Vec<String>) {
    let log = sandbox.home().join("strace.log");
    let path = log.to_string_lossy().into_owned();
    let mut all = vec!["-f", "-e", "trace=execve,execveat,connect,socket", "-o", &path, "--"];
    all.push(TENURE);
    all.extend(args);
    let output = sandbox.other("strace", &all).output().unwrap_or_else(|error| {
        panic!("this test needs strace (`apt-get install strace`): {error}")
    });
    let text = std::fs::read_to_string(log).expect("strace writes its log");
    let calls = text
        .lines()
        .filter(|line| ["execve", "connect(", "socket("].iter().any(|call| line.contains(call)));
    let starts = [TENURE, "/proc/self/exe"].map(|it| format!("execve(\"{it}\""));
    let is_own = |line: &&str| starts.iter().any(|start| line.contains(start));
    let calls = calls.filter(|line| !is_own(line)).map(str::to_owned).collect();
    (output.status.code(), calls)
}

/// Every command, with arguments that have it do its work. Those that change the record come last.
const EVERY: &[&[&str]] = &[
    &["run", ".", "-m", "hi"],
    &["run", "--resume"],
    &["chat", "."],
    &["check", "."],
    &["explain", "."],
    &["dump", "a.md"],
    &["init", "made"],
    &["demo"],
    &["runs"],
    &["show", "last"],
    &["tail", "last"],
    &["events", "last"],
    &["asks", "--all"],
    &["answer", "ffff", "approve"],
    &["replay", "last"],
    &["restart", "last", "--from", "1"],
    &["export", "last"],
    &["db", "verify"],
    &["db", "backup", "copy.db"],
    &["db", "compact", "--keep", "100"],
    &["db", "rotate-key"],
    &["trust"],
    &["trust", "status"],
    &["trust", "review", "."],
    &["trust", "revoke"],
    &["doctor"],
    &["doctor", "--sandbox"],
    &["hooks"],
    &["hooks", "retry"],
    &["audit", "verify", "audit.log"],
    &["schema", "card"],
    &["completions", "bash"],
    &["cancel", "last"],
    &["kill", "last"],
    &["trust", "accept", "."],
];

#[test]
fn g13_before_trust_no_command_executes_or_connects() {
    let sandbox = project();
    sandbox.write("tenure.toml", "");
    // A run is on record, of when the project was trusted for one command.
    sandbox.run(&["run", ".", "-m", "hi", "--trust"]).exits(0);
    assert!(sandbox.path(".tenure/tenure.db").exists());
    sandbox.write("tenure.toml", "[mcp.servers.files]\ncommand = [\"sh\", \"audit.sh\"]\n");
    sandbox.write("a.md", &CARD.replace("name: a\n", "name: a\nshell: true\nservers: [files]\n"));
    std::fs::remove_file(sandbox.path("ran.txt")).expect("it ran");
    sandbox.write(".venv/bin/python", "#!/bin/sh\ntouch ran.txt\n");
    sandbox.write(".venv/pyvenv.cfg", "home = /usr/bin\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(sandbox.path(".venv/bin/python"), mode).expect("chmod");
    for args in EVERY {
        let (code, mut calls) = traced_calls(&sandbox, args);
        if matches!(args, ["demo"] | ["doctor", "--sandbox"]) {
            // They run what they bring along, and nothing of the folder that they are run in.
            let project = sandbox.project().to_string_lossy().into_owned();
            calls.retain(|call| call.contains(&project));
        }
        assert_eq!(calls, Vec::<String>::new(), "{args:?}");
        assert!(!sandbox.path("ran.txt").exists(), "{args:?}");
        let is_resumed = args.contains(&"--resume");
        if matches!(args[0], "run" | "chat" | "replay" | "restart") && !is_resumed {
            assert_eq!(code, Some(4), "{args:?}");
        } else {
            assert_ne!(code, Some(2), "{args:?} is no command line");
        }
    }
}

#[test]
fn every_command_is_traced_before_trust_those_within_others_included() {
    let sandbox = Sandbox::new();
    let mut open = vec![Vec::new()];
    let mut seen = 0;
    while let Some(command) = open.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        assert!(
            EVERY.iter().any(|args| args.starts_with(&words)),
            "`tenure {}` is not traced: add a line to EVERY",
            words.join(" ")
        );
        seen += 1;
        let help = sandbox.run(&[&words[..], &["--help"]].concat()).exits(0).stdout;
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let listed = listed.take_while(|line| !line.is_empty());
        // A line that goes on beneath is indented further.
        let names = listed.filter(|line| !line.starts_with("   "));
        for name in names.filter_map(|line| line.split_whitespace().next()) {
            let mut inner = command.clone();
            inner.push(name.to_owned());
            open.push(inner);
        }
    }
    assert!(seen > 30, "{seen} commands were found");
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
