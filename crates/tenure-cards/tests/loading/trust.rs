//! The inventory of what would run.

use std::fs;
use std::path::Path;
use tenure_cards::card::Environ;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Color;
use tenure_cards::trust::{Inventory, ItemKind, changes, inventory};
use tenure_testkit::TestFolder;

struct Folder(TestFolder);

impl Folder {
    fn new() -> Self {
        let folder = TestFolder::new(&[]);
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
        folder.write("hooks/__pycache__/e.cpython-311.pyc", "0123456789");
        folder.write("hooks/.git/f.py", "x");
        folder.write("hooks/.tenure/g.py", "x");
        folder.write("hooks/notes.txt", "x");
        Self(folder)
    }

    fn inventory(&self) -> Inventory {
        let options = LoadOptions::default().environ(Environ::empty());
        let loaded = load(&self.0.path().join("cards"), &options);
        assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
        inventory(&loaded)
    }
}

/// A line for each thing that would run, without the guards and what agents are told.
fn said(inventory: &Inventory) -> Vec<String> {
    let said = |item: &tenure_cards::trust::Item| {
        let hashed = if item.sha256.is_some() { " (hashed)" } else { "" };
        format!("{}: {}{hashed} [{}]", item.kind, item.what, item.used_by.join(", "))
    };
    let is_run = |item: &&tenure_cards::trust::Item| {
        !matches!(item.kind, ItemKind::Guard | ItemKind::Instruction)
    };
    inventory.items.iter().filter(is_run).map(said).collect()
}

