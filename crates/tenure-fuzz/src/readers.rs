//! The readers that the crates offer to everybody, over files in a folder of this process.

use serde_json::json;
use std::path::Path;
use std::sync::OnceLock;
use tempfile::TempDir;
use tenure_cards::card::{Environ, TemplateContext, render_instruction};
use tenure_cards::diagnostic::Color;
use tenure_cards::dump::{Format, dump_document};
use tenure_cards::hook::Condition;
use tenure_cards::{LoadOptions, Loaded, Report, Team, UserConfig, load};

/// A folder for the files of one reader, which are written anew for each input.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().expect("a temporary folder")).path()
}

fn write(name: &str, text: &[u8]) {
    let path = folder().join(name);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).expect("a folder can be made");
    }
    std::fs::write(path, text).expect("a file can be written");
}

fn options() -> LoadOptions {
    let mut options = LoadOptions::default();
    options.environ = Environ::of([("A", "a"), ("KEY", "k")]);
    options.user = UserConfig::default();
    options
}

/// Says everything that there is to say.
fn tell(report: &Report) {
    let said = report.render_text(Color::Never);
    assert!(said.len() < 2 << 20, "a report of {} bytes", said.len());
    drop(report.to_sarif());
    report.iter().for_each(|found| drop(found.to_json()));
}

/// Does with what was loaded all that `tenure check` and `tenure trust` do.
fn check(loaded: Loaded) {
    tell(&loaded.report);
    if !loaded.report.has_errors() {
        drop(tenure_cards::trust::inventory(&loaded));
    }
    tell(&Team::builder(loaded).inspect().report);
}

pub(crate) fn card(data: &[u8]) {
    write("tenure.toml", b"");
    write("a.txt", b"a text {{file:a.txt}}");
    write("h.py", b"def f(ctx):\n    return None\n");
    write("cards/a.md", data);
    let loaded = load(&folder().join("cards/a.md"), &options());
    for card in &loaded.cards {
        let report = &mut Report::new();
        let source = tenure_cards::source::read(&folder().join("cards/a.md"), "a.md", report);
        if let Some(document) =
            source.and_then(|source| tenure_cards::source::parse(&source, report))
        {
            drop(dump_document(&document, "a", Format::Markdown));
            drop(dump_document(&document, "a", Format::Yaml));
        }
        drop(render_instruction(card, &TemplateContext::new(&loaded.project)));
    }
    check(loaded);
}

pub(crate) fn toml(data: &[u8]) {
    write("cards/a.md", b"---\nname: a\nmodel: passthrough\n---\nx\n");
    write("tenure.toml", data);
    check(load(&folder().join("cards"), &options()));
}

pub(crate) fn python(data: &[u8]) {
    write("tenure.toml", b"");
    write("cards/h.py", data);
    let card = "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: h.py:f\n  wrap_tool_call: h.py:guard\n\
                function_tools: [h.py:t]\n---\nx\n";
    write("cards/a.md", card.as_bytes());
    check(load(&folder().join("cards"), &options()));
}

/// The files of a workflow. The first byte of the input says which of them it is.
const FILES: [&str; 8] = [
    "orchestrator.json",
    "agents.json",
    "handoffs.json",
    "context_variables.json",
    "structured_outputs.json",
    "tools.json",
    "hooks.json",
    "agents.yaml",
];

pub(crate) fn workflow(data: &[u8]) {
    let Some((which, data)) = data.split_first() else { return };
    let (which, flow) = (FILES[usize::from(*which) % FILES.len()], "workflows/flow");
    // What another input left there is another workflow's.
    drop(std::fs::remove_dir_all(folder().join(flow)));
    write("tenure.toml", b"");
    let orchestrator =
        json!({ "workflow_name": "flow", "startup_mode": "AgentDriven", "pattern": "RoundRobin" });
    write(&format!("{flow}/orchestrator.json"), orchestrator.to_string().as_bytes());
    if !which.starts_with("agents") {
        let agents =
            json!({ "agents": { "a": { "system_message": "x", "model": "passthrough" } } });
        write(&format!("{flow}/agents.json"), agents.to_string().as_bytes());
    }
    write(&format!("{flow}/{which}"), data);
    tell(&tenure_flow::load(&folder().join(flow), &options()).report);
}

pub(crate) fn when(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(condition) = Condition::compile(&text) else { return };
    let value = |name: &str| match name {
        "tool" => Some(json!({ "name": "shell", "arguments": { "command": "ls", "n": 3 } })),
        "variables" => Some(json!({ "a": "text", "b": [1, 2, { "c": null }], "n": 7 })),
        "a" => Some("abc".into()),
        "n" => Some(3.into()),
        "gone" => None,
        other => Some(other.into()),
    };
    drop(condition.holds_where(value));
    drop(condition.value_where(value));
}

pub(crate) fn template(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    write("tenure.toml", b"");
    write("a.txt", &[b'x'; 70_000]);
    let quoted = json!(text);
    let card = format!(
        "---\nname: a\nmodel: passthrough\nhooks:\n  - {{ use: prompt, with: {{ template: {quoted} }} }}\n  \
         - {{ use: approval, with: {{ tools: {{ '*': {{ when: {quoted} }} }} }} }}\n---\n{text}\n"
    );
    write("cards/a.md", card.as_bytes());
    let loaded = load(&folder().join("cards/a.md"), &options());
    for card in &loaded.cards {
        drop(render_instruction(card, &TemplateContext::new(&loaded.project)));
    }
    check(loaded);
}

/// Keys of stores that go with the folder.
fn keys() -> tenure_store::StoreKeys {
    tenure_store::StoreKeys::folder(folder().join("keys"))
}

/// A new store, as bytes.
fn store() -> &'static [u8] {
    static STORE: OnceLock<Vec<u8>> = OnceLock::new();
    STORE.get_or_init(|| {
        let path = folder().join("whole.db");
        drop(tenure_store::Store::open_with(&path, &keys()).expect("a store can be made"));
        std::fs::read(path).expect("it is there")
    })
}

/// What the journal's own readers make of it; and of a store with each four bytes of it written to a place that the
/// first three say.
pub(crate) fn journal(data: &[u8]) {
    tenure_store::fuzz::journal(data);
    let mut bytes = store().to_vec();
    for change in data.chunks_exact(4).take(64) {
        let place =
            usize::from(change[0]) << 16 | usize::from(change[1]) << 8 | usize::from(change[2]);
        let place = place % bytes.len();
        bytes[place] = change[3];
    }
    let path = folder().join("patched.db");
    for rest in ["-wal", "-shm"] {
        drop(std::fs::remove_file(folder().join(format!("patched.db{rest}"))));
    }
    std::fs::write(&path, bytes).expect("a file can be written");
    if let Ok(store) = tenure_store::Store::open_existing_with(&path, &keys()) {
        drop(store.verify());
    }
}
