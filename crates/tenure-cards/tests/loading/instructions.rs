//! What agents are told is part of what is trusted, if anything would run.

use tenure_cards::card::Environ;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Color;
use tenure_cards::trust::{Inventory, ItemKind, changes, inventory};
use tenure_testkit::TestFolder;

const FILES: [(&str, &str); 9] = [
    ("tenure.toml", "[aliases]\nfast = \"script:scripts/fast.json\"\n"),
    (
        "cards/a.md",
        "---\nmodel: script:a.json\nshell: true\nskills: ../skills\nmessages: past.json\nhooks:\n  \
         - { use: load_context, with: { files: [../docs/one.md, '../docs/*.md'] } }\n---\n\
         {{file:rules.md}} {{file_silent:docs/later.md}}\n",
    ),
    ("cards/a.json", "[\"a\"]"),
    ("cards/past.json", "[]"),
    ("rules.md", "Delete nothing.\n"),
    ("skills/sums/SKILL.md", "---\nname: sums\ndescription: adds\n---\nx\n"),
    ("docs/one.md", "one\n"),
    ("docs/two.md", "two\n"),
    ("scripts/fast.json", "[\"b\"]"),
];

fn listed(folder: &TestFolder) -> Inventory {
    let options = LoadOptions::default().environ(Environ::empty());
    let loaded = load(&folder.path().join("cards"), &options);
    assert!(!loaded.report.has_errors(), "{}", loaded.report.render_text(Color::Never));
    inventory(&loaded)
}

fn told(inventory: &Inventory) -> Vec<String> {
    let is_told = |kind| matches!(kind, ItemKind::Instruction | ItemKind::Data);
    let items = inventory.items.iter().filter(|item| is_told(item.kind));
    let line = |item: &tenure_cards::trust::Item| {
        assert!(item.sha256.is_some(), "{item:?}");
        format!("{}: {} [{}]", item.kind, item.what, item.used_by.join(", "))
    };
    items.map(line).collect()
}

#[test]
fn every_file_that_a_card_names_counts_by_its_contents() {
    let folder = TestFolder::new(&FILES);
    let first = listed(&folder);
    assert_eq!(
        told(&first),
        [
            "data: cards/a.json [a: script]",
            "data: cards/past.json [a: messages]",
            "data: scripts/fast.json [every agent: script]",
            "instruction: cards/a.md [a]",
            "instruction: docs/one.md [a: its own points (load_context)]",
            "instruction: rules.md [a: instruction]",
            "instruction: skills/sums/SKILL.md [a: skill]",
        ]
    );
    for (file, text) in FILES.iter().filter(|(file, _)| *file != "docs/two.md") {
        folder.write(file, &format!("{text}\n"));
        let found = changes(&first, &listed(&folder));
        assert_eq!(found.len(), 1, "{file}: {found:?}");
        assert!(found[0].to_string().ends_with(file), "{file}: {found:?}");
        folder.write(file, text);
    }
    folder.write("docs/later.md", "now it is there\n");
    let found = changes(&first, &listed(&folder));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].to_string(), "added instruction docs/later.md");
}

#[test]
fn what_nothing_runs_for_needs_no_trust() {
    let card = "---\nmodel: passthrough\n---\n{{file:rules.md}}\n";
    let folder = TestFolder::new(&[("cards/a.md", card), ("rules.md", "x")]);
    folder.write("tenure.toml", "");
    assert!(listed(&folder).is_empty());
}

#[test]
fn a_link_counts_with_where_it_leads() {
    let folder = TestFolder::new(&FILES);
    for (name, to, text) in [
        ("rules.md", "texts/rules.md", "Delete nothing.\n"),
        ("cards/a.md", "../texts/a.src", FILES[1].1),
        ("tenure.toml", "texts/a.toml", FILES[0].1),
    ] {
        let link = folder.path().join(name);
        folder.write("texts/none", "");
        std::fs::write(link.parent().expect("a folder").join(to), text).expect("written");
        std::fs::remove_file(&link).expect("removed");
        std::os::unix::fs::symlink(to, &link).expect("linked");
    }
    let first = listed(&folder);
    for (name, to) in [
        ("rules.md", "texts/rules.md"),
        ("cards/a.md", "texts/a.src"),
        ("tenure.toml", "texts/a.toml"),
    ] {
        let link = format!("a link to {to}");
        let item = first.items.iter().find(|item| item.what == name).expect(name);
        assert!(item.used_by.contains(&link), "{item:?}");
    }
    folder.write("texts/other.md", "Delete nothing.\n");
    let link = folder.path().join("rules.md");
    std::fs::remove_file(&link).expect("removed");
    std::os::unix::fs::symlink("texts/other.md", &link).expect("linked");
    let found = changes(&first, &listed(&folder));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].to_string(), "used otherwise: instruction rules.md");
}
