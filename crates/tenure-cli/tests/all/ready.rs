//! The ready-made hooks as files use them: each has an example that is checked, explained and run.

use crate::support::{Ran, Sandbox};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tenure_hooks::ready;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hooks")
}

/// A project with the example's files, and nothing else.
fn project(name: &str) -> Sandbox {
    let sandbox = Sandbox::with(&[("tenure.toml", "")]);
    copy(&examples().join(name), &sandbox.project());
    sandbox
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("an example") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("a copy");
        }
    }
}

#[test]
fn every_ready_made_hook_has_an_example_and_every_example_a_hook() {
    let hooks: BTreeSet<String> = ready::all().map(|(_, it)| it.name().to_owned()).collect();
    let entries = std::fs::read_dir(examples()).expect("the examples");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names: BTreeSet<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(hooks, names);
}

#[test]
fn every_example_is_checked_explained_and_run_offline() {
    let mut wrong = Vec::new();
    for (_, hook) in ready::all() {
        let name = hook.name();
        let sandbox = project(name);
        let checked = sandbox.run(&["check", "agent.md"]);
        if checked.code != Some(0) {
            wrong.push(format!("{name}: check: {}{}", checked.stdout, checked.stderr));
            continue;
        }
        let explained = sandbox.run(&["explain", "agent.md"]);
        if !explained.stdout.contains(&format!("use {name}")) {
            wrong.push(format!("{name}: explain: {}", explained.stdout));
        }
        let message = sandbox.read("input.txt");
        let run = ["run", "agent.md", "--trust", "--timeout", "60s", "-m", message.trim()];
        let ran = sandbox.run(&run);
        let said = format!("{}\n{}", ran.stdout, ran.stderr);
        // An example may show a failure or a denial, but it comes to its own end.
        if !matches!(ran.code, Some(0 | 1 | 5 | 6 | 7)) {
            wrong.push(format!("{name}: run ended with {:?}:\n{said}", ran.code));
        }
        let expected = sandbox.read("expected.txt");
        if expected.trim().is_empty() {
            wrong.push(format!("{name}: there is no expected.txt"));
        }
        for line in expected.lines().filter(|line| !line.trim().is_empty()) {
            if !said.contains(line.trim()) {
                wrong.push(format!("{name}: run ({:?}) lacks {line:?}:\n{said}", ran.code));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n---\n"));
}

#[test]
fn options_are_checked_with_their_place() {
    let card = "---\nname: a\nhooks:\n  - use: timeout\n    with:\n      model: 20\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card)]);
    let checked = sandbox.run(&["check", "a.md"]);
    assert_eq!(checked.code, Some(3), "{}", checked.stdout);
    assert!(checked.stdout.contains("T0319"), "{}", checked.stdout);
    assert!(checked.stdout.contains("a.md:6:"), "{}", checked.stdout);
    assert!(
        checked.stdout.contains("`tenure hooks timeout` lists its options"),
        "{}",
        checked.stdout
    );
    let card = card.replace("timeout", "timeuot");
    sandbox.write("a.md", &card);
    let checked = sandbox.run(&["check", "a.md"]);
    assert!(checked.stdout.contains("did you mean `timeout`?"), "{}", checked.stdout);
}

#[test]
fn options_are_checked_beside_everything_else_that_is_wrong() {
    let card = "---\nname: a\nuse_history: \"false\"\nhooks:\n  - { use: timeout, with: { model: 20 } }\n  - { use: budget, with: { run: { usd: 1 }, text: x } }\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card)]);
    let checked = sandbox.run(&["check", "a.md"]).exits(3);
    let checked = checked.prints("a.md:3:").prints("a.md:5:").prints("a.md:6:").prints("3 errors");
    assert_eq!(checked.stdout.matches("T0319").count(), 2, "{checked}");
}

#[test]
fn an_agent_that_nothing_can_be_routed_to_is_found_by_check() {
    let desk = "---\nname: desk\nhooks:\n  - use: route\n    with:\n      ways:\n        - { label: money, matches: [invoice], agent: billing }\n---\nx\n";
    let sandbox = Sandbox::with(&[("desk.md", desk), ("other.md", "---\nname: other\n---\nx\n")]);
    let checked = sandbox.run(&["check", "."]).exits(3).prints("T0319").prints("desk.md:7:");
    checked.prints("there is no agent `billing` among those that are loaded: desk, other");
    // One that cannot be read may be it.
    sandbox.write("other.md", "---\nname: other\nhooks: {\n---\nx\n");
    let checked = sandbox.run(&["check", "."]).exits(3);
    assert!(!checked.stdout.contains("T0319"), "{checked}");
    sandbox.write("other.md", "---\nname: billing\n---\nx\n");
    sandbox.run(&["check", "."]).exits(0);
    let ran = sandbox.run(&["run", ".", "--agent", "desk", "-m", "my invoice", "--trust"]);
    ran.exits(0).prints("my invoice");
}

#[test]
fn where_one_file_is_loaded_it_is_said_how_to_have_those_beside_it() {
    let desk = "---\nname: desk\nhooks:\n  - use: route\n    with:\n      ways:\n        - { label: money, matches: [invoice], agent: billing }\n---\nx\n";
    let billing = "---\nname: billing\n---\nx\n";
    let files = [
        ("desk.md", desk),
        ("billing.md", billing),
        ("cards/desk.md", desk),
        ("cards/billing.md", billing),
    ];
    let sandbox = Sandbox::with(&files);
    let loaded = "there is no agent `billing` among those that are loaded: desk; only one file";
    for (file, folder) in [("desk.md", "."), ("cards/desk.md", "cards")] {
        let checked = sandbox.run(&["check", file]).exits(3).prints("T0319").prints(loaded);
        checked.prints(&format!("name the folder: `tenure check {folder}`"));
        sandbox.run(&["check", folder]).exits(0);
    }
    // Where a folder was loaded, there is nothing more to load.
    sandbox.write("cards/billing.md", "---\nname: other\n---\nx\n");
    let checked = sandbox.run(&["check", "cards"]).exits(3).prints("loaded: desk, other");
    assert!(!checked.stdout.contains("name the folder"), "{checked}");
}

/// A model that is down, and one beside it that is up.
fn down_and_up(hooks: &str) -> Sandbox {
    let card = format!("---\nname: a\nmodel: script:down.yaml\nhooks:\n{hooks}---\nx\n");
    Sandbox::with(&[
        ("a.md", &card),
        ("down.yaml", "- { error: it is down, kind: overloaded }\n"),
        ("up.yaml", "- \"up: {input}\"\n"),
        ("other.yaml", "- another\n"),
    ])
}

#[test]
fn a_breaker_tells_the_scripts_of_hooks_apart() {
    let run = ["run", "a.md", "-m", "hello", "--trust", "--no-store"];
    let fallback = "  - { use: fallback, with: { models: [\"script:up.yaml\"] } }\n";
    let breaker = "  - { use: breaker, with: { failures: 1, open_for: 1h } }\n";
    let sandbox = down_and_up(&format!("{fallback}{breaker}"));
    let ran = sandbox.run(&run).exits(0).prints("up: hello");
    // The agent's own has the name that it always had.
    let lines = sandbox.run(&[&run[..], &["--json"]].concat()).exits(0).json_lines();
    let all = lines.iter().map(ToString::to_string).collect::<String>();
    assert!(all.contains("\"script\"") && all.contains("\"script:up.yaml\""), "{ran}{all}");
}

#[test]
fn a_script_that_a_card_names_is_no_lost_card() {
    let hooks = "  - { use: fallback, with: { models: [\"script:up.yaml\"] } }\n";
    let sandbox = down_and_up(hooks);
    let checked = sandbox.run(&["check", "."]).exits(0).prints("other.yaml:1:1");
    assert_eq!(checked.stdout.matches("T0905").count(), 1, "{checked}");
    assert!(
        !checked.stdout.contains("down.yaml") && !checked.stdout.contains("up.yaml"),
        "{checked}"
    );
    let ran = sandbox.run(&["run", ".", "-m", "hello", "--trust", "--no-store"]).exits(0);
    assert_eq!(ran.stderr.matches("T0905").count(), 1, "{ran}");
    // That of a card that is not whole is named all the same, and so is that of the project.
    sandbox.write("a.md", &sandbox.read("a.md").replace("name: a\n", "name: a\nnmae: b\n"));
    sandbox.write("tenure.toml", "default_model = \"script:other.yaml\"\n");
    let checked = sandbox.run(&["check", "."]);
    assert!(!checked.stdout.contains("T0905"), "{checked}");
}

#[test]
fn what_a_critic_uses_is_in_the_table() {
    let sandbox = project("critic");
    let message = sandbox.read("input.txt");
    let run = ["run", "agent.md", "--trust", "--no-store", "-m", message.trim()];
    let ran = sandbox.run(&run).exits(0);
    let lines = sandbox.run(&[&run[..], &["--json"]].concat()).exits(0).json_lines();
    let usage = &lines.last().expect("a result")["usage"];
    let asked = lines.iter().filter(|line| line["name"] == "hook.model_called").count();
    assert!(asked > 0, "{ran}");
    let total = ran.stderr.lines().find(|line| line.contains("TOTAL")).expect("a table");
    let cells: Vec<&str> = total.split_whitespace().collect();
    let used = ["input", "output", "calls"].map(|field| usage[field].to_string());
    assert_eq!(cells[1..4], used, "{ran}");
}

#[test]
fn an_order_that_cannot_work_is_found_by_check() {
    let card =
        "---\nname: a\nhooks:\n  - { use: cache, after: [retry] }\n  - { use: retry }\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card)]);
    let checked = sandbox.run(&["check", "a.md"]);
    assert_eq!(checked.code, Some(3), "{}", checked.stdout);
    assert!(checked.stdout.contains("`cache` has to stand before `retry`"), "{}", checked.stdout);
}

#[test]
fn a_critic_that_is_the_creator_is_a_warning() {
    let critic = "{ critics: [{ name: same, model: passthrough }], context: shared }";
    let card = format!(
        "---\nname: a\nmodel: passthrough\nhooks:\n  - use: critic\n    with: {critic}\n---\nx\n"
    );
    let sandbox = Sandbox::with(&[("a.md", &card)]);
    let checked = sandbox.run(&["check", "a.md"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);
    assert!(checked.stdout.contains("T0909"), "{}", checked.stdout);
}

#[test]
fn what_a_hook_would_reach_is_part_of_trust() {
    let card = "---\nname: a\nhooks:\n  - { use: fallback, with: { models: [openai.gpt-4.1-mini] } }\n  - { use: notify, with: { command: [\"./tell.sh\"] } }\n  - { use: shell }\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("tell.sh", "#!/bin/sh\ntrue\n")]);
    // Without a key a provider is not taken at all. This one leads nowhere, and is never asked.
    let mut command = sandbox.command(&["run", "a.md", "-m", "x"]);
    command.env("OPENAI_API_KEY", "sk-hush-hush").env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let ran = Ran::of(command.output().expect("it starts")).exits(4);
    assert!(!ran.stderr.contains("sk-hush-hush"), "{ran}");
    for part in ["openai requests go to", "./tell.sh", "the model may run commands"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn the_program_lists_hooks_and_what_each_takes() {
    let sandbox = Sandbox::new();
    let list = sandbox.run(&["hooks"]);
    assert_eq!(list.code, Some(0));
    for (_, hook) in ready::all() {
        assert!(list.stdout.contains(hook.about().summary), "{}", hook.name());
    }
    let one = sandbox.run(&["hooks", "retry"]);
    for part in ["wrap_model_call", "attempts", "UC-3.1", "ModelRetryMiddleware"] {
        assert!(one.stdout.contains(part), "{part}: {}", one.stdout);
    }
    let json = sandbox.run(&["hooks", "retry", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(json["options"]["properties"]["attempts"].is_object(), "{json}");
    let unknown = sandbox.run(&["hooks", "retri"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("did you mean `retry`?"), "{}", unknown.stderr);
}
