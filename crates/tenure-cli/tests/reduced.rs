//! The program without its features, which is what a newcomer builds first:
//! `cargo test -p tenure-cli --no-default-features --test reduced`.
#![cfg(not(any(feature = "hooks", feature = "mcp", feature = "providers")))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the program with no configuration and no keys but what the test gives it.
fn tenure(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(words)
        .current_dir(folder)
        .env("XDG_CONFIG_HOME", folder.join(".config"))
        .env("XDG_DATA_HOME", folder.join(".data"))
        .env("XDG_STATE_HOME", folder.join(".state"))
        .env("NO_COLOR", "1")
        .env_remove("OPENAI_API_KEY")
        .output()
        .expect("the program runs")
}

fn text(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// What `check` says of a folder with this card and this configuration.
fn checked(card: &str, config: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("card.md"), card).expect("the card is written");
    fs::write(folder.path().join("tenure.toml"), config).expect("the configuration is written");
    let output = tenure(folder.path(), &["check", "."]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    // How lines are broken is not the point.
    text(&output).split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ")
}

/// What is said of anything that the program lacks.
fn refusal(what: &str, feature: &str) -> [String; 2] {
    [
        format!("{what} is not part of this program, which was built without `{feature}`"),
        format!("build it with `--features {feature}`, or install all of it"),
    ]
}

fn assert_refused(said: &str, what: &str, feature: &str) {
    assert!(said.contains("T0708"), "{said}");
    for part in refusal(what, feature) {
        assert!(said.contains(&part), "{part}\n{said}");
    }
}

#[test]
fn the_demo_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = tenure(folder.path(), &["demo"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("researcher#1[tool]"), "{}", text(&output));
}

#[test]
fn a_new_project_is_checked_and_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for words in
        [&["init", "hello"][..], &["check", "hello"], &["run", "hello", "--trust", "-m", "Hi"]]
    {
        let output = tenure(folder.path(), words);
        assert!(output.status.success(), "{words:?}\n{}", text(&output));
    }
}

#[test]
fn a_ready_made_hook_is_refused_by_name() {
    let said = checked("---\nmodel: passthrough\nhooks:\n  - { use: retry }\n---\nx\n", "");
    assert_refused(&said, "the hook `retry`", "hooks");
}

#[test]
fn a_name_that_is_no_hooks_is_still_unknown() {
    let said = checked("---\nmodel: passthrough\nhooks:\n  - { use: reply }\n---\nx\n", "");
    assert!(said.contains("T0318") && !said.contains("T0708"), "{said}");
}

#[test]
fn a_model_over_the_network_is_refused_by_name() {
    let said = checked("---\nmodel: openai.gpt-4o-mini\n---\nx\n", "");
    assert_refused(&said, "the model `openai.gpt-4o-mini`", "providers");
}

#[test]
fn a_tool_server_is_refused_by_name() {
    let config = "[mcp.servers.files]\ncommand = [\"serve-files\"]\n";
    let said = checked("---\nmodel: passthrough\nservers: [files]\n---\nx\n", config);
    assert_refused(&said, "the tool server `files`", "mcp");
}

#[test]
fn commands_about_hooks_say_that_there_are_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for words in [&["hooks"][..], &["hooks", "retry"], &["audit", "verify", "log.jsonl"]] {
        let output = tenure(folder.path(), words);
        assert_eq!(output.status.code(), Some(1), "{words:?}\n{}", text(&output));
        assert!(text(&output).contains("`--features hooks`"), "{words:?}\n{}", text(&output));
    }
}
