//! The inventory of what would run.

use std::fs;
use std::path::Path;
use tenure_cards::card::Environ;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Color;
use tenure_cards::trust::{Inventory, ItemKind, changes, inventory};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder"));
        folder.write("tenure.toml", "[hooks]\nenv = [\"DATABASE_URL\"]\n");
        folder.write(
            "cards/a.md",
            "---\nshell: true\nlifecycle_hooks: { on_start: ../hooks/a.py:start }\n\
             hooks:\n  - { on: before_agent, run: [sh, ./check.sh, --strict] }\n\
             function_tools: ../hooks/a.py:tool\n---\nx\n",
        );
        folder.write("cards/check.sh", "echo\n");
        folder.write("hooks/a.py", "import b\ndef start(ctx): pass\ndef tool(a: int): pass\n");
        folder.write("hooks/b.py", "x = 1\n");
        folder.write("hooks/deep/c.py", "x = 1\n");
        folder.write("hooks/.venv/d.py", "x = 1\n");
        folder.write("hooks/__pycache__/e.pyc", "x");
        folder.write("hooks/notes.txt", "x");
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn inventory(&self) -> Inventory {
        let options = LoadOptions::default().environ(Environ::empty());
        let loaded = load(&self.0.path().join("cards"), &options);
        assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
        inventory(&loaded)
    }
}

fn said(inventory: &Inventory) -> Vec<String> {
    let said = |item: &tenure_cards::trust::Item| {
        let hashed = if item.sha256.is_some() { " (hashed)" } else { "" };
        format!("{}: {}{hashed} [{}]", item.kind, item.what, item.used_by.join(", "))
    };
    inventory.items.iter().map(said).collect()
}

#[test]
fn everything_that_would_run_is_there_once_with_its_hash_and_its_uses() {
    let folder = Folder::new();
    assert_eq!(
        said(&folder.inventory()),
        [
            "python file: hooks/a.py (hashed) [a: on_start start, a: tool tool]",
            "importable file: hooks/b.py (hashed) []",
            "importable file: hooks/deep/c.py (hashed) []",
            "command: sh ./check.sh --strict [a: before_agent]",
            "file of a command: cards/check.sh (hashed) [a: before_agent]",
            "permission: shell: the model may run shell commands [a]",
            "environment variable: DATABASE_URL []",
            "configuration: tenure.toml (hashed) []",
        ]
    );
}

#[test]
fn the_fingerprint_is_stable_and_every_change_shows() {
    let folder = Folder::new();
    let first = folder.inventory();
    assert_eq!(first.fingerprint(), folder.inventory().fingerprint());
    assert!(changes(&first, &folder.inventory()).is_empty());
    let edits = [
        (
            "hooks/a.py",
            "def start(ctx): print()\ndef tool(a: int): pass\n",
            "changed python file hooks/a.py",
        ),
        ("hooks/b.py", "x = 2\n", "changed importable file hooks/b.py"),
        ("hooks/new.py", "", "added importable file hooks/new.py"),
        ("cards/check.sh", "echo 2\n", "changed file of a command cards/check.sh"),
        (
            "tenure.toml",
            "[hooks]\nenv = [\"DATABASE_URL\", \"B\"]\n",
            "added environment variable B",
        ),
        ("cards/b.md", "---\nhooks: [{ on: on_start, run: [sh] }]\n---\nx\n", "added command sh"),
        (
            "cards/c.md",
            "---\nlifecycle_hooks: { on_start: ../hooks/a.py:start }\n---\nx\n",
            "used otherwise: python file hooks/a.py",
        ),
    ];
    let mut before = first;
    for (file, text, expected) in edits {
        folder.write(file, text);
        let after = folder.inventory();
        let found: Vec<String> = changes(&before, &after).iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|change| change == expected), "{file}: {found:?}");
        assert_ne!(before.fingerprint(), after.fingerprint(), "{file}");
        before = after;
    }
}

#[test]
fn a_project_that_runs_nothing_has_an_empty_inventory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("a.yaml"), "name: a\n").expect("written");
    let loaded = load(folder.path(), &LoadOptions::default());
    assert!(inventory(&loaded).is_empty());
}

#[test]
fn what_comes_from_the_environment_is_not_in_the_inventory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "mcp_connect: [{ target: \"serve --key ${KEY}\" }]\n\
                hooks:\n  - { use: retry, with: { key: \"${KEY}\" } }\n\
                \x20 - { on: on_start, run: [sh, \"${KEY}\"] }\n";
    fs::write(folder.path().join("a.yaml"), text).expect("written");
    let with = |key: &str| {
        let options = LoadOptions::default().environ(Environ::of([("KEY", key)]));
        let loaded = load(folder.path(), &options);
        assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
        inventory(&loaded)
    };
    let stored = serde_json::to_string(&with("sk-secret")).expect("it can be stored");
    assert!(!stored.contains("sk-secret") && stored.contains("${KEY}"), "{stored}");
    assert_eq!(with("sk-secret").fingerprint(), with("other").fingerprint());
}

#[test]
fn an_inventory_survives_being_stored() {
    let inventory = Folder::new().inventory();
    let stored = serde_json::to_string(&inventory).expect("it can be stored");
    let read: Inventory = serde_json::from_str(&stored).expect("it can be read");
    assert_eq!(read.fingerprint(), inventory.fingerprint());
    assert_eq!(read.items[0].kind, ItemKind::Python);
    assert!(!stored.contains(&*Path::new(&std::env::temp_dir()).to_string_lossy()));
}