#[test]
fn everything_that_would_run_is_there_once_with_its_hash_and_its_uses() {
    let folder = Folder::new();
    assert_eq!(
        said(&folder.inventory()),
        [
            "python file: hooks/a.py (hashed) [a: on_start start, a: tool tool]",
            "importable file: hooks/.venv/d.py (hashed) []",
            "importable file: hooks/b.py (hashed) []",
            "importable file: hooks/deep/c.py (hashed) []",
            "command: sh ./check.sh --strict [a: before_agent]",
            "file of a command: cards/check.sh (hashed) [a: before_agent]",
            "permission: shell: the model may read and write files of the project [a]",
            "permission: shell: the model may run any command, as you [a]",
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
        folder.0.write(file, text);
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
    let text = "mcp_connect: [{ target: \"serve --in ${PLACE}\" }]\n\
                hooks:\n  - { use: retry, with: { key: \"${KEY}\" } }\n\
                \x20 - { on: on_start, run: [sh, \"${PLACE}\"] }\n";
    fs::write(folder.path().join("a.yaml"), text).expect("written");
    let with = |key: &str| {
        let options = LoadOptions::default().environ(Environ::of([("KEY", key), ("PLACE", key)]));
        let loaded = load(folder.path(), &options);
        assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
        inventory(&loaded)
    };
    let stored = serde_json::to_string(&with("sk-secret")).expect("it can be stored");
    assert!(!stored.contains("sk-secret") && stored.contains("${PLACE}"), "{stored}");
    for variable in ["KEY: its value goes into `hooks`", "PLACE: its value goes into `hooks`"] {
        assert!(stored.contains(variable), "{variable}: {stored}");
    }
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

/// A project with one card of these fields and these other files.
fn project(fields: &str, files: &[(&str, &str)]) -> Folder {
    let folder = Folder(TestFolder::new(&[]));
    folder.0.write("tenure.toml", "");
    folder.0.write("cards/a.md", &format!("---\nmodel: passthrough\n{fields}\n---\nx\n"));
    for (name, text) in files {
        folder.0.write(name, text);
    }
    folder
}

/// What of the inventory is not the configuration.
fn runs(folder: &Folder) -> Vec<String> {
    let mut said = said(&folder.inventory());
    said.retain(|line| !line.starts_with("configuration"));
    said
}

#[test]
fn what_a_model_reads_is_data_and_needs_no_trust() {
    let skill = "---\nname: sums\ndescription: adds\n---\nRun nothing.\n";
    let folder = project(
        "skills: ../skills\nmessages: history.json\nuse_history: true",
        &[
            ("skills/sums/SKILL.md", skill),
            ("skills/sums/run.sh", "echo\n"),
            ("cards/history.json", "[]"),
        ],
    );
    folder.0.write("cards/b.md", "---\nmodel: script:b.json\n---\nx\n");
    folder.0.write("cards/b.json", "[\"hello\"]");
    assert_eq!(said(&folder.inventory()), [] as [&str; 0]);
}

#[test]
fn a_command_brings_along_what_its_line_names_and_what_python_would_import() {
    let scripts = [
        ("cards/x.py", "import y\n"),
        ("cards/y.py", ""),
        ("cards/a.sh", "echo\n"),
        ("cards/tool", "#!/usr/bin/env python3\n"),
    ];
    let all: &[(&str, &[&str])] = &[
        ("[python3, x.py]", &["file of a command: cards/x.py", "importable file: cards/y.py"]),
        ("[sh, a.sh]", &["file of a command: cards/a.sh"]),
        ("[sh, ./tool]", &["file of a command: cards/tool", "importable file: cards/y.py"]),
        ("[sh, -c, 'exec ./a.sh --x']", &["file of a command: cards/a.sh"]),
        ("[python3, -m, x]", &["importable file: cards/x.py", "importable file: cards/y.py"]),
        ("[env, A=1, python3, x.py]", &["file of a command: cards/x.py"]),
        ("[cat, --rules=a.sh]", &["file of a command: cards/a.sh"]),
        ("[python3, -mx, a.sh]", &["importable file: cards/x.py", "file of a command: cards/a.sh"]),
        ("[python3, -um, x, a.sh]", &["importable file: cards/x.py"]),
        ("[python3, -Wd, -X, utf8, -m, x, a.sh]", &["importable file: cards/x.py"]),
        ("[python3, '-', a.sh]", &["importable file: cards/x.py"]),
        ("[sh, -c, 'python3 -mx a.sh']", &["importable file: cards/x.py"]),
        ("[sh, -c, '. ./tool']", &["file of a command: cards/tool"]),
    ];
    for (command, expected) in all {
        let folder = project(&format!("hooks: [{{ on: before_agent, run: {command} }}]"), &scripts);
        let found = runs(&folder);
        for part in *expected {
            let hashed = format!("{part} (hashed)");
            assert!(found.iter().any(|it| it.starts_with(&hashed)), "{command}: {found:?}");
        }
    }
}

#[test]
fn a_script_that_is_a_link_is_known_by_what_it_leads_to() {
    let outside = tempfile::tempdir().expect("a temporary folder");
    let target = outside.path().join("real.sh");
    fs::write(&target, "echo 1\n").expect("written");
    let folder = project("hooks: [{ on: before_agent, run: [sh, a.sh] }]", &[]);
    std::os::unix::fs::symlink(&target, folder.0.path().join("cards/a.sh")).expect("linked");
    let before = folder.inventory();
    fs::write(&target, "echo 2\n").expect("written");
    let found = changes(&before, &folder.inventory());
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["changed file of a command cards/a.sh"]);
}

const HOOK: &str = "lifecycle_hooks: { on_start: hooks.py:start }";
const HOOKS: (&str, &str) = ("cards/hooks.py", "def start(ctx): pass\n");

#[test]
fn an_interpreter_of_the_project_is_shown_with_its_environment() {
    let folder = project(HOOK, &[HOOKS, (".venv/pyvenv.cfg", "home = /usr/bin\n")]);
    folder.0.write(".venv/lib/python3.11/site-packages/a.pth", "import a\n");
    fs::create_dir_all(folder.0.path().join(".venv/bin")).expect("made");
    let python = folder.0.path().join(".venv/bin/python");
    let system = Path::new("/bin/sh").canonicalize().expect("there is a shell");
    std::os::unix::fs::symlink(&system, &python).expect("linked");
    let linked = format!("interpreter: .venv/bin/python -> {} []", system.display());
    let venv = "virtual environment: .venv, every file in it but compiled caches (hashed) []";
    assert_eq!(
        runs(&folder),
        ["python file: cards/hooks.py (hashed) [a: on_start start]", &*linked, venv]
    );
    // Whatever runs when its Python starts is noticed, and so is where its library is.
    for (file, text) in [
        (".venv/lib/python3.11/site-packages/a.pth", "import b\n"),
        (".venv/lib/python3.11/site-packages/b.pth", "import b\n"),
        (".venv/lib/python3.11/site-packages/sitecustomize.py", "print()\n"),
        (".venv/lib/python3.11/site-packages/usercustomize/__init__.py", "print()\n"),
        (".venv/pyvenv.cfg", "home = here\n"),
        (".venv/lib/python3.11/site-packages/pkg/deep.py", "x = 1\n"),
        (".venv/lib/python3.11/site-packages/pkg/deep.py", "x = 2\n"),
        (".venv/lib/python3.11/site-packages/pkg/data.json", "{}"),
    ] {
        let before = folder.inventory();
        folder.0.write(file, text);
        let found = changes(&before, &folder.inventory());
        assert_eq!(found.len(), 1, "{file}: {found:?}");
        assert!(found[0].to_string().contains("virtual environment"), "{file}: {found:?}");
    }
    // A program in its place is hashed.
    fs::remove_file(&python).expect("removed");
    fs::write(&python, "#!/bin/sh\n").expect("written");
    let shown = runs(&folder);
    assert!(shown.contains(&"interpreter: .venv/bin/python (hashed) []".to_owned()), "{shown:?}");
    let before = folder.inventory();
    fs::write(&python, "#!/bin/sh\nevil\n").expect("written");
    let found = changes(&before, &folder.inventory());
    assert_eq!(found[0].to_string(), "changed interpreter .venv/bin/python", "{found:?}");
}

#[test]
fn an_interpreter_that_the_configuration_names_counts_before_every_other() {
    let folder = project(HOOK, &[HOOKS, ("tools/python", "#!/bin/sh\n"), (".venv/bin/python", "")]);
    for (named, expected) in [
        ("tools/python", "interpreter: tools/python (hashed) []"),
        ("./tools/../tools/python", "interpreter: tools/python (hashed) []"),
    ] {
        folder.0.write("tenure.toml", &format!("[python]\ninterpreter = \"{named}\"\n"));
        let found = runs(&folder);
        let own: Vec<_> = found.iter().filter(|it| it.starts_with("interpreter")).collect();
        assert_eq!(own, [expected], "{named}");
    }
}

#[test]
fn compiled_code_that_python_takes_unseen_is_noticed() {
    let folder = project(HOOK, &[HOOKS, ("cards/b.py", "")]);
    let cache = folder.0.path().join("cards/__pycache__");
    fs::create_dir_all(&cache).expect("made");
    // The four bytes behind the first say how the source is checked: by its time, by its hash, or
    // not at all.
    for (flags, is_noticed) in [(0u8, false), (0b11, false), (0b01, true)] {
        let code = [&[0xa7, 0x0d, 0x0d, 0x0a, flags, 0, 0, 0][..], &[0; 16]].concat();
        fs::write(cache.join("b.cpython-311.pyc"), code).expect("written");
        let found = runs(&folder);
        let noticed = found.iter().any(|it| it.contains("__pycache__"));
        assert_eq!(noticed, is_noticed, "{flags}: {found:?}");
    }
}

#[test]
fn a_pipe_beside_hooks_is_shown_and_never_waited_for() {
    let folder = project(HOOK, &[HOOKS]);
    let pipe = folder.0.path().join("cards/zz.py");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let (said, found) = std::sync::mpsc::channel();
    std::thread::spawn(move || said.send(folder.inventory()));
    let inventory = found.recv_timeout(std::time::Duration::from_secs(20)).expect("no wait");
    let item = inventory.items.iter().find(|item| item.what == "cards/zz.py").expect("shown");
    assert_eq!(item.sha256.as_deref(), Some("unreadable"));
}

#[test]
fn folders_of_other_tools_can_be_imported_too() {
    let names = ["node_modules", "venv", ".venv", "__pycache__", ".mypy_cache"];
    for name in names {
        let folder = project(HOOK, &[HOOKS, (&format!("cards/{name}/evil.py"), "")]);
        let before = folder.inventory();
        folder.0.write(&format!("cards/{name}/evil.py"), "import os\n");
        let found = changes(&before, &folder.inventory());
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, [format!("changed importable file cards/{name}/evil.py")]);
    }
}

#[test]
fn the_own_environment_is_an_item_and_not_a_folder_of_files() {
    let files = [
        ("hooks.py", "def start(ctx): pass\n"),
        (".venv/pyvenv.cfg", "home = /usr/bin\n"),
        (".venv/bin/python", "#!/bin/sh\n"),
        (".venv/lib/python3.11/site-packages/big.py", ""),
    ];
    let venv =
        "virtual environment: .venv, every file in it but compiled caches (hashed) []".to_owned();
    let hooks = [
        "lifecycle_hooks: { on_start: ../hooks.py:start }",
        "hooks: [{ on: on_start, run: [python3, ../hooks.py] }]",
    ];
    for hook in hooks {
        let folder = project(hook, &files);
        let found = runs(&folder);
        assert!(found.contains(&venv), "{found:?}");
        assert!(!found.iter().any(|it| it.contains("big.py")), "{found:?}");
    }
    let folder = project(hooks[0], &files);
    let before = folder.inventory();
    folder.0.write(".venv/bin/python", "#!/bin/sh\nevil\n");
    let found = changes(&before, &folder.inventory());
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let venv = "changed virtual environment .venv, every file in it but compiled caches";
    assert_eq!(found, ["changed interpreter .venv/bin/python", venv]);
}

#[test]
fn of_too_many_files_none_changes_unnoticed() {
    let folder = project(HOOK, &[HOOKS]);
    let name = |number: usize| format!("cards/many/m{number:05}.py");
    fs::create_dir_all(folder.0.path().join("cards/many")).expect("made");
    for number in 0..5001 {
        fs::write(folder.0.path().join(name(number)), "a").expect("written");
    }
    let before = folder.inventory();
    assert_eq!(before.fingerprint(), folder.inventory().fingerprint());
    let marked = |it: &&String| it.contains("more than 5000 files");
    let shown = said(&before);
    let marked: Vec<_> = shown.iter().filter(marked).collect();
    assert!(marked.len() == 1 && marked[0].contains("(hashed)"), "{marked:?}");
    // The first is read, the last is not; both are of the same size as before.
    for number in [0, 5000] {
        let before = folder.inventory();
        let path = folder.0.path().join(name(number));
        let time = path.metadata().and_then(|meta| meta.modified()).expect("there");
        fs::write(&path, "b").expect("written");
        let file = fs::File::options().write(true).open(&path).expect("opened");
        file.set_modified(time).expect("as old as before");
        let found = changes(&before, &folder.inventory());
        assert_eq!(found.len(), 1, "{number}: {found:?}");
    }
    let before = folder.inventory();
    fs::rename(folder.0.path().join(name(5000)), folder.0.path().join(name(6000))).expect("moved");
    assert_eq!(changes(&before, &folder.inventory()).len(), 1);
}

#[test]
fn a_guard_that_is_switched_off_is_another_use() {
    let card = |more: &str| {
        let hooks = format!(
            "hooks:\n  - {{ on: before_agent, run: 'hooks.py:guard'{more} }}\n  \
             - {{ on: before_agent, run: [sh, a.sh], name: sh{more} }}\n  \
             - {{ on: before_agent, use: limits, name: used{more} }}"
        );
        format!("---\nmodel: passthrough\n{hooks}\n---\nx\n")
    };
    let folder =
        project("", &[("cards/hooks.py", "def guard(ctx): pass\n"), ("cards/a.sh", "echo\n")]);
    let with = |more: &str| {
        folder.0.write("cards/a.md", &card(more));
        folder.inventory()
    };
    let guarded = with(", policy: deny");
    let uses = |inventory: &Inventory| -> Vec<String> {
        let uses = inventory.items.iter();
        let uses = uses.filter(|it| !matches!(it.kind, ItemKind::Guard | ItemKind::Instruction));
        uses.flat_map(|item| item.used_by.clone()).collect()
    };
    assert_eq!(
        uses(&guarded),
        [
            "a: before_agent guard (policy deny)",
            "a: before_agent (policy deny)",
            "a: before_agent (policy deny)",
            "a: before_agent (policy deny)",
        ]
    );
    for other in [", policy: continue", ", policy: deny, when: 'false'", ""] {
        let found = changes(&guarded, &with(other));
        // The file of the function, the command and its file, the registered hook.
        // The fifth is the list of guards, the sixth the card.
        assert_eq!(found.len(), 6, "{other}: {found:?}");
    }
    let told = uses(&with(", when: \"input == '${WORD}'\""));
    assert_eq!(told[0], "a: before_agent guard (when \"input == '${WORD}'\")");
}

#[test]
fn what_ready_made_hooks_take_from_the_environment_and_reach_is_shown() {
    let hooks = "hooks:
  - use: telemetry
    with: { endpoint: 'https://spans.example', headers: { x-key: AWS_SECRET_ACCESS_KEY } }
  - use: notify
    with: { url: 'https://x.example/hook', secret_env: HOOK_SECRET }
  - use: shell
    with:
      otherwise: allow
      pass_env: [SSH_AUTH_SOCK]
      env: { PATH: ./bin }
  - { use: metrics, with: { listen: '0.0.0.0:9464', allow_remote: true } }
  - { use: result_schema, with: { output: { file: answer.json } } }
  - { use: audit, with: { file: ../audit.jsonl } }";
    let folder = project(hooks, &[("cards/answer.json", "{}")]);
    let before = folder.inventory();
    let found = runs(&folder);
    for line in [
        "environment variable: AWS_SECRET_ACCESS_KEY: its value goes into `headers.x-key` of the \
         hook telemetry [a: its own points (telemetry)]",
        "environment variable: HOOK_SECRET: its value goes into `secret_env` of the hook notify \
         [a: its own points (notify)]",
        "environment variable: SSH_AUTH_SOCK: its value goes into `pass_env[0]` of the hook shell \
         [a: its own points (shell)]",
        "environment variable: PATH=./bin: commands of the hook shell get it [a: its own points (shell)]",
        "address of a hook: telemetry: requests go to https://spans.example \
         [a: its own points (telemetry)]",
        "address of a hook: notify: requests go to https://x.example/hook [a: its own points (notify)]",
        "permission: shell: the model may run any command, as you, and nobody is asked \
         [a: its own points]",
        "permission: metrics: other machines may read the metrics, at 0.0.0.0:9464 [a: its own points]",
        "data: cards/answer.json (hashed) [a: its own points (result_schema)]",
        "data: audit.jsonl [a: its own points (audit), which writes it]",
    ] {
        assert!(found.iter().any(|it| it == line), "{line}\n{found:#?}");
    }
    folder.0.write("cards/answer.json", "{ }");
    let changed = changes(&before, &folder.inventory());
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(changed[0].to_string(), "changed data cards/answer.json");
}

#[test]
fn of_ready_made_hooks_no_value_of_the_environment_is_shown() {
    let hooks = "hooks:
  - { use: notify, with: { url: \"${ADDRESS}\", unsigned: true } }
  - { use: notify, name: other, with: { command: [sh, \"${ADDRESS}\"], env: { TO: \"${ADDRESS}\" } } }
  - { use: save, with: { file: \"${ADDRESS}\" } }";
    let folder = project(hooks, &[]);
    let with = |value: &str| {
        let options = LoadOptions::default().environ(Environ::of([("ADDRESS", value)]));
        let loaded = load(&folder.0.path().join("cards"), &options);
        assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
        inventory(&loaded)
    };
    let found = with("https://x.example/secret");
    let shown = said(&found).join("\n");
    assert!(!shown.contains("secret"), "{shown}");
    for line in ["requests go to ${ADDRESS}", "command: sh ", "TO=${ADDRESS}", "data: ${ADDRESS}"] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert_eq!(found.fingerprint(), with("other").fingerprint());
}

#[test]
fn what_is_not_given_needs_no_permission() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("a.yaml"), "type: smart\nname: a\n").expect("written");
    let loaded = load(folder.path(), &LoadOptions::default());
    assert_eq!(
        said(&inventory(&loaded)),
        ["permission: subagents: the model may start helpers [a]"]
    );
}

#[test]
fn a_file_that_an_import_leads_to_is_listed_wherever_it_is_in_the_project() {
    let hook = "import json\nimport app.core\nfrom shared.words import one\nfrom lib import two\n\
                from ..around import three\ndef start(ctx):\n    import developed.thing\n";
    let files = [
        ("cards/deep/hooks.py", hook),
        ("cards/around.py", ""),
        ("cards/__init__.py", ""),
        ("app/__init__.py", "from . import inner\n"),
        ("app/core.py", "from .other import x\n"),
        ("app/inner.py", ""),
        ("app/other.py", ""),
        ("app/unused.py", ""),
        ("shared/words.py", ""),
        ("src/lib.py", ""),
        ("packages/developed/thing.py", ""),
        ("packages/developed/else.py", ""),
        (".venv/pyvenv.cfg", "home = /usr/bin\n"),
        (".venv/bin/python", "#!/bin/sh\n"),
    ];
    let folder = project("lifecycle_hooks: { on_start: deep/hooks.py:start }", &files);
    let packages = folder.0.path().join("packages").canonicalize().expect("it is there");
    let path = ".venv/lib/python3.11/site-packages/own.pth";
    folder.0.write(path, &format!("{}\n", packages.display()));
    let found = runs(&folder);
    let imported: Vec<&str> =
        found.iter().filter_map(|line| line.strip_prefix("importable file: ")).collect();
    let imported: Vec<&str> =
        imported.into_iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(
        imported,
        [
            "app/__init__.py",
            "app/core.py",
            "app/inner.py",
            "app/other.py",
            "cards/__init__.py",
            "cards/around.py",
            "packages/developed/thing.py",
            "shared/words.py",
            "src/lib.py",
        ]
    );
}

#[test]
fn a_file_that_is_declared_as_written_is_shown_and_not_hashed() {
    let folder = project(
        "hooks: [{ on: before_agent, run: [sh, a.sh, audit.log], writes: [audit.log, later.log] }]",
        &[("cards/a.sh", "echo\n"), ("cards/audit.log", "")],
    );
    let shown = [
        "command: sh a.sh audit.log [a: before_agent]",
        "file of a command: cards/a.sh (hashed) [a: before_agent]",
        "data: cards/audit.log [a: before_agent, which writes it]",
        "data: cards/later.log [a: before_agent, which writes it]",
    ];
    assert_eq!(runs(&folder), shown);
    let before = folder.inventory();
    folder.0.write("cards/audit.log", "more\n");
    assert!(changes(&before, &folder.inventory()).is_empty());
}

#[test]
fn what_a_command_may_be_declared_to_write_is_checked() {
    let scripts = [("cards/a.sh", "echo\n"), ("hooks.py", "def look(ctx): pass\n")];
    for (hook, expected) in [
        ("run: [sh, a.sh], writes: [../../out.log]", "T0403"),
        ("run: [./a.sh], writes: a.sh", "T0210"),
        ("run: [sh, a.sh], writes: [3]", "T0204"),
        ("run: '../hooks.py:look', writes: [a.log]", "T0904"),
    ] {
        let folder = project(&format!("hooks: [{{ on: before_agent, {hook} }}]"), &scripts);
        folder.0.make_executable("cards/a.sh");
        let loaded = load(&folder.0.path().join("cards"), &LoadOptions::default());
        let found: Vec<String> = loaded.report.iter().map(|it| it.code.to_string()).collect();
        assert_eq!(found, [expected], "{hook}: {}", loaded.report.render_text(Color::Never));
    }
}
