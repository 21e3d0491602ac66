//! Which hooks run, in order, with file, policy and limit (G12).

use crate::support::*;
use serde_json::{Value, json};

#[test]
fn g12_each_hook_is_explained_with_its_place_policy_and_limit() {
    let card = "---
name: a
lifecycle_hooks:
  on_start: log.py:start
  on_shutdown: { run: 'log.py:stop', timeout: 2s }
hooks:
  - { on: wrap_tool_call, run: [./guard.sh, --strict], policy: deny, when: \"tool.name == 'x'\", name: guard }
  - { on: before_agent, run: 'log.py:start', retries: 2, name: late }
  - { on: before_agent, run: 'log.py:boom', order: -1, policy: continue }
---
x
";
    let project = Project::new([("a.md", card), ("guard.sh", "#!/bin/sh\n")]);
    project.make_executable("guard.sh");
    let explanation = project.team().explain("a").expect("it is there");
    let value = serde_json::to_value(&explanation).expect("it is data");
    let points: Vec<_> = value["points"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|point| point["point"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(points, ["on_start", "before_agent", "wrap_tool_call", "on_shutdown"]);
    let entries = |point: &str| -> Vec<Value> {
        let points = value["points"].as_array().expect("a list");
        let found = points.iter().find(|it| it["point"] == point).expect("the point");
        found["entries"].as_array().expect("a list").clone()
    };
    let guard = &entries("wrap_tool_call")[0];
    let declared = guard["declared"].as_str().expect("it is declared");
    assert!(declared.ends_with("a.md:7"), "{declared}");
    assert_eq!(guard["runs"], "./guard.sh --strict");
    assert_eq!((&guard["policy"], &guard["limit"]), (&json!("deny"), &json!("30s")));
    assert_eq!(guard["when"], "tool.name == 'x'");
    assert_eq!(guard["origin"], "card");
    let before: Vec<_> = entries("before_agent").iter().map(|it| it["name"].clone()).collect();
    assert_eq!(before, ["log.py:boom", "late"]);
    assert_eq!(entries("before_agent")[1]["retries"], 2);
    let ends = entries("on_shutdown");
    assert_eq!((&ends[0]["runs"], &ends[0]["limit"]), (&json!("log.py:stop"), &json!("2s")));
    assert_eq!(ends[1]["origin"], "platform", "the worker ends last");
}

#[test]
fn g12_guards_of_parents_are_shown_where_they_come_along() {
    let guard = |name: &str| {
        format!(
            "hooks:\n  - {{ on: [wrap_tool_call, before_chat], run: [./g.sh], policy: deny, name: {name} }}"
        )
    };
    let project = Project::new([
        ("g.sh", "#!/bin/sh\n"),
        ("a.md", "---\nname: a\n---\nx\n"),
        ("b.md", &format!("---\nname: b\nagents: [a]\n{}\n---\nx\n", guard("inner"))),
        ("c.yml", &format!("type: chain\nname: c\nsequence: [b]\n{}\n", guard("outer"))),
    ]);
    project.make_executable("g.sh");
    let team = project.team();
    let inherited = |agent: &str| -> Vec<(String, Option<String>)> {
        let explanation = team.explain(agent).expect("it is there");
        let entries = explanation.points.into_iter().flat_map(|point| point.entries);
        entries.map(|entry| (entry.name, entry.inherited)).collect()
    };
    let from = |who: &str| Some(who.to_owned());
    assert_eq!(inherited("a"), [("inner".to_owned(), from("b")), ("outer".to_owned(), from("c"))]);
    assert_eq!(
        inherited("b"),
        [("inner".to_owned(), None), ("inner".to_owned(), None), ("outer".to_owned(), from("c"))]
    );
}

#[test]
fn cards_that_cannot_be_run_can_still_be_looked_at() {
    let card = "---\nmodel: nobody.knows\nharness_tools: true\n---\nx\n";
    let project = Project::new([("a.md", card)]);
    let inspection = project.builder().inspect();
    assert_eq!(inspection.report.errors(), 2);
    assert_eq!(inspection.agents.len(), 1);
    assert_eq!(inspection.agents[0].model, "nobody.knows");
}
