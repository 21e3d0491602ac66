//! A person's answer is a person's: what Tenure started answers nothing and trusts nothing.

use super::{signed, user, waiting};
use crate::support::{Ran, Sandbox};

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

const AGENT: &str = "---\nname: agent\nmodel: script:agent.json\nshell: true\n---\nx\n";

/// Has an agent with a shell run a command, and returns what it was told.
fn by_agent(sandbox: &Sandbox, command: &str) -> Ran {
    let call = serde_json::json!([
        { "call": "execute", "with": { "command": command } },
        "{result}",
    ]);
    sandbox.write("agent.md", AGENT);
    sandbox.write("agent.json", &call.to_string());
    sandbox.run(&["run", "agent.md", "-m", "go", "--trust", "-q"]).exits(0)
}

/// Ways to start the program from a shell that Tenure started. `CMD` is the program with its arguments.
const WAYS: [(&str, &str); 7] = [
    ("plainly", "CMD"),
    ("without an environment", "env -i CMD"),
    ("in a session of its own", "setsid -w CMD"),
    ("from a shell without an environment", "exec env -i /bin/sh -c 'env -i CMD; true'"),
    ("orphaned", "(setsid sh -c 'CMD > said.txt 2>&1' &); sleep 2; cat said.txt"),
    (
        "orphaned without an environment",
        "(setsid env -i sh -c 'sleep 1; CMD > said.txt 2>&1' &); sleep 3; cat said.txt",
    ),
    ("by another name", "cp PROGRAM ./innocent; env -i ./innocent ARGS"),
];

fn line(way: &str, args: &str) -> String {
    way.replace("CMD", &format!("{TENURE} {args}")).replace("PROGRAM", TENURE).replace("ARGS", args)
}

#[test]
fn an_agent_answers_no_question_of_a_person() {
    let (sandbox, ask) = waiting();
    let store = sandbox.path(".tenure/tenure.db");
    let args = format!("answer {ask} approve --by ada --store {}", store.display());
    for (how, way) in WAYS {
        let ran = by_agent(&sandbox, &line(way, &args));
        assert!(ran.stdout.contains("an answer is a person's"), "{how}: {ran}");
        let asks = sandbox.run(&["asks", "--json"]).exits(0).json_lines();
        assert_eq!(asks.len(), 1, "{how}: {asks:?}");
    }
    // And the person does.
    sandbox.run(&["answer", &ask, "approve", "--by", "ada"]).exits(0);
}

#[test]
fn an_agent_with_a_terminal_of_its_own_answers_nothing_either() {
    let (sandbox, ask) = waiting();
    let script = sandbox.home().join("terminal.py");
    std::fs::write(&script, include_str!("../terminal.py")).expect("the script");
    let talk = "[[\"[a]pprove\", \"a\"]]";
    for args in [format!("answer {ask}"), "run --resume".to_owned()] {
        let command = format!("python3 {} '{talk}' {TENURE} {args}", script.display());
        let ran = by_agent(&sandbox, &command);
        let asks = sandbox.run(&["asks", "--json"]).exits(0).json_lines();
        assert_eq!(asks.len(), 1, "{args}: {ran}");
    }
}

#[test]
fn an_agent_trusts_nothing() {
    let hooks = "def start(ctx):\n    open('ran.txt', 'w')\n";
    let card =
        "---\nname: a\nmodel: passthrough\nlifecycle_hooks: { on_start: hooks.py:start }\n---\nx\n";
    let sandbox = Sandbox::with(&[("other/a.md", card), ("other/hooks.py", hooks)]);
    let data = sandbox.home().join("data");
    let home = format!("XDG_DATA_HOME={} {TENURE}", data.display());
    let said = "is a person's";
    for args in ["trust accept other", "run other/a.md -m hi --trust", "chat other/a.md --trust"] {
        for command in [format!("{TENURE} {args}"), format!("env -i {home} {args}")] {
            let ran = by_agent(&sandbox, &command);
            assert!(
                ran.stdout.contains(said) && ran.stdout.contains("exit code 4"),
                "{args}: {ran}"
            );
        }
    }
    let ran = by_agent(&sandbox, &format!("env -i {home} run agent.md -m hi --yes execute"));
    assert!(ran.stdout.contains(said), "{ran}");
    // What it writes itself is no more trusted than what comes from elsewhere.
    by_agent(&sandbox, &format!("env -i {home} init made"));
    assert!(!sandbox.store().exists());
    assert!(!sandbox.path("other/ran.txt").exists() && !sandbox.path("ran.txt").exists());
}

#[test]
fn an_agent_that_cannot_see_the_trust_records_revokes_nothing_and_is_told_so() {
    let sandbox = Sandbox::with(&[("other/a.md", AGENT), ("other/agent.json", "[]")]);
    sandbox.run(&["trust", "accept", "other"]).exits(0);
    let data = sandbox.home().join("data");
    for before in ["", "env -i "] {
        let home = format!("{before}XDG_DATA_HOME={} {TENURE}", data.display());
        let ran = by_agent(&sandbox, &format!("{home} trust revoke other"));
        assert!(ran.stdout.contains("the trust records cannot be seen from here"), "{ran}");
        assert!(ran.stdout.contains("exit code 4"), "{ran}");
    }
    sandbox.run(&["trust", "status", "other"]).exits(0);
    sandbox.run(&["trust", "revoke", "other"]).exits(0).prints("forgot");
}

#[test]
fn an_answer_is_signed_by_the_user_of_the_system_and_a_name_stands_beside_it() {
    let (sandbox, ask) = waiting();
    let user = user();
    let mut command = sandbox.command(&["answer", &ask, "approve", "--by", "ada", "--json"]);
    let output = command.env("USER", "eve").env("LOGNAME", "eve").output().expect("it starts");
    let ran = Ran::of(output).exits(0);
    assert_eq!(ran.json_lines()[0]["by"], signed("ada"), "{ran}");
    sandbox.run(&["asks", "--all"]).exits(0).prints(&format!("approved by {}", signed("ada")));
    let (sandbox, ask) = waiting();
    let mut command = sandbox.command(&["answer", &ask, "approve", "--json"]);
    let output = command.env("USER", "eve").env("LOGNAME", "eve").output().expect("it starts");
    assert_eq!(Ran::of(output).exits(0).json_lines()[0]["by"], user);
}
