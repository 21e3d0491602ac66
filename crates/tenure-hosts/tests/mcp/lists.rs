//! Lists of tools that change, fail, or never end.

use crate::support::{Lab, Ours, call, eventually};
use serde_json::json;
use tenure_core::tool::ToolSource;
use tenure_hosts::mcp::McpState;

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
