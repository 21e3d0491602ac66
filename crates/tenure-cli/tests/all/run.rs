//! `tenure run`, beyond its exit codes.

use crate::support::Sandbox;

const LEAD: &str =
    "---\nname: lead\ndefault: true\nmodel: script:lead.json\nagents: [worker]\n---\nLead.\n";
const WORKER: &str = "---\nname: worker\ntool_only: true\nmodel: passthrough\n---\nWork.\n";

#[test]
fn clones_have_their_own_rows() {
    let script = r#"[
        {"calls": [{"call": "agent__worker", "with": {"message": "a"}},
                   {"call": "agent__worker", "with": {"message": "b"}}]},
        "both are done"
    ]"#;
    let sandbox = Sandbox::with(&[("lead.md", LEAD), ("worker.md", WORKER), ("lead.json", script)]);
    let ran = sandbox.run(&["run", ".", "-m", "go"]).exits(0);
    assert_eq!(ran.stdout, "both are done\n");
    ran.says("worker#1[tool]").says("worker#2[tool]").says("worker, 2 clones");
}

#[test]
fn the_model_can_be_replaced() {
    let sandbox =
        Sandbox::with(&[("a.md", "---\nname: a\nmodel: script:missing-later.json\n---\nx\n")]);
    sandbox.write("missing-later.json", "[\"scripted\"]");
    assert_eq!(sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(0).stdout, "scripted\n");
    let ran = sandbox.run(&["run", "a.md", "-m", "hi", "-q", "--model", "passthrough"]).exits(0);
    assert_eq!(ran.stdout, "hi\n");
}

#[test]
fn an_agent_is_chosen_by_name() {
    let card = |name: &str, words: &str| {
        (format!("{name}.md"), format!("---\nname: {name}\nmodel: script:{words}.json\n---\nx\n"))
    };
    let (a, b) = (card("one", "first"), card("two", "second"));
    let sandbox = Sandbox::with(&[
        (&a.0, &a.1),
        (&b.0, &b.1),
        ("first.json", "[\"I am one\"]"),
        ("second.json", "[\"I am two\"]"),
    ]);
    let ran = sandbox.run(&["run", ".", "--agent", "two", "-m", "hi", "-q"]).exits(0);
    assert_eq!(ran.stdout, "I am two\n");
}

#[test]
fn what_hooks_print_is_shown_with_their_name() {
    let card = "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:start\n  on_shutdown: hooks.py:stop\n---\nx\n";
    let hooks = "def start(ctx):\n    print('up')\n\ndef stop(ctx):\n    print('down')\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("hooks.py", hooks)]);
    let ran = sandbox.run(&["run", "a.md", "-m", "hi", "--trust"]).exits(0);
    let ran = ran.says("hooks.py:start: up").says("hooks.py:stop: down");
    assert_eq!(ran.stdout, "hi\n");
}

#[test]
fn a_failing_shutdown_hook_changes_nothing_and_is_reported() {
    let card = "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_shutdown: hooks.py:stop\n---\nx\n";
    let hooks = "async def stop(ctx):\n    raise RuntimeError('disk full')\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("hooks.py", hooks)]);
    let ran = sandbox.run(&["run", "a.md", "-m", "hi", "--trust"]).exits(0).says("disk full");
    assert_eq!(ran.stdout, "hi\n");
    let ran = sandbox.run(&["run", "a.md", "-m", "hi", "--trust", "--json", "-q"]).exits(0);
    let result = ran.json_lines().pop().expect("a result");
    assert_eq!(ran.stderr, "", "quiet is quiet");
    let failures = result["failures"].to_string();
    assert!(failures.contains("disk full") && failures.contains("on_shutdown"), "{failures}");
}

#[test]
fn a_terminal_shows_live_lines_and_keeps_the_finished_ones() {
    let sandbox = Sandbox::with(&[
        ("a.md", "---\nname: a\nmodel: script:a.json\n---\nx\n"),
        ("a.json", "[{\"text\": \"done\", \"wait\": \"300ms\"}]"),
    ]);
    let shown = sandbox.on_terminal(&["run", "a.md", "-m", "hi"], &[]).exits(0);
    assert!(shown.stdout.contains("model call 1"), "{shown}");
    assert!(shown.stdout.contains("COMPLETED"), "{shown}");
    assert!(shown.stdout.contains("TOTAL"), "{shown}");
}

#[test]
fn a_terminal_shows_only_so_many_instances_at_once() {
    let calls: Vec<_> = (0..12)
        .map(|at| format!("{{\"call\": \"agent__worker\", \"with\": {{\"message\": \"{at}\"}}}}"))
        .collect();
    let lead = LEAD.replace("agents: [worker]", "agents: [worker]\nmax_display_instances: 4");
    let worker = WORKER.replace("passthrough", "script:worker.json");
    let sandbox = Sandbox::with(&[
        ("lead.md", &lead),
        ("worker.md", &worker),
        ("lead.json", &format!("[{{\"calls\": [{}]}}, \"all done\"]", calls.join(", "))),
        ("worker.json", "[{\"text\": \"done\", \"wait\": \"400ms\"}]"),
    ]);
    // Twelve clones and the lead; their template is idle. Four of the thirteen have a line.
    let shown = sandbox.on_terminal(&["run", ".", "-m", "go"], &[]).exits(0);
    assert!(shown.stdout.contains("+9 more"), "{shown}");
    assert!(shown.stdout.contains("worker, 12 clones"), "{shown}");
}

#[test]
fn a_missing_interpreter_is_said_plainly() {
    let card =
        "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:start\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("hooks.py", "def start(ctx):\n    pass\n")]);
    let output = sandbox
        .command(&["run", "a.md", "-m", "hi", "--trust"])
        .env("PATH", sandbox.home())
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no Python was found"), "{said}");
}
