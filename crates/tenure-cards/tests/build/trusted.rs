//! What a run would connect to because the project says so is a part of what is trusted.

use crate::support::*;
use std::path::Path;
use tenure_cards::card::Environ;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::trust::{Inventory, changes, inventory};
use tenure_cards::user::UserConfig;

fn trusted(project: &Project, user: &str) -> Inventory {
    let user = UserConfig::parse(user, Path::new("config.toml"));
    let environ = Environ::of([("TOKEN", "hush-hush"), ("OPENAI_API_KEY", "sk-hush")]);
    let options = LoadOptions::default().environ(environ).user_config(user);
    let loaded = load(project.path(), &options);
    assert!(!loaded.report.has_errors(), "{:#?}", messages(&loaded.report));
    inventory(&loaded)
}

fn said(inventory: &Inventory) -> Vec<String> {
    let line = |item: &tenure_cards::trust::Item| {
        let hashed = if item.sha256.is_some() { " (hashed)" } else { "" };
        format!("{}: {}{hashed} [{}]", item.kind, item.what, item.used_by.join(", "))
    };
    inventory.items.iter().map(line).collect()
}

const CONFIG: &str = "[mcp.servers.files]\ncommand = [\"sh\", \"serve.sh\"]\n\
                      env = { KEY = \"${TOKEN}\", MODE = \"quiet\" }\n\
                      [mcp.servers.web]\nurl = \"https://x.example/mcp\"\n\
                      headers = { Authorization = \"Bearer ${TOKEN}\", X = \"literal\" }\n\
                      [mcp.servers.unused]\ncommand = [\"sh\", \"other.sh\"]\n";
const CARD: &str = "---\nname: a\nservers: [files, web]\nmcp_connect:\n  \
                    own: { target: 'npx -y own ${TOKEN}' }\n---\nx\n";

#[test]
fn servers_are_listed_with_their_files_and_what_they_are_given_by_name() {
    let project = Project::new([
        ("a.md", CARD),
        ("tenure.toml", CONFIG),
        ("serve.sh", "echo\n"),
        ("other.sh", "echo\n"),
    ]);
    let first = trusted(&project, "");
    assert_eq!(
        said(&first),
        [
            "file of a command: serve.sh (hashed) [a]",
            "configuration: tenure.toml (hashed) []",
            "tool server: files: sh serve.sh (env KEY from TOKEN, MODE) (hashed) [a]",
            "tool server: own: npx -y own '${TOKEN}' (hashed) [a]",
            "tool server: web: https://x.example/mcp (headers Authorization from TOKEN, X) \
             (hashed) [a]",
        ]
    );
    let stored = serde_json::to_string(&first).expect("it can be stored");
    assert!(!stored.contains("hush") && !stored.contains("literal"), "{stored}");
    // Every change shows: of a file, of a value, of a target.
    for (file, text) in [
        ("serve.sh", "echo changed\n".to_owned()),
        ("tenure.toml", CONFIG.replace("literal", "another")),
        ("a.md", CARD.replace("-y own", "-y evil")),
    ] {
        std::fs::write(project.path().join(file), text).expect("written");
        let now = trusted(&project, "");
        assert!(!changes(&first, &now).is_empty(), "{file}");
        let old = match file {
            "serve.sh" => "echo\n",
            "tenure.toml" => CONFIG,
            _ => CARD,
        };
        std::fs::write(project.path().join(file), old).expect("written");
        assert!(changes(&first, &trusted(&project, "")).is_empty(), "{file}");
    }
}

#[test]
fn an_address_that_the_project_chose_is_listed_with_what_becomes_of_the_key() {
    let project = Project::new([
        ("a.md", "---\nname: a\nmodel: openai.gpt-4o\n---\nx\n"),
        ("b.md", "---\nname: b\nmodel: silent\n---\nx\n"),
        ("tenure.toml", "[providers.openai]\nbase_url = \"https://llm.example.net/v1\"\n"),
    ]);
    let config = "configuration: tenure.toml (hashed) []";
    assert_eq!(
        said(&trusted(&project, "")),
        [
            config,
            "model address: openai requests go to llm.example.net; your key is NOT sent there [a]",
        ]
    );
    let allowed = "[providers.openai]\nallow_hosts = [\"llm.example.net\"]\n";
    assert_eq!(
        said(&trusted(&project, allowed)),
        [
            config,
            "model address: openai requests go to llm.example.net; your key is sent there, because \
             your configuration allows it [a]",
        ]
    );
    // What the user chose is not the project's.
    let own = "[providers.openai]\nbase_url = \"https://mine.example/v1\"\n";
    assert!(trusted(&project, own).is_empty());
}
