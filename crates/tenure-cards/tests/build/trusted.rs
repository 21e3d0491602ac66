//! What a run would connect to because the project says so is a part of what is trusted.

use crate::support::*;
use std::path::Path;
use tenure_cards::card::Environ;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::trust::{Inventory, ItemKind, changes, inventory};
use tenure_cards::user::UserConfig;

fn trusted(project: &Project, user: &str) -> Inventory {
    let user = UserConfig::parse(user, Path::new("config.toml"));
    let environ = Environ::of([("TOKEN", "hush-hush"), ("OPENAI_API_KEY", "sk-hush")]);
    let options = LoadOptions::default().environ(environ).user_config(user);
    let loaded = load(project.path(), &options);
    assert!(!loaded.report.has_errors(), "{:#?}", messages(&loaded.report));
    inventory(&loaded)
}

/// A line for each thing that would run or be reached, without the guards and what agents are told.
fn said(inventory: &Inventory) -> Vec<String> {
    let line = |item: &tenure_cards::trust::Item| {
        let hashed = if item.sha256.is_some() { " (hashed)" } else { "" };
        format!("{}: {}{hashed} [{}]", item.kind, item.what, item.used_by.join(", "))
    };
    let is_run = |item: &&tenure_cards::trust::Item| {
        !matches!(item.kind, ItemKind::Guard | ItemKind::Instruction)
    };
    inventory.items.iter().filter(is_run).map(line).collect()
}

const CONFIG: &str = "[mcp.servers.files]\ncommand = [\"sh\", \"serve.sh\"]\n\
                      env = { KEY = \"${TOKEN}\", MODE = \"quiet\" }\n\
                      [mcp.servers.web]\nurl = \"https://x.example/mcp\"\n\
                      headers = { Authorization = \"Bearer ${TOKEN}\", X = \"literal\" }\n\
                      [mcp.servers.unused]\ncommand = [\"sh\", \"other.sh\"]\n";
const CARD: &str = "---\nname: a\nservers: [files, web]\nmcp_connect:\n  \
                    own: { target: 'npx -y own ${PLACE}' }\n---\nx\n";

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
            "environment variable: PLACE: its value goes into `mcp_connect` [a]",
            "configuration: tenure.toml (hashed) []",
            "tool server: files: sh serve.sh (env KEY from TOKEN, MODE) (hashed) [a]",
            "tool server: own: npx -y own '${PLACE}' (hashed) [a]",
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
    // What the user chose is not the project's; that requests are made there is.
    let own = "[providers.openai]\nbase_url = \"https://mine.example/v1\"\n";
    assert_eq!(
        said(&trusted(&project, own)),
        [
            config,
            "model address: openai requests go to mine.example with your key OPENAI_API_KEY [a]",
        ]
    );
}

/// What is trusted of a project with this card, but for its configuration.
fn of_card(fields: &str, config: &str, user: &str) -> Vec<String> {
    let card = format!("---\nname: a\n{fields}\n---\nx\n");
    let project = Project::new([("a.md", &*card), ("tenure.toml", config)]);
    let mut said = said(&trusted(&project, user));
    said.retain(|line| !line.starts_with("configuration"));
    said
}

#[test]
fn every_provider_that_a_cards_model_leads_to_is_listed_with_the_key_that_goes_there() {
    let alias = "default_model = \"quick\"\n[aliases]\nquick = \"groq.small\"\n";
    for (fields, config, expected) in [
        ("model: openai.gpt-4o", "", "api.openai.com with your key OPENAI_API_KEY"),
        ("request_params: { model: openai.x }", "", "api.openai.com with your key OPENAI_API_KEY"),
        (
            "model: google.x",
            "",
            "generativelanguage.googleapis.com with your key GEMINI_API_KEY or GOOGLE_API_KEY",
        ),
        ("model: ollama.x", "", "localhost:11434 with your key OLLAMA_API_KEY, if it is set"),
        (
            "model: openai.x\napi_key: sk-1234",
            "",
            "api.openai.com with the key that the card gives",
        ),
        ("", alias, "api.groq.com with your key GROQ_API_KEY"),
    ] {
        let found = of_card(fields, config, "");
        assert_eq!(found.len(), 1, "{fields}: {found:?}");
        let shown = format!(" requests go to {expected} [a]");
        assert!(found[0].starts_with("model address: ") && found[0].ends_with(&shown), "{found:?}");
    }
    let helpers = of_card("model: openai.x\nsubagents: true\nsubagent_model: groq.y", "", "");
    assert!(helpers.iter().any(|it| it.contains("api.groq.com")), "{helpers:?}");
    // What the user chose for cards that name no model is no question, and neither is what stays
    // in this program.
    assert_eq!(of_card("", "", "default_model = \"openai.gpt-4o\"\n"), [] as [&str; 0]);
    assert_eq!(of_card("model: silent", "", ""), [] as [&str; 0]);
}

