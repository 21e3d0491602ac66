//! Lists of tools that change, fail, or never end.

use crate::mcp::support::{Lab, Ours, call};
use serde_json::json;
use tenure_core::event::LogStream;
use tenure_core::tool::ToolSource;
use tenure_hosts::mcp::{McpOffer, McpSelection, McpState};
use tenure_testkit::eventually;

fn has_added(lab: &Lab) -> bool {
    lab.tools().contains(&"ours__added".to_owned())
}

#[tokio::test]
async fn a_list_that_fails_once_is_there_when_the_agent_starts() {
    let ours = Ours::new("list-fails-once");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    assert_eq!(ours.left("failed"), ["once"]);
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    agent.shutdown().await;
}

#[tokio::test]
async fn pages_are_read_to_the_last() {
    let ours = Ours::new("paged");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let tools = lab.tools();
    assert_eq!((tools.len(), lab.status().tools), (14, 14), "{tools:?}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_list_that_goes_in_circles_is_given_up() {
    let ours = Ours::new("circles");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let status = lab.status();
    assert_eq!(status.state, McpState::Connected);
    assert!(status.error.is_some_and(|error| error.contains("200 pages")));
    agent.shutdown().await;
}

#[tokio::test]
async fn a_changed_list_is_read_again_and_the_agent_calls_what_is_new() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let before = lab.view.version();
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    assert_eq!(lab.view.version(), before, "nothing changed");
    call(&agent, "ours__add_tool", json!({})).await;
    eventually("the new tool is listed", || has_added(&lab)).await;
    assert_eq!(lab.view.version(), before + 1);
    let said = call(&agent, "ours__added", json!({})).await;
    assert!(said.contains("there is no tool added"), "the server was asked: {said}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_list_that_cannot_be_read_leaves_the_last_one_in_place_until_it_can() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let before = (lab.view.version(), lab.tools());
    call(&agent, "ours__add_tool", json!({ "failing": 1 })).await;
    eventually("that is known", || lab.status().error.is_some()).await;
    let error = lab.status().error.expect("an error");
    assert!(error.contains("could not be listed: the list is locked"), "{error}");
    assert_eq!((lab.view.version(), lab.tools()), before);
    eventually("it is read in the end", || has_added(&lab)).await;
    assert_eq!(lab.status().error, None);
    agent.shutdown().await;
}

#[tokio::test]
async fn the_same_list_after_a_reconnect_is_no_change() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let before = lab.view.version();
    call(&agent, "ours__die", json!({})).await;
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    assert_eq!(ours.left("starts").len(), 2);
    assert_eq!(lab.view.version(), before);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_filter_that_matches_nothing_is_named_once_and_counted() {
    let ours = Ours::new("plain");
    let wanted = McpSelection::all("ours").tools(["eccho", "pid"]);
    let mut lab = Lab::with(vec![ours.server()], vec![wanted]);
    let first = lab.started().await;
    let second = lab.started().await;
    let status = lab.status();
    let expected = format!(
        "`eccho` matches none of the {} tools of `ours`; did you mean `echo`?",
        status.tools
    );
    let said: Vec<_> =
        lab.logged().into_iter().filter(|(_, line)| line.contains("eccho")).collect();
    // The second agent has the same filter, and it has been said already.
    assert_eq!(said, [(LogStream::Host, format!("ours: {expected}"))]);
    let unmatched: Vec<_> = status.unmatched.iter().map(ToString::to_string).collect();
    assert_eq!(unmatched, [expected]);
    assert_eq!(status.unmatched[0].offer, McpOffer::Tools);
    assert_eq!(status.taken, lab.tools().len());
    assert!(status.taken < status.tools, "{status:?}");
    // Somebody who takes everything misses nothing.
    let all = lab.servers.view(vec![McpSelection::all("ours")]).status().remove(0);
    assert_eq!((all.taken, all.unmatched.len()), (all.tools, 0));
    second.shutdown().await;
    first.shutdown().await;
    assert_eq!(lab.status().taken, 0, "nobody takes anything");
}

#[tokio::test]
async fn whoever_comes_to_an_open_connection_hears_of_its_own_filters() {
    let ours = Ours::new("plain");
    let mut lab = Lab::new([ours.server()]);
    let first = lab.started().await;
    lab.view = lab.servers.view(vec![McpSelection::all("ours").tools(["zebra"])]);
    let second = lab.started().await;
    let said = lab.logged();
    assert!(said.iter().any(|(_, line)| line.contains("`zebra` matches none of the")), "{said:?}");
    second.shutdown().await;
    first.shutdown().await;
}
