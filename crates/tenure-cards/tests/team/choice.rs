//! Which agent a run talks to.

use crate::support::*;

const PLAIN: &str = "---\nmodel: passthrough\n---\nx\n";

#[tokio::test]
async fn the_default_counts_then_the_only_one_that_is_nobodys_child() {
    for (files, entry) in [
        (vec![("a.md", PLAIN)], Ok("a")),
        (vec![("a.md", PLAIN), ("b.md", "---\nagents: [a]\n---\nx\n")], Ok("b")),
        (vec![("a.md", PLAIN), ("b.md", "---\ntool_only: true\n---\nx\n")], Ok("a")),
        (vec![("a.md", PLAIN), ("b.md", "---\ndefault: true\n---\nx\n"), ("c.md", PLAIN)], Ok("b")),
        (
            vec![("a.md", PLAIN), ("b.md", PLAIN)],
            Err("several agents could be meant: a, b; name one of them, or mark one with \
                 `default: true`"),
        ),
        (
            vec![("a.md", "---\ntool_only: true\n---\nx\n")],
            Err("no agent can be talked to by itself; name one of: a"),
        ),
    ] {
        let project = Project::new([]);
        for (name, text) in &files {
            std::fs::write(project.path().join(name), text).expect("a file");
        }
        let team = project.team();
        let found = team.entry(None).map_err(|error| error.to_string());
        assert_eq!(found, entry.map_err(str::to_owned), "{files:?}");
    }
}

#[tokio::test]
async fn an_unknown_agent_is_told_which_there_are() {
    let project = Project::new([("a.md", PLAIN), ("b.md", PLAIN)]);
    let team = project.team();
    let error = team.run(Some("c"), "x").await.expect_err("there is none");
    assert_eq!(error.to_string(), "there is no agent `c`; there are: a, b");
    let error = team.run(Some("a"), "x").await.expect_err("it was not started");
    assert_eq!(error.to_string(), "the team has not been started; start it first");
}
