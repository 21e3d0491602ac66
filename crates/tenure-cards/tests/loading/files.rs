//! Which files are read, what of them stays secret, and where what is wrong is pointed at.

use crate::loading::support::*;
use std::fs;
use tenure_cards::card::Environ;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Color;

#[test]
fn agents_that_a_card_names_are_found_beside_it_and_others_are_left_alone() {
    let folder = Folder::new(&[
        ("a.md", "---\nagents: [b c]\n---\nx\n".replace("b c", "b_c").as_str()),
        ("some file.yaml", "name: b c\nagents: [d]\n"),
        ("d.md", "---\n---\nx\n"),
        ("unrelated.md", "---\ncolour: red\n---\nx\n"),
        ("broken.yaml", "name: [\n"),
    ]);
    let loaded = folder.load("a.md");
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    let names: Vec<&str> = loaded.cards.iter().map(|card| &*card.name).collect();
    assert_eq!(names, ["a", "d", "b_c"]);
    assert_eq!(loaded.default_card().map(|card| &*card.name), Some("a"));
}

#[test]
fn the_default_is_the_one_that_says_so_else_one_that_nobody_names() {
    let folder = Folder::new(&[
        ("a.yaml", "name: a\n"),
        ("b.yaml", "name: b\nagents: [a]\n"),
        ("c.yaml", "name: c\ntool_only: true\n"),
    ]);
    assert_eq!(folder.load("").default_card().map(|card| card.name.to_string()), Some("b".into()));
    folder.0.write("z.yaml", "name: z\ndefault: true\n");
    assert_eq!(folder.load("").default_card().map(|card| card.name.to_string()), Some("z".into()));
}

#[test]
fn the_project_is_the_nearest_folder_with_a_configuration() {
    let folder = Folder::new(&[
        ("inner/tenure.toml", "[hooks]\nenv = [\"A\"]\n"),
        ("inner/cards/a.yaml", "lifecycle_hooks: { on_start: ../../outer.py:f }\n"),
        ("cards/a.yaml", "lifecycle_hooks: { on_start: ../outer.py:f }\n"),
        ("outer.py", "def f(ctx): pass\n"),
    ]);
    let loaded = folder.load("inner/cards");
    assert_eq!(codes(&loaded), ["T0403"]);
    assert_eq!(loaded.project.config.hook_env, ["A"]);
    assert!(loaded.project.root.ends_with("inner"));
    assert!(folder.load("cards").report.is_empty());
}

#[test]
fn hostile_python_is_refused_and_does_not_exhaust_the_stack() {
    let sources = [
        format!("x = {}1\ndef f(ctx): pass\n", "-".repeat(100_000)),
        format!("x = a{}\ndef f(ctx): pass\n", ".b".repeat(100_000)),
        format!("x = {}\ndef f(ctx): pass\n", "[".repeat(50_000)),
        format!("x = {}1\ndef f(ctx): pass\n", "lambda: ".repeat(50_000)),
        format!("x = {}\ndef f(ctx): pass\n", "a if b else ".repeat(50_000)),
    ];
    for source in sources {
        let card = "lifecycle_hooks: { on_start: hooks.py:f }\n";
        let folder = Folder::new(&[("a.yaml", card), ("hooks.py", &source)]);
        let found = codes(&folder.load("a.yaml"));
        assert_eq!(found, ["T0406", "T0406"], "{:.30}", source);
    }
    // A long sum is unusual, but it is Python.
    let source = format!("x = {}1\ndef f(ctx): pass\n", "1 + ".repeat(1500));
    let card = "lifecycle_hooks: { on_start: hooks.py:f }\n";
    let folder = Folder::new(&[("a.yaml", card), ("hooks.py", &source)]);
    assert!(folder.load("a.yaml").report.is_empty());
}

