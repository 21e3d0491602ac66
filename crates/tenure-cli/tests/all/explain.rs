//! `tenure explain` (G12).

use crate::support::Sandbox;

fn project() -> Sandbox {
    let card = "---\nname: a\nmodel: passthrough\nfunction_tools: [hooks.py:roll]\nlifecycle_hooks:\n  on_start: hooks.py:start\n  on_shutdown: { run: hooks.py:stop, timeout: 2s }\nhooks:\n  - { on: wrap_tool_call, run: hooks.py:guard, policy: deny, when: \"tool.name == 'roll'\", name: guard }\n  - { on: wrap_tool_call, run: [\"sh\", \"audit.sh\"], name: audit, before: [guard] }\n---\nx\n";
    let hooks = "def start(ctx): pass\ndef stop(ctx): pass\nasync def guard(ctx, next):\n    return await next()\n\ndef roll(sides: int) -> str:\n    \"\"\"Rolls.\"\"\"\n    return '4'\n";
    Sandbox::with(&[("a.md", card), ("hooks.py", hooks), ("audit.sh", "echo '{}'\n")])
}

#[test]
fn g12_hooks_are_listed_in_order_with_file_policy_limit_and_condition() {
    let ran = project().run(&["explain", "."]).exits(0);
    insta::assert_snapshot!(ran.stdout);
    let (audit, guard) = (ran.stdout.find("audit.sh"), ran.stdout.find("hooks.py:guard"));
    assert!(audit.is_some() && audit < guard, "{ran}");
}

#[test]
fn g12_one_point_of_one_agent() {
    let ran = project().run(&["explain", ".", "--agent", "a", "--point", "on_start"]).exits(0);
    assert!(ran.stdout.contains("hooks.py:start") && !ran.stdout.contains("guard"), "{ran}");
    project().run(&["explain", ".", "--agent", "b"]).exits(2).says("`b`");
}

#[test]
fn g12_as_json() {
    let ran = project().run(&["explain", ".", "--json"]).exits(0);
    let explained: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let text = explained.to_string();
    for part in ["wrap_tool_call", "guard", "deny", "hooks.py:guard", "tool.name == 'roll'"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn g12_a_hook_of_a_transition_says_which() {
    let card = "---\nname: a\nmodel: passthrough\nhooks:\n  - { on: \"bootstrapping -> idle\", run: [\"true\"], name: up }\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card)]);
    sandbox.run(&["explain"]).exits(0).prints("on bootstrapping -> idle");
    sandbox
        .run(&["explain", "--json"])
        .exits(0)
        .prints("\"transition\": \"bootstrapping -> idle\"");
}
