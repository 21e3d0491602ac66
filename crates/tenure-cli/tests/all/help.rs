//! What `--help` says.

use crate::support::Sandbox;

fn help(args: &[&str]) -> String {
    let mut all = args.to_vec();
    all.push("--help");
    let sandbox = Sandbox::new();
    let output = sandbox.command(&all).env("COLUMNS", "100").output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[test]
fn the_program_explains_itself() {
    insta::assert_snapshot!(help(&[]));
}

#[test]
fn run_explains_itself() {
    insta::assert_snapshot!(help(&["run"]));
}

#[test]
fn every_command_has_help_with_examples() {
    let commands = [
        "run",
        "check",
        "explain",
        "dump",
        "init",
        "demo",
        "runs",
        "show",
        "tail",
        "events",
        "asks",
        "answer",
        "cancel",
        "kill",
        "replay",
        "restart",
        "export",
        "db",
        "trust",
        "doctor",
        "hooks",
        "audit",
        "schema",
        "completions",
    ];
    for command in commands {
        let text = help(&[command]);
        assert!(text.contains("Examples:"), "{text}");
        assert!(text.contains(&format!("tenure {command}")), "{text}");
    }
}

#[test]
fn the_version_is_printed() {
    let ran = Sandbox::new().run(&["--version"]).exits(0);
    assert_eq!(ran.stdout, concat!("tenure ", env!("CARGO_PKG_VERSION"), "\n"));
}