#[test]
fn a_key_from_a_variable_is_listed_with_where_it_goes() {
    assert_eq!(
        of_card("model: groq.x\napi_key: \"${MY_KEY}\"", "", ""),
        [
            "environment variable: MY_KEY: its value goes to api.groq.com as the key of groq [a]",
            "model address: groq requests go to api.groq.com with the key MY_KEY [a]",
        ]
    );
    assert_eq!(
        of_card("model: groq.x\napi_key: \"${GROQ_API_KEY}\"", "", ""),
        ["model address: groq requests go to api.groq.com with the key GROQ_API_KEY [a]"]
    );
    assert_eq!(
        of_card("api_key: \"${MY_KEY}\"", "", ""),
        ["environment variable: MY_KEY: its value is the key of whatever model is chosen [a]"]
    );
}

#[test]
fn a_variable_that_a_card_reads_is_listed_with_its_field() {
    let fields = "instruction: for ${SOMEBODY}\nrequest_params: { user: \"${USER_ID:x}\" }";
    let card = format!("name: a\n{fields}\n");
    let project = Project::new([("a.yaml", &card)]);
    let mut found = said(&trusted(&project, ""));
    found.retain(|line| !line.starts_with("configuration"));
    assert_eq!(
        found,
        [
            "environment variable: SOMEBODY: its value goes into `instruction` [a]",
            "environment variable: USER_ID: its value goes into `request_params` [a]",
        ]
    );
}

#[test]
fn what_is_taken_of_a_server_is_a_part_of_its_use() {
    let config = "[mcp.servers.web]\nurl = \"https://x.example/mcp\"\n";
    for (more, used) in [
        ("", "a"),
        (
            "tools: { web: [read_*, list] }\nprompts: { web: [] }",
            "a (tools read_*, list; no prompts)",
        ),
        (
            "tools: { web: ['*'] }\nresources: { web: ['docs://*'] }",
            "a (tools *; resources docs://*)",
        ),
    ] {
        let found = of_card(&format!("servers: [web]\n{more}"), config, "");
        let expected = format!("tool server: web: https://x.example/mcp (hashed) [{used}]");
        assert_eq!(found, [expected]);
    }
}

#[test]
fn another_value_in_a_header_of_a_card_is_another_server_and_is_not_stored() {
    let card = |value: &str| {
        format!(
            "---\nname: a\nmcp_connect:\n  - {{ target: \"https://x.example/mcp\", name: own, \
             headers: {{ X-Mode: \"{value}\" }} }}\n---\nx\n"
        )
    };
    let project = Project::new([("a.md", &card("quiet-mode"))]);
    let first = trusted(&project, "");
    std::fs::write(project.path().join("a.md"), card("loud-mode")).expect("written");
    let second = trusted(&project, "");
    assert_ne!(first.fingerprint(), second.fingerprint());
    let told: Vec<String> = changes(&first, &second).iter().map(ToString::to_string).collect();
    let server = "changed tool server own: https://x.example/mcp (headers X-Mode)";
    assert_eq!(told, [server, "changed instruction a.md"]);
    let stored = serde_json::to_string(&[first, second]).expect("it can be stored");
    assert!(!stored.contains("-mode\""), "{stored}");
}
