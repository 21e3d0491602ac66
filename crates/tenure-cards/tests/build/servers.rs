//! The tool servers that cards use, as they are explained and checked.

use crate::support::*;
use serde_json::json;
use tenure_cards::card::Environ;
use tenure_cards::check::LoadOptions;

const CONFIG: (&str, &str) = (
    "tenure.toml",
    "[mcp.servers.files]\ncommand = [\"serve\", \"--in\", \"a b\"]\nenv = { TOKEN = \"${TOKEN}\" }\n\
     [mcp.servers.web]\nurl = \"https://x.example/mcp\"\n\
     headers = { A = \"${OTHER:x}\", B = \"${PATHS}\" }\n",
);

fn options(variables: &[(&str, &str)]) -> LoadOptions {
    LoadOptions::default().environ(Environ::of(variables.iter().copied()))
}

#[test]
fn g12_servers_are_explained_with_what_is_taken_of_them() {
    let card = "---\nname: a\nservers: [files]\ntools: { files: [read_*] }\nprompts: { own: [] }\n\
                mcp_connect:\n  own: { target: 'npx -y own-server' }\n\
                hooks: [{ on: on_start, run: [sh], name: first }]\n---\nx\n";
    let project = Project::new([("a.md", card), CONFIG]);
    let found = project.builder_with(options(&[("TOKEN", "hush-hush")])).inspect();
    assert!(found.report.is_empty() && found.needs.is_empty(), "{found:?}");
    let value = serde_json::to_value(&found.agents[0]).expect("it is data");
    assert_eq!(
        value["servers"],
        json!([
            { "name": "files", "runs": "serve --in 'a b'", "tools": ["read_*"] },
            { "name": "own", "runs": "npx -y own-server", "prompts": [] },
        ])
    );
    // The servers are there before the first hook of the card.
    let start = &value["points"][0];
    let entries = start["entries"].as_array().expect("a list");
    let names: Vec<_> = entries.iter().map(|it| (&it["runs"], &it["origin"])).collect();
    assert_eq!(
        names,
        [(&json!("connects tool servers"), &json!("platform")), (&json!("sh"), &json!("card"))]
    );
    assert!(!format!("{found:?}").contains("hush"), "{found:?}");
}

#[test]
fn a_router_and_helpers_have_servers_too() {
    let router = "type: router\nname: r\nagents: [a, b]\nservers: [files]\n";
    let project = Project::new([
        ("a.md", "---\nname: a\nsubagents: true\nservers: [files]\n---\nx\n"),
        ("b.md", "---\nname: b\n---\nx\n"),
        ("r.yaml", router),
        CONFIG,
    ]);
    let found = project.builder_with(options(&[("TOKEN", "x")])).inspect();
    assert!(found.report.is_empty(), "{:#?}", messages(&found.report));
    let servers: Vec<_> =
        found.agents.iter().map(|it| (it.agent.as_str(), it.servers.len())).collect();
    assert_eq!(servers, [("a", 1), ("b", 0), ("r", 1)]);
}

#[test]
fn a_variable_that_is_not_set_keeps_a_server_from_being_used_and_is_no_error_of_the_card() {
    let card = "---\nname: a\nservers: [files, web]\nmcp_connect:\n  - target: https://y.example\n    \
                name: own\n    access_token: ${MINE}\n---\nx\n";
    let project = Project::new([("a.md", card), CONFIG]);
    let found = project.builder_with(options(&[])).inspect();
    assert!(found.report.is_empty(), "{:#?}", messages(&found.report));
    let report = project.builder_with(options(&[])).build().expect_err("it is refused");
    let told = messages(&report);
    assert_eq!(told.len(), 3, "{told:#?}");
    assert!(told.iter().all(|it| it.starts_with("T0707 the tool server")), "{told:#?}");
    for (server, variable) in [("files", "TOKEN"), ("web", "PATHS"), ("own", "MINE")] {
        let named = format!("`{server}` needs the variable {variable}, which is not set");
        assert!(told.iter().any(|it| it.contains(&named)), "{named} {told:#?}");
    }
    let all = [("TOKEN", "1"), ("PATHS", "2"), ("MINE", "3")];
    project.builder_with(options(&all)).build().expect("every variable is set");
}

#[test]
fn the_target_of_a_card_is_filled_in_once_and_what_is_missing_in_it_is_said() {
    let card = "---\nname: a\nmcp_connect:\n  own: { target: 'serve ${WHERE}' }\n---\nx\n";
    let project = Project::new([("a.md", card)]);
    let report = project.builder_with(options(&[])).build().expect_err("it is refused");
    let told = messages(&report).join("\n");
    assert!(told.contains("`own` needs the variable WHERE, which is not set"), "{told}");
    // A value that looks like a variable is a value.
    let set = [("WHERE", "${INNER}")];
    project.builder_with(options(&set)).build().expect("nothing is missing");
}
