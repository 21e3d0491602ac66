//! What configurations say about models and tool servers, the project's and the user's own.

use crate::loading::support::*;
use std::path::Path;
use tenure_cards::card::{Environ, ProtocolMode};
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Color;
use tenure_cards::project::ModelSettings;
use tenure_cards::server::Reach;
use tenure_cards::user::UserConfig;
use tenure_models::provider::{Authority, KeySource, Wire};

const CARD: (&str, &str) = ("a.md", "---\nservers: [files, web]\n---\nx\n");

fn user(text: &str) -> UserConfig {
    UserConfig::parse(text, Path::new("/home/me/.config/tenure/config.toml"))
}

#[test]
fn a_server_is_a_program_or_an_address_with_what_it_is_given() {
    let config = "[mcp.servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"it\"]\ncwd = \"sub\"\n\
                  env = { TOKEN = \"${KEY}\" }\nstart_timeout = \"5s\"\ncall_timeout = \"1m\"\n\
                  [mcp.servers.web]\nurl = \"https://x.example/mcp\"\n\
                  headers = { Authorization = \"Bearer ${KEY}\" }\nprotocol = \"legacy\"\n";
    let folder = Folder::new(&[CARD, ("tenure.toml", config), ("sub/x", "")]);
    let loaded = folder.load("a.md");
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    let servers = &loaded.project.config.servers;
    let Reach::Command { command, env } = &servers["files"].reach else { panic!("a program") };
    assert_eq!(command.argv, ["npx", "-y", "it"]);
    assert!(command.dir.ends_with("sub"));
    // Nothing is filled in before it is needed, and nothing of it is shown.
    assert_eq!(env["TOKEN"].reveal(), "${KEY}");
    assert!(!format!("{servers:?}").contains("${KEY}"));
    let limit = |text: &str| Some(text.parse().expect("a limit"));
    assert_eq!(
        (servers["files"].start_limit, servers["files"].call_limit),
        (limit("5s"), limit("1m"))
    );
    let Reach::Url { url, headers, .. } = &servers["web"].reach else { panic!("an address") };
    assert_eq!((url.as_str(), headers.len()), ("https://x.example/mcp", 1));
    assert_eq!(servers["web"].protocol, ProtocolMode::Legacy);
    assert_eq!(servers["web"].written(), "https://x.example/mcp");
}

#[test]
fn a_program_of_the_project_is_found_from_the_servers_folder() {
    let config = "[mcp.servers.files]\ncommand = [\"./serve.sh\"]\ncwd = \"sub\"\n\
                  [mcp.servers.web]\nurl = \"http://127.0.0.1:1\"\n";
    let folder = Folder::new(&[CARD, ("tenure.toml", config), ("sub/serve.sh", "#!/bin/sh\n")]);
    let loaded = folder.load("a.md");
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    let Reach::Command { command, .. } = &loaded.project.config.servers["files"].reach else {
        panic!("a program")
    };
    assert!(Path::new(&command.argv[0]).is_absolute() && command.argv[0].ends_with("sub/serve.sh"));
    assert_eq!(command.written, ["./serve.sh"]);
}

#[test]
fn the_user_counts_before_the_project_and_decides_alone_over_keys() {
    let config = "default_model = \"small\"\n[aliases]\nsmall = \"local.a\"\nbig = \"local.b\"\n\
                  [providers.local]\nkind = \"openai\"\nbase_url = \"https://project.example/v1\"\n\
                  [providers.openai]\nbase_url = \"https://project.example/v1\"\n\
                  [prices.\"local.a\"]\ninput = 1\noutput = 2\n";
    let folder = Folder::new(&[("a.md", "---\n---\nx\n"), ("tenure.toml", config)]);
    let loaded = folder.load("a.md");
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    let mine = user(
        "[aliases]\nbig = \"openai.c\"\n[providers.openai]\nbase_url = \"https://mine.example\"\n\
         api_key_file = \"keys/openai\"\n[providers.local]\nallow_hosts = [\"project.example\"]\n\
         api_key_env = \"LOCAL\"\n[prices.\"local.a\"]\ninput = 0.5\noutput = 1\ncached = 0.1\n",
    );
    assert!(mine.report().is_empty(), "{}", mine.report().render_text(Color::Never));
    let merged = ModelSettings::merged(&loaded.project.config.models, &mine.models);
    assert_eq!(merged.aliases["small"], "local.a");
    assert_eq!(merged.aliases["big"], "openai.c");
    let local = &merged.providers["local"];
    assert_eq!(local.wire, Some(Wire::OpenAi));
    assert_eq!(local.base_url, Some(("https://project.example/v1".into(), Authority::Project)));
    assert_eq!(local.key, Some(KeySource::Env("LOCAL".into())));
    assert_eq!(local.allow_hosts, ["project.example"]);
    let openai = &merged.providers["openai"];
    assert_eq!(openai.base_url, Some(("https://mine.example".into(), Authority::User)));
    let file = Path::new("/home/me/.config/tenure/keys/openai").to_owned();
    assert_eq!(openai.key, Some(KeySource::File(file)));
    assert_eq!((merged.prices["local.a"].input, merged.prices["local.a"].cached), (0.5, Some(0.1)));
}

