//! Agents from files, inside a program of your own.
//!
//! Two cards are written to a folder, checked and run. Their model is a script, so no key and no
//! network is needed; one of them uses a hook that is written here, in Rust.

use std::error::Error;
use std::path::Path;
use tenure_cards::diagnostic::Color;
use tenure_cards::trust::{ItemKind, inventory};
use tenure_cards::{HookCatalog, LoadOptions, Team, load};
use tenure_core::hook::{Flow, before_agent, hook};

const EDITOR: &str = "---
name: editor
default: true
model: script:editor.json
agents: [researcher]
hooks:
  - { use: greet, with: { word: Hello } }
---
You are an editor. Ask the researcher.
";

const SCRIPT: &str = r#"[
    {"call": "agent__researcher", "with": {"message": "{input}"}},
    "An answer to: {input}"
]"#;

const RESEARCHER: &str = "---
name: researcher
model: passthrough
tool_only: true
---
You look things up.
";

/// The hooks that cards may `use`. This one puts a word before what the agent is told.
fn catalog() -> HookCatalog {
    HookCatalog::new().register_with("greet", |with| {
        let word = with["word"].as_str().ok_or("`with` needs a text `word`")?.to_owned();
        Ok(hook(before_agent(move |_, input| {
            input.content.map_text(|text| format!("{word}, {text}"));
            Box::pin(async { Ok(Flow::Continue) })
        })))
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    for (name, text) in
        [("editor.md", EDITOR), ("editor.json", SCRIPT), ("researcher.md", RESEARCHER)]
    {
        std::fs::write(folder.path().join(name), text)?;
    }
    run(folder.path()).await
}

async fn run(folder: &Path) -> Result<(), Box<dyn Error>> {
    // Loading executes nothing. What is wrong is in the report, all of it at once.
    let options = LoadOptions::default().registered_hooks(catalog().names());
    let loaded = load(folder, &options);
    if loaded.report.has_errors() {
        return Err(loaded.report.render_text(Color::Never).into());
    }
    println!("loaded {} cards", loaded.cards.len());

    // What would run and what agents would be told, with hashes, to be shown to a person before. Guards are in the list
    // too.
    let items = inventory(&loaded).items;
    for item in items.iter().filter(|item| item.kind != ItemKind::Guard) {
        println!("to be trusted: {} {} for {}", item.kind, item.what, item.used_by.join(", "));
    }
    let redactor = loaded.redactor();

    let team = Team::builder(loaded)
        .hook_catalog(catalog())
        .build()
        .map_err(|report| report.render_text(Color::Never))?;
    for point in team.explain("editor")?.points {
        for entry in point.entries {
            println!("at {}: {} ({})", point.point, entry.name, entry.policy.as_str());
        }
    }

    team.start().await?;
    let result = team.run(None, "what has three hearts?").await;
    // Whatever came of it, what was started is stopped.
    team.shutdown().await;
    println!("{}", redactor.redact(&result?.output));
    Ok(())
}
