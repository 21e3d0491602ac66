//! The integration scenario of the first seed: a parent whose model calls its child as a tool, two
//! requests at the same time, hooks in Python that write a marker file.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tenure_cards::Team;
use tenure_cards::check::{LoadOptions, load};

const HOOKS: &str = r#"
import json, os

MARKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "marker.jsonl")

def mark(ctx):
    line = json.dumps({
        "agent_name": ctx.agent_name,
        "agent_id": ctx.instance_id,
        "hook_type": ctx.hook_type,
    })
    with open(MARKER, "a") as file:
        file.write(line + "\n")

async def start_agent(ctx):
    assert ctx.config.name == "child"
    mark(ctx)

async def stop_agent(ctx):
    mark(ctx)
"#;

const CHILD: &str = "---
name: child
model: passthrough
lifecycle_hooks:
  on_start: hooks.py:start_agent
  on_shutdown: hooks.py:stop_agent
---
You repeat.
";

const PARENT: &str = "---
name: parent
default: true
model: script:parent.yaml
agents: [child]
---
You delegate.
";

const SCRIPT: &str = "
- call: agent__child
  with: { message: '{input}' }
- text: 'child said {result}'
";

fn team(dir: &Path) -> Team {
    let files =
        [("hooks.py", HOOKS), ("child.md", CHILD), ("parent.md", PARENT), ("parent.yaml", SCRIPT)];
    for (name, text) in files {
        std::fs::write(dir.join(name), text).expect("a file can be written");
    }
    // The script lies among the cards; it is not one, and is passed over with a warning.
    let loaded = load(dir, &LoadOptions::default());
    let problems: Vec<_> = loaded.report.iter().map(|it| it.message.clone()).collect();
    assert!(!loaded.report.has_errors(), "{problems:?}");
    Team::builder(loaded).build().expect("a good team")
}

#[derive(Clone, Debug, PartialEq)]
struct Mark {
    name: String,
    id: String,
    hook: String,
}

fn marks(dir: &Path) -> Vec<Mark> {
    let text = std::fs::read_to_string(dir.join("marker.jsonl")).unwrap_or_default();
    let field = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    text.lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("each line is JSON");
            Mark {
                name: field(&line, "agent_name"),
                id: field(&line, "agent_id"),
                hook: field(&line, "hook_type"),
            }
        })
        .collect()
}

/// Every id has exactly one start and then exactly one stop.
fn assert_paired(marks: &[Mark]) {
    let mut lives: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for mark in marks {
        lives.entry(&mark.id).or_default().push(&mark.hook);
    }
    for (id, hooks) in lives {
        assert_eq!(hooks, ["on_start", "on_shutdown"], "of {id}");
    }
}

fn clones(marks: &[Mark]) -> BTreeSet<&str> {
    marks.iter().filter(|mark| mark.name.ends_with("[tool]")).map(|mark| &*mark.id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_requests_give_two_clones_with_one_start_and_one_stop_each() {
    let dir = tempfile::tempdir().expect("a folder");
    let team = team(dir.path());
    team.start().await.expect("it starts");
    let (one, two) = tokio::join!(team.run(None, "one"), team.run(Some("parent"), "two"));
    assert_eq!(one.expect("it answers").output, "child said one");
    assert_eq!(two.expect("it answers").output, "child said two");
    let before = marks(dir.path());
    let ids = clones(&before);
    assert_eq!(ids.len(), 2, "{before:?}");
    for id in &ids {
        let hooks: Vec<_> =
            before.iter().filter(|mark| mark.id == **id).map(|mark| &*mark.hook).collect();
        assert_eq!(hooks, ["on_start", "on_shutdown"], "a clone is over when its answer is there");
    }
    team.shutdown().await;
    let all = marks(dir.path());
    assert_paired(&all);
    let own: Vec<_> = all.iter().filter(|mark| mark.name == "child").collect();
    assert_eq!(own.len(), 2, "and the child itself started and stopped once: {all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_runs_at_once_and_staggered_never_mix_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let team = team(dir.path());
    team.start().await.expect("it starts");
    for round in 0..50 {
        let stagger = Duration::from_millis(if round % 2 == 0 { 0 } else { 50 });
        let (first, second) = (format!("first {round}"), format!("second {round}"));
        let (one, two) = tokio::join!(team.run(None, &first), async {
            tokio::time::sleep(stagger).await;
            team.run(None, &second).await
        });
        assert_eq!(one.expect("it answers").output, format!("child said {first}"));
        assert_eq!(two.expect("it answers").output, format!("child said {second}"));
    }
    team.shutdown().await;
    let all = marks(dir.path());
    assert_paired(&all);
    assert_eq!(clones(&all).len(), 100, "every request had a clone of its own");
}
