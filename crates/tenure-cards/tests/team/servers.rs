//! Teams whose agents use tool servers: a real process that speaks the protocol.

use crate::support::*;
use std::collections::BTreeMap;
use tenure_cards::Team;
use tenure_cards::card::Environ;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::team::TeamErrorKind;
use tenure_cards::trust::inventory;
use tenure_core::message::Message;
use tenure_hosts::mcp::McpState;

const SERVER: (&str, &str) = ("server.py", include_str!("mcp_server.py"));

const CONFIG: (&str, &str) = (
    "tenure.toml",
    "[mcp.servers.good]\ncommand = [\"python3\", \"server.py\"]\nenv = { GIVEN = \"${GIVEN}\" }\n\
     protocol = \"legacy\"\n\
     [mcp.servers.dead]\ncommand = [\"no-such-program-anywhere\"]\nstart_timeout = \"2s\"\n",
);

fn options() -> LoadOptions {
    LoadOptions::default().environ(Environ::of([("GIVEN", "a-present"), ("OTHER", "not-given")]))
}

/// What the server process wrote down.
fn noted(project: &Project) -> Vec<String> {
    let text = std::fs::read_to_string(project.path().join("servers.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn an_agent_calls_the_tools_of_its_server_beside_a_dead_one() {
    let card = "---\nname: a\nservers: [good, dead]\ntools: { good: [ech*, 'secret_*'] }\n\
                lifecycle_hooks: { on_start: 'log.py:start' }\n---\nx\n";
    let second = "---\nname: b\nservers: [good]\ntools: { good: [echo] }\n---\nx\n";
    let project = Project::new([("a.md", card), ("b.md", second), SERVER, CONFIG]);
    let team = project.builder_with(options()).build().expect("a team");
    assert!(noted(&project).is_empty(), "nothing is started before the team is");
    assert!(team.servers().iter().all(|it| it.state == McpState::Idle), "{:?}", team.servers());
    team.start().await.expect("a dead server does not keep it from starting");
    assert_eq!(project.log(), ["start a"]);
    let states: Vec<_> = team.servers().iter().map(|it| (it.name.to_string(), it.state)).collect();
    assert_eq!(states, [("dead".into(), McpState::Failed), ("good".into(), McpState::Connected)]);

    let said = team.run(Some("a"), "***CALL_TOOL good__echo {\"text\": \"hi\"}").await;
    assert_eq!(said.expect("it runs").output, "served: hi");
    for (name, expected) in [("GIVEN", "served: a-present"), ("OTHER", "served: unset")] {
        let ask = format!("***CALL_TOOL good__secret_of {{\"name\": \"{name}\"}}");
        assert_eq!(team.run(Some("a"), ask).await.expect("it runs").output, expected);
    }
    // What is not taken is not there.
    let ask = "***CALL_TOOL good__secret_of {\"name\": \"GIVEN\"}";
    let denied = team.run(Some("b"), ask).await;
    assert!(!denied.is_ok_and(|run| run.output.contains("a-present")));

    let prompts = team.prompts("a").expect("it runs");
    assert_eq!(prompts.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["greet"]);
    let arguments = BTreeMap::from([("who".to_owned(), "Ada".to_owned())]);
    let messages = team.prompt("a", "good", "greet", arguments).await.expect("it is filled in");
    assert!(matches!(&messages[..], [Message::User { content }] if content.text() == "Greet Ada"));
    let error = team.prompt("a", "nobody", "greet", BTreeMap::new()).await.expect_err("no server");
    assert_eq!(error.kind(), TeamErrorKind::Server);

    team.shutdown().await;
    // One process for both agents, ended after them.
    assert_eq!(noted(&project), ["start", "end"]);
    let error = team.prompts("a").expect_err("it is over");
    assert_eq!(error.kind(), TeamErrorKind::NotRunning);
}

#[tokio::test]
async fn a_card_describes_a_server_of_its_own_and_helpers_use_it() {
    let card = "---\nname: a\nsubagents: true\nmcp_connect:\n  - target: python3 'server.py'\n    \
                name: own\n    protocol_mode: legacy\n---\nx\n";
    let project = Project::new([("a.md", card), SERVER]);
    let team = project.builder_with(options()).build().expect("a team");
    team.start().await.expect("it starts");
    let inner = "***CALL_TOOL own__echo {\\\"text\\\": \\\"deep\\\"}";
    let ask = format!("***CALL_TOOL subagent {{\"message\": \"{inner}\"}}");
    assert_eq!(team.run(None, ask).await.expect("it runs").output, "served: deep");
    team.shutdown().await;
    assert_eq!(noted(&project), ["start", "end"]);
}

#[tokio::test]
async fn a_server_whose_files_changed_is_not_started_again() {
    let card = "---\nname: a\nservers: [good]\n---\nx\n";
    for changed in ["server.py", "helper.py"] {
        let project = Project::new([("a.md", card), SERVER, ("helper.py", "X = 1\n"), CONFIG]);
        let team = project.builder_with(options()).build().expect("a team");
        team.start().await.expect("it starts");
        let status = || team.servers().into_iter().find(|it| &*it.name == "good").expect("good");
        let pid = status().pid.expect("a process");
        // Without a change it comes back.
        end(pid);
        eventually(|| status().pid.is_some_and(|now| now != pid)).await;
        assert_eq!(noted(&project), ["start", "start"], "{changed}");

        let path = project.path().join(changed);
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(&path, format!("{text}\n# More.\n")).expect("a file");
        end(status().pid.expect("a process"));
        eventually(|| status().state == McpState::Failed).await;
        let ask = "***CALL_TOOL good__echo {\"text\": \"hi\"}";
        let _ = team.run(Some("a"), ask).await;
        let expected = format!("`{changed}` changed since it was checked; start again to be asked");
        let error = status().error.unwrap_or_default();
        assert!(error.contains(&expected), "{error}");
        team.shutdown().await;
        assert_eq!(noted(&project), ["start", "start"], "{changed}: nothing of it has run");
    }
}

#[tokio::test]
async fn a_server_whose_files_change_after_they_were_listed_is_not_started() {
    let card = "---\nname: a\nservers: [good]\n---\nx\n";
    let project = Project::new([("a.md", card), SERVER, CONFIG]);
    let loaded = load(project.path(), &options());
    assert!(!inventory(&loaded).items.is_empty());
    let path = project.path().join("server.py");
    std::fs::write(&path, format!("{}\n# More.\n", SERVER.1)).expect("a file");
    let team = Team::builder(loaded).build().expect("a team");
    team.start().await.expect("it starts");
    let error = team.servers().into_iter().find_map(|it| it.error).unwrap_or_default();
    assert!(error.contains("`server.py` changed since it was checked"), "{error}");
    team.shutdown().await;
    assert!(noted(&project).is_empty(), "nothing of it has run");
}

/// Ends a server of the team.
fn end(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

async fn eventually(done: impl Fn() -> bool) {
    let since = std::time::Instant::now();
    while !done() {
        assert!(since.elapsed() < std::time::Duration::from_secs(20), "not in time");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
