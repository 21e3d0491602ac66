//! `tenure audit`, and what hooks do on the way.

use crate::support::Sandbox;

const CARD: &str = "---\nname: clerk\nmodel: script:clerk.json\nfunction_tools: [tools.py:write_note]\nhooks:\n  - { use: audit, with: { file: audit.jsonl } }\n---\nx\n";
const SCRIPT: &str = "[{\"call\": \"write_note\", \"with\": {\"text\": \"a\"}}, {\"call\": \"write_note\", \"with\": {\"text\": \"b\"}}, \"done\"]";
const TOOLS: &str =
    "def write_note(text: str) -> str:\n    \"\"\"Writes.\"\"\"\n    return 'written'\n";

#[test]
fn a_log_that_was_changed_is_found_with_its_line() {
    let sandbox = Sandbox::with(&[
        ("tenure.toml", ""),
        ("clerk.md", CARD),
        ("clerk.json", SCRIPT),
        ("tools.py", TOOLS),
    ]);
    sandbox.run(&["run", "clerk.md", "-m", "go", "--trust", "-q"]).exits(0);
    let log = sandbox.read("audit.jsonl");
    let lines = log.lines().count();
    assert!(lines >= 2, "{log}");
    let verify = ["audit", "verify", "audit.jsonl"];
    let ran = sandbox.run(&verify).exits(0).prints(&format!("ok: {lines} lines"));
    let head = ran.stdout.lines().find_map(|line| line.strip_prefix("head ")).expect("a head");
    let json = sandbox.run(&["audit", "verify", "audit.jsonl", "--json"]).exits(0).json_lines();
    assert_eq!((&json[0]["lines"], &json[0]["head"]), (&lines.into(), &head.into()));

    sandbox.write("audit.jsonl", &log.replacen("write_note", "write_vote", 1));
    sandbox.run(&verify).exits(1).says("broken: audit.jsonl: line 1: ");
    let without: Vec<&str> = log.lines().skip(1).collect();
    sandbox.write("audit.jsonl", &format!("{}\n", without.join("\n")));
    sandbox.run(&verify).exits(1).says("line 1: ");
    let json = sandbox.run(&["audit", "verify", "audit.jsonl", "--json"]).exits(1).json_lines();
    assert_eq!((&json[0]["result"], &json[0]["line"]), (&"broken".into(), &1.into()));
    sandbox.run(&["audit", "verify", "none.jsonl"]).exits(1).says("it cannot be read");
}

#[test]
fn what_a_ready_made_hook_did_is_told_unless_nobody_wants_to_know() {
    let card = "---\nname: a\nmodel: passthrough\nhooks:\n  - { use: pii }\n---\nx\n";
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", card)]);
    let run = ["run", "a.md", "--trust", "-m", "write to ada@example.org"];
    let ran = sandbox.run(&run).exits(0).says("pii: found 1 email in the input");
    assert!(!ran.stderr.contains("ada@example.org"), "{ran}");
    let ran = sandbox.run(&[&run[..], &["-q"]].concat()).exits(0);
    assert_eq!(ran.stderr, "");
}
