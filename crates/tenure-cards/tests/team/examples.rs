//! The example runs, as a real process, and prints what it promises.
//!
//! The binary is the one that cargo built beside this test; `cargo test -p tenure-cards` and
//! `scripts/test` build it.

use std::process::Command;

#[test]
fn a_card_can_be_run_from_a_program() {
    let this = std::env::current_exe().expect("a process knows its own file");
    let profile = this.ancestors().nth(2).expect("tests are in a folder of the profile's");
    let binary =
        profile.join("examples/run_a_card").with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        binary.exists(),
        "{} is not built; run `cargo build -p tenure-cards --examples` first",
        binary.display()
    );
    let output = Command::new(binary).output().expect("a binary that cargo built can be run");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "loaded 2 cards",
            "to be trusted: hook of the program greet for editor: its own points",
            "to be trusted: data editor.json for editor: script",
            "to be trusted: instruction editor.md for editor",
            "to be trusted: instruction researcher.md for researcher",
            "at before_agent: greet (abort)",
            "An answer to: Hello, what has three hearts?",
        ]
    );
}