#[test]
fn secrets_are_what_the_environment_says_in_secret_places_or_under_secret_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let card = "api_key: ${ONE}\nmcp_connect:\n  - target: \"serve ${PLAIN}\"\n    \
                auth: { deep: { x: \"${FOUR}\" } }\n  - target: https://x.example\n    \
                headers: { A: \"Bearer ${THREE}\", B: \"${TWO_TOKEN}\" }\n\
                hooks:\n  - { use: x, with: { password: \"${FIVE}\", other: \"${URL}\" } }\n  \
                - { use: x, with: { key: \"${UNSET:default-value}\" } }\n";
    std::fs::write(folder.path().join("a.yaml"), card).expect("written");
    let environ = Environ::of([
        ("ONE", "value-one"),
        ("TWO_TOKEN", "value-two"),
        ("PLAIN", "not-secret"),
        ("THREE", "value-three"),
        ("FOUR", "value-four"),
        ("FIVE", "value-five"),
        ("URL", "https://me:hunter22@x.example"),
    ]);
    let loaded = load(folder.path(), &LoadOptions::default().environ(environ));
    assert!(!loaded.report.has_errors(), "{}", loaded.report.render_text(Color::Never));
    let secrets = loaded.redactor();
    for hidden in ["value-one", "value-two", "value-three", "value-four", "value-five", "hunter22"]
    {
        assert_eq!(secrets.redact(hidden), "[redacted]", "{hidden}");
    }
    for shown in ["not-secret", "default-value", "Bearer"] {
        assert_eq!(secrets.redact(shown), shown);
    }
    // Neither the cards nor the secrets themselves say them.
    let all = format!("{:?} {secrets:?}", loaded.cards[0].expansions);
    assert!(!all.contains("value-"), "{all}");
}

/// A folder outside of the project `project`, with a secret in it.
fn beside() -> (tempfile::TempDir, Folder) {
    let outer = tempfile::tempdir().expect("a temporary folder");
    fs::write(outer.path().join("passwd"), "root:x:0:0\n").expect("written");
    (outer, Folder::new(&[("good.md", "---\nname: good\n---\nx\n")]))
}

#[cfg(unix)]
#[test]
fn a_card_that_is_a_link_out_of_the_project_is_refused_unread() {
    use std::os::unix::fs::symlink;
    let (outer, folder) = beside();
    for name in ["p.md", "p.yaml"] {
        let link = folder.0.path().join(name);
        symlink(outer.path().join("passwd"), &link).expect("linked");
        for path in ["", name] {
            let loaded = folder.load(path);
            assert_eq!(codes(&loaded), ["T0404"], "{path}");
            let shown = loaded.report.render_text(Color::Never);
            assert!(shown.contains("leads out of the project") && shown.contains(name), "{shown}");
            assert!(!shown.contains("root:"), "{shown}");
            let said = loaded.report.to_json_lines() + &loaded.report.to_sarif().to_string();
            assert!(!said.contains("root:"), "{said}");
        }
        fs::remove_file(link).expect("removed");
    }
    // Also where another card names it.
    folder.0.write("parent.md", "---\nagents: [p]\n---\nx\n");
    symlink(outer.path().join("passwd"), folder.0.path().join("p.md")).expect("linked");
    assert_eq!(codes(&folder.load("parent.md")), ["T0404"]);
}

#[cfg(unix)]
#[test]
fn a_link_inside_the_project_is_a_card_where_its_name_is() {
    let folder = Folder::new(&[("real/a.md", "---\n---\nx\n"), ("cards/b.md", "---\n---\nx\n")]);
    let link = folder.0.path().join("cards/a.md");
    std::os::unix::fs::symlink("../real/a.md", link).expect("linked");
    assert_eq!(&*folder.card("cards/a.md").name, "a");
    assert_eq!(folder.load("cards").cards.len(), 2);
}