#[test]
fn what_is_wrong_with_the_users_own_configuration_is_told_with_its_place() {
    let mine = user(
        "defualt_model = \"x\"\n[providers.openai]\napi_key = \"sk-1234567890\"\n\
         api_key_env = \"A\"\napi_key_file = \"b\"\n[mcp.servers.x]\ncommand = [\"a\"]\n",
    );
    let said: Vec<_> = mine
        .report()
        .iter()
        .map(|it| {
            let line = it.source.line_col(it.span.start as usize).line;
            assert!(it.help.is_some(), "{}", it.message);
            format!("{} {line} {}", it.code, it.message)
        })
        .collect();
    assert_eq!(
        said,
        [
            "T0602 1 `defualt_model` is not a setting of your configuration",
            "T0604 3 `providers.openai.api_key` would keep a key in the configuration",
            "T0603 5 [providers.openai] has both `api_key_env` and `api_key_file`",
            "T0602 6 `mcp` is not a setting of your configuration",
        ]
    );
    let shown = mine.report().render_text(Color::Never) + &format!("{mine:?}");
    assert!(shown.contains("config.toml:3:1") && !shown.contains("sk-1234567890"), "{shown}");
    // It is told with the cards.
    let folder = Folder::new(&[("a.md", "---\n---\nx\n")]);
    let loaded = load(&folder.0.path().join("a.md"), &LoadOptions::default().user_config(mine));
    assert_eq!(loaded.report.errors(), 4);
}

#[test]
fn a_file_that_is_not_there_says_nothing() {
    let folder = Folder::new(&[]);
    let mine = UserConfig::read(&folder.0.path().join("gone.toml"));
    assert!(mine.path.is_none() && mine.report().is_empty());
}

#[test]
fn keys_and_what_servers_are_given_are_secrets() {
    let config = "[mcp.servers.files]\ncommand = [\"a\"]\n\
                  env = { MY_TOKEN = \"x${A}\", MODE = \"${B}\", OTHER = \"${C_SECRET}\" }\n\
                  [mcp.servers.web]\nurl = \"https://x.example\"\n\
                  headers = { Authorization = \"Bearer literal-token\", X-Who = \"${D}\" }\n\
                  [mcp.servers.unused]\ncommand = [\"a\"]\nenv = { A_KEY = \"${E}\" }\n";
    let folder = Folder::new(&[CARD, ("tenure.toml", config), ("key", "sk-from-a-file\n")]);
    let environ = Environ::of([
        ("A", "value-a"),
        ("B", "value-b"),
        ("C_SECRET", "value-c"),
        ("D", "value-d"),
        ("E", "value-e"),
        ("OPENAI_API_KEY", "sk-openai-key"),
        ("WORK_KEY", "sk-work-key"),
    ]);
    let mine = format!(
        "[providers.groq]\napi_key_file = {:?}\n[providers.anthropic]\napi_key_env = \"WORK_KEY\"\n",
        folder.0.path().join("key")
    );
    let options = LoadOptions::default().environ(environ).user_config(user(&mine));
    let loaded = load(&folder.0.path().join("a.md"), &options);
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    let secrets = loaded.redactor();
    for hidden in [
        "value-a",
        "value-c",
        "value-d",
        "literal-token",
        "sk-openai-key",
        "sk-work-key",
        "sk-from-a-file",
    ] {
        assert_eq!(secrets.redact(hidden), "[redacted]", "{hidden}");
    }
    for shown in ["value-b", "value-e"] {
        assert_eq!(secrets.redact(shown), shown);
    }
}

#[test]
fn the_configurations_of_the_guide_are_right() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cards.md");
    let page = std::fs::read_to_string(page).expect("the guide");
    let block = |kind: &str, holds: &str| {
        let blocks = page.split("\n```").filter_map(|it| it.strip_prefix(&format!("{kind}\n")));
        blocks.into_iter().find(|it| it.contains(holds)).expect("a block").to_owned()
    };
    let mine = user(&block("toml", "api_key_file"));
    assert!(mine.report().is_empty(), "{}", mine.report().render_text(Color::Never));
    let (config, card) = (block("toml", "mcp.servers"), block("yaml", "mcp_connect"));
    let folder = Folder::new(&[("tenure.toml", &config), ("a.yaml", &card)]);
    let loaded = folder.load("a.yaml");
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    assert_eq!(loaded.project.config.servers.len(), 2);
}
