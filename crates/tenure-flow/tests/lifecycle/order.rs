//! What files say beyond a function: how much time ends have together, and what cannot be.

use crate::lifecycle::support::{Lab, limit};
use serde_json::json;
use std::time::Duration;
use tenure_flow::lifecycle::{self, Hosts, LifecycleTool, Run, Trigger};

#[tokio::test]
async fn ends_get_the_time_together_that_their_limits_ask_for() {
    let lab = Lab::new("def end():\n    pass\n");
    let hosts = Hosts::new(&lab.python, &lab.environment, &lab.catalog);
    let tool = |seconds: Option<u64>| {
        let mut tool = lab.tool(Trigger::AfterChat, "end");
        tool.timeout = seconds.and_then(|seconds| limit(seconds * 1000));
        tool
    };
    for (limits, expected) in [
        (vec![None, None, None, None], None),
        (vec![Some(4), None], None),
        (vec![Some(60)], Some(60)),
        (vec![Some(12), None], Some(17)),
    ] {
        let tools: Vec<_> = limits.iter().map(|it| tool(*it)).collect();
        let ends = lifecycle::of_chat(&tools, hosts).ends;
        assert_eq!(ends, expected.map(Duration::from_secs), "{limits:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_is_a_problem_with_the_name_of_the_tool() {
    let lab = Lab::new("def end():\n    pass\n");
    let hosts = Hosts::new(&lab.python, &lab.environment, &lab.catalog);
    let run = Run::Use { name: "nobody".to_owned(), with: json!({}), places: Default::default() };
    let unknown = LifecycleTool::new(Trigger::BeforeChat, "first", run);
    let mut condition = lab.tool(Trigger::BeforeChat, "end");
    condition.when = Some("variables.".into());
    let attached = lifecycle::of_chat(&[unknown, condition], hosts);
    let problems: Vec<_> = attached.problems.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("`first`: nothing is registered as `nobody`"), "{problems:?}");
    assert!(problems[1].contains("`end`: the condition does not compile"), "{problems:?}");
    assert!(attached.entries.is_empty());
}

#[tokio::test]
async fn tools_stand_where_they_concern_somebody_ends_before_begins_and_last_to_first() {
    let lab = Lab::new("def end():\n    pass\n");
    let hosts = Hosts::new(&lab.python, &lab.environment, &lab.catalog);
    let tool = |trigger, name: &str, agent: Option<&str>| {
        let mut tool = lab.tool(trigger, "end");
        tool.name = name.into();
        tool.agent = agent.map(Into::into);
        tool
    };
    let tools = [
        tool(Trigger::BeforeAgent, "b1", None),
        tool(Trigger::AfterAgent, "e1", None),
        tool(Trigger::BeforeAgent, "b2", Some("a")),
        tool(Trigger::AfterAgent, "e2", Some("a")),
        tool(Trigger::BeforeAgent, "u", Some("user")),
        tool(Trigger::BeforeChat, "c", None),
    ];
    let names = |agent: &str| -> Vec<String> {
        let entries = lifecycle::of_agent(&tools, agent, hosts).entries;
        let short = |name: &str| name.trim_start_matches("lifecycle_tools.").to_owned();
        entries.iter().map(|entry| short(&entry.name)).collect()
    };
    assert_eq!(names("a"), ["e2", "e1", "b1", "b2"]);
    assert_eq!(names("b"), ["e1", "b1"]);
    assert_eq!(names("user"), ["u"], "the person only where they are named");
    let chat = lifecycle::of_chat(&tools, hosts).entries;
    assert_eq!(chat.len(), 1);
    assert_eq!((&*chat[0].name, &*chat[0].runs), ("lifecycle_tools.c", "tools.py:end"));
}