#[cfg(unix)]
#[test]
fn a_configuration_that_is_a_link_out_of_the_project_is_refused_unread() {
    let (outer, folder) = beside();
    fs::remove_file(folder.0.path().join("tenure.toml")).expect("removed");
    let link = folder.0.path().join("tenure.toml");
    std::os::unix::fs::symlink(outer.path().join("passwd"), link).expect("linked");
    let loaded = folder.load("good.md");
    assert_eq!(codes(&loaded), ["T0404"]);
    assert!(!loaded.report.render_text(Color::Never).contains("root:"));
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_whose_name_begins_like_the_project_leads_out() {
    let outer = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        let path = outer.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("project/tenure.toml", "");
    write("project2/x.py", "def start(ctx): pass\n");
    write("project2/x.md", "---\nname: x\n---\nx\n");
    write("project/a.md", "---\nlifecycle_hooks: { on_start: 'x.py:start' }\n---\nx\n");
    for name in ["x.py", "x.md"] {
        let link = outer.path().join("project").join(name);
        std::os::unix::fs::symlink(format!("../project2/{name}"), link).expect("linked");
    }
    let loaded = load(&outer.path().join("project"), &LoadOptions::default());
    assert_eq!(codes(&loaded), ["T0404", "T0404"]);
}

#[test]
fn an_interpreter_that_is_not_there_is_reported() {
    let folder = Folder::new(&[("a.md", "---\n---\nx\n"), ("tools/python", "")]);
    for (named, expected) in [
        ("tools/python", None),
        ("gone/python", Some("`python.interpreter` names `gone/python`, which is not there")),
        ("tools", Some("`python.interpreter` names `tools`, which is not a file")),
    ] {
        folder.0.write("tenure.toml", &format!("[python]\ninterpreter = \"{named}\"\n"));
        let loaded = folder.load("a.md");
        let said: Vec<_> =
            loaded.report.iter().map(|it| (it.code.as_str(), it.message.as_str())).collect();
        assert_eq!(said, expected.map(|it| ("T0603", it)).into_iter().collect::<Vec<_>>());
    }
}

/// The place and the message of the only thing that is wrong.
fn wrong(text: &str) -> (usize, usize, String) {
    let folder = Folder::new(&[("a.yaml", text), ("hooks.py", "def start(ctx): pass\n")]);
    let loaded = folder.load("a.yaml");
    let found: Vec<_> = loaded.report.iter().collect();
    let [found] = *found else { panic!("{}", loaded.report.render_text(Color::Never)) };
    let place = found.source.line_col(found.span.start as usize);
    (place.line, place.column, found.message.clone())
}

#[test]
fn a_bracket_that_is_never_closed_is_pointed_at() {
    for (text, column) in [
        ("name: a\nmodel: [passthrough\ndescription: x\nuse_history: true\n", 8),
        ("name: a\nagents: {a: b\nmodel: x\n", 9),
        ("name: a\nservers: [x\nagents: [b]\nmodel: x\n", 10),
        ("name: a\nmodel: [a, b\n", 8),
    ] {
        let (line, found, message) = wrong(text);
        assert_eq!((line, found), (2, column), "{text}{message}");
        assert!(message.ends_with("is never closed"), "{text}{message}");
    }
    // What is wrong inside of brackets that are closed is pointed at where it is.
    let (line, _, message) = wrong("name: a\nservers: [\n  x,\n  b: c: d\n]\n");
    let expected = "a list or mapping in brackets does not end, or lacks a comma";
    assert_eq!((line, &*message), (4, expected));
}

#[test]
fn a_tab_is_pointed_at_where_it_stands() {
    for (text, place) in [
        ("name: a\nrequest_params:\n\tmaxTokens: 3\n", (3, 1)),
        ("name: a\nhooks:\n  - on: on_start\n\t  run: hooks.py:start\n", (4, 1)),
    ] {
        let (line, column, message) = wrong(text);
        assert_eq!((line, column), place, "{text}{message}");
        assert_eq!(message, "a tab stands where YAML allows only spaces");
    }
}

#[test]
fn a_spec_with_two_colons_is_told_apart_from_a_missing_file() {
    let text = "hooks:\n  - { on: on_start, run: 'hooks.py:start:x' }\n";
    let folder = Folder::new(&[("a.yaml", text), ("hooks.py", "def start(ctx): pass\n")]);
    let shown = folder.load("a.yaml").report.render_text(Color::Never);
    assert!(shown.contains("one colon") && shown.contains("write `hooks.py:start`"), "{shown}");
}
