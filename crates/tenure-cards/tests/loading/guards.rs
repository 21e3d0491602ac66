//! What guards a project is part of what is trusted: one that is taken away or weakened is a change.

use tenure_cards::card::Environ;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Color;
use tenure_cards::trust::{Change, Inventory, Item, ItemKind, changes, inventory};
use tenure_testkit::TestFolder;

fn project(fields: &str, config: &str) -> TestFolder {
    let folder = TestFolder::new(&[
        (
            "guard.py",
            "async def check(ctx, next):\n    return await next()\n\n\ndef first(ctx):\n    pass\n",
        ),
        ("audit.sh", "echo '{}'\n"),
    ]);
    folder.write("tenure.toml", config);
    write(&folder, fields);
    folder
}

fn write(folder: &TestFolder, fields: &str) {
    folder.write(
        "a.md",
        &format!("---\nname: a\nmodel: passthrough\nshell: true\n{fields}\n---\nx\n"),
    );
}

fn listed(folder: &TestFolder) -> Inventory {
    let options = LoadOptions::default().environ(Environ::empty());
    let loaded = load(folder.path(), &options);
    assert!(!loaded.report.has_errors(), "{}", loaded.report.render_text(Color::Never));
    inventory(&loaded)
}

/// The guards that are others now, as they were and as they are.
fn guards(before: &Inventory, after: &Inventory) -> Vec<(Item, Item)> {
    let of_guards = |change| match change {
        Change::Changed { old, new } if new.kind == ItemKind::Guard => Some((old, new)),
        _ => None,
    };
    changes(before, after).into_iter().filter_map(of_guards).collect()
}

#[test]
fn a_guard_that_is_taken_away_or_weakened_is_a_change() {
    let guard = "hooks:\n  - { on: wrap_tool_call, run: guard.py:check, policy: deny, timeout: 5s, retries: 1, name: guard }\n";
    let two = "hooks:\n  - { on: on_start, run: guard.py:first }\n  - { on: on_start, run: [sh, audit.sh] }\n";
    let ready =
        "hooks:\n  - { use: permissions, with: { rules: [{ deny: shell }, { allow: \"*\" }] } }\n";
    let params = "request_params: { max_iterations: 5 }\n";
    let cases = [
        ("removed", guard, ""),
        ("policy", guard, &guard.replace("deny", "continue")),
        ("timeout", guard, &guard.replace("5s", "5m")),
        ("retries", guard, &guard.replace("retries: 1", "retries: 2")),
        ("when", guard, &guard.replace("name: guard", "when: \"tool.name == 'x'\", name: guard")),
        ("order", guard, &guard.replace("name: guard", "order: 5, name: guard")),
        (
            "sequence",
            two,
            "hooks:\n  - { on: on_start, run: [sh, audit.sh] }\n  - { on: on_start, run: guard.py:first }\n",
        ),
        ("options", ready, &ready.replace("{ deny: shell }, ", "")),
        ("steps", params, &params.replace('5', "500")),
        ("no steps", params, ""),
        ("a person", "human_input: true\n", ""),
        ("children", "child_timeout_sec: 5\n", ""),
        ("tool hook", "tool_hooks: { before_tool_call: guard.py:first }\n", ""),
    ];
    for (what, before, after) in cases {
        let folder = project(before, "");
        let first = listed(&folder);
        assert_eq!(guards(&first, &listed(&folder)), [], "{what}");
        write(&folder, after);
        let second = listed(&folder);
        assert_eq!(guards(&first, &second).len(), 1, "{what}: {second:#?}");
        assert_ne!(first.fingerprint(), second.fingerprint(), "{what}");
    }
}

#[test]
fn a_guard_is_shown_as_it_is_set() {
    let fields = "hooks:\n  - { on: wrap_tool_call, run: guard.py:check, policy: deny, timeout: 5s, name: guard }\n  \
                  - { use: permissions, with: { rules: [{ deny: shell }] } }\n\
                  request_params:\n  max_iterations: 5\n";
    let folder = project(fields, "");
    let items = listed(&folder).items;
    let guards: Vec<&Item> = items.iter().filter(|it| it.kind == ItemKind::Guard).collect();
    assert_eq!(guards.len(), 2, "{guards:#?}");
    assert_eq!(guards[0].what, "a in a.md");
    assert_eq!(
        guards[0].used_by,
        [
            "hook its own points use permissions (with rules [{\"deny\":\"shell\"}])",
            "hook wrap_tool_call guard.py:check (policy deny, timeout 5s)",
            "request_params max_iterations: 5",
        ]
    );
    assert_eq!((&*guards[1].what, guards[1].used_by.len()), ("every agent, by tenure.toml", 0));
}

#[test]
fn a_limit_of_the_project_counts_and_so_does_a_configuration_that_is_gone() {
    for after in ["[limits]\ntool = \"60s\"\n", "", "gone"] {
        let folder = project("", "[limits]\ntool = \"30s\"\n");
        let first = listed(&folder);
        match after {
            // The card's own folder is then the project, as it was before.
            "gone" => std::fs::remove_file(folder.path().join("tenure.toml")).expect("removed"),
            text => drop(folder.write("tenure.toml", text)),
        }
        let second = listed(&folder);
        let found = guards(&first, &second);
        assert_eq!(found.len(), 1, "{after:?}: {second:#?}");
        assert_eq!(found[0].0.used_by, ["limits.tool 30s"]);
    }
}

#[test]
fn a_project_that_runs_nothing_needs_no_trust_whatever_guards_it() {
    let folder = TestFolder::new(&[]);
    folder.write("tenure.toml", "[limits]\ntool = \"30s\"\n");
    folder.write(
        "a.md",
        "---\nname: a\nmodel: passthrough\nrequest_params: { max_iterations: 5 }\n---\nx\n",
    );
    let options = LoadOptions::default().environ(Environ::empty());
    assert!(inventory(&load(folder.path(), &options)).is_empty());
}
