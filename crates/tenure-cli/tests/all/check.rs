//! `tenure check`, `dump`, `schema`, `completions` and `doctor`.

use crate::support::Sandbox;

const GOOD: &str = "---\nname: good\nmodel: passthrough\ndescription: Good to ${SOMEBODY:all}.\nlifecycle_hooks:\n  on_start: hooks.py:start\n---\nBe good.\n";
const HOOKS: &str = "async def start(ctx):\n    pass\n";

fn mixed() -> Sandbox {
    Sandbox::with(&[
        ("good.md", GOOD),
        ("hooks.py", HOOKS),
        (
            "bad.md",
            "---\nname: bad\nmodle: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:begin\n---\nx\n",
        ),
    ])
}

#[test]
fn every_error_is_shown_with_its_place_and_the_sum_at_the_end() {
    let ran = mixed().run(&["check"]).exits(3);
    for part in ["bad.md:3:1", "modle", "begin", "2 cards", "1 hook ", "2 errors"] {
        assert!(ran.stdout.contains(part), "{part}\n{ran}");
    }
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_clean_project_says_so() {
    let sandbox = Sandbox::with(&[("good.md", GOOD), ("hooks.py", HOOKS)]);
    sandbox
        .run(&["check", "good.md"])
        .exits(0)
        .prints("1 card, 1 hook checked in")
        .prints("no problems");
}

#[test]
fn json_is_one_object_a_line() {
    let ran = mixed().run(&["check", "--format", "json"]).exits(3);
    let lines = ran.json_lines();
    assert_eq!(lines.len(), 2, "{ran}");
    for line in &lines {
        for key in ["code", "severity", "file", "line", "column", "message"] {
            assert!(!line[key].is_null(), "{key}: {line}");
        }
    }
    let clean = Sandbox::with(&[("good.md", GOOD), ("hooks.py", HOOKS)]);
    assert_eq!(clean.run(&["check", "--format", "json"]).exits(0).stdout, "");
}

#[test]
fn sarif_is_one_document() {
    let ran = mixed().run(&["check", "--format", "sarif"]).exits(3);
    let sarif: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(2));
}

#[test]
fn warnings_pass_unless_they_are_denied() {
    let sandbox =
        Sandbox::with(&[("good.md", GOOD), ("hooks.py", HOOKS), ("stray.yaml", "logger: true\n")]);
    sandbox.run(&["check"]).exits(0).prints("1 warning");
    sandbox.run(&["check", "--deny-warnings"]).exits(3);
}

#[test]
fn what_a_run_would_refuse_is_found_too() {
    let sandbox = Sandbox::with(&[
        ("a.md", "---\nname: a\nmodel: script:a.json\n---\nx\n"),
        ("a.json", "{\"replies\": []}"),
    ]);
    sandbox.run(&["check"]).exits(3).prints("T0703");
    sandbox.run(&["run", "a.md", "-m", "hi"]).exits(3).says("T0703");
    let remote = Sandbox::with(&[("a.md", "---\nname: a\nmodel: sonnet\n---\nx\n")]);
    remote.run(&["check"]).exits(0).prints("no problems");
    let ran = remote.run(&["run", "a.md", "-m", "hi"]).exits(3).says("error[T0702]");
    ran.says("ANTHROPIC_API_KEY").says("config.toml");
    remote.run(&["run", "a.md", "-m", "hi", "--model", "passthrough", "--trust"]).exits(0);
    let unknown = Sandbox::with(&[("a.md", "---\nname: a\nmodel: nobody.knows\n---\nx\n")]);
    unknown.run(&["check"]).exits(3).prints("error[T0706]");
}

#[test]
fn a_dump_can_be_read_again_and_keeps_variables_as_they_are() {
    let sandbox = Sandbox::with(&[("good.md", GOOD), ("hooks.py", HOOKS)]);
    for (format, name) in [("markdown", "again.md"), ("yaml", "again.yaml")] {
        let ran = sandbox.run(&["dump", "good.md", "--format", format]).exits(0);
        let ran = ran.prints("${SOMEBODY:all}").prints("hooks.py:start");
        let folder = Sandbox::with(&[(name, &ran.stdout), ("hooks.py", HOOKS)]);
        folder.run(&["check", name]).exits(0);
    }
}

#[test]
fn the_schema_is_json() {
    let ran = Sandbox::new().run(&["schema"]).exits(0);
    let schema: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(schema.is_object());
}

#[test]
fn completions_are_there_for_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        sandbox.run(&["completions", shell]).exits(0).prints("tenure");
    }
}

#[test]
fn doctor_names_what_is_missing() {
    let sandbox = Sandbox::with(&[(
        "a.md",
        "---\nname: a\nmodel: passthrough\ndescription: for ${SOMEBODY_UNSET}\n---\nx\n",
    )]);
    let ran = sandbox.run(&["doctor"]).exits(0);
    let ran = ran.prints("SOMEBODY_UNSET").prints("trust store").prints("Python").prints("1 card");
    assert!(ran.stdout.contains(env!("CARGO_PKG_VERSION")), "{ran}");
    mixed().run(&["doctor"]).exits(1).prints("2 errors");
}
