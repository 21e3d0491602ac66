//! `tenure demo`.

use crate::support::{Sandbox, nobody_is_left_with};
use std::time::{Duration, Instant};

#[test]
fn the_demo_shows_the_whole_life_in_under_ten_seconds() {
    let sandbox = Sandbox::new();
    let began = Instant::now();
    let ran = sandbox.run(&["demo"]).exits(0);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let all = format!("{}{}", ran.stdout, ran.stderr);
    let parts = [
        "editor.md",                                // a card
        "hooks.py:start: editor is up",             // a Python hook at the start
        "audit: a turn begins",                     // a command hook
        "researcher#1[tool]",                       // a clone
        "hooks.py:start: researcher#1[tool] is up", // with a start of its own
        "DENIED",                                   // a guard
        "delete_files",                             // of this tool
        "May the editor publish this?",             // a question
        "the demo answers",                         // and who answers it
        "hooks.py:stop: editor leaves",             // a shutdown
        "Agent",                                    // the timeline
        "TOTAL",                                    // the usage
        "tenure init hello",                        // and what to do next
    ];
    for part in parts {
        assert!(all.contains(part), "{part}\n{ran}");
    }
    assert!(!sandbox.store().exists(), "the demo records no trust");
    nobody_is_left_with(&sandbox.home().to_string_lossy());
}

#[test]
fn the_demo_leaves_nothing_behind_unless_it_is_asked_to() {
    let sandbox = Sandbox::new();
    let temporary = sandbox.home().join("tmp");
    std::fs::create_dir(&temporary).expect("a folder");
    let ran = sandbox.command(&["demo"]).env("TMPDIR", &temporary).output().expect("it starts");
    assert!(ran.status.success());
    assert_eq!(std::fs::read_dir(&temporary).expect("the folder").count(), 0);
    sandbox.run(&["demo", "--keep", "kept"]).exits(0);
    assert!(sandbox.path("kept/editor.md").exists());
    sandbox.run(&["check", "kept", "--deny-warnings"]).exits(0);
    sandbox.run(&["demo", "--keep", "kept"]).exits(2).says("exists");
}
