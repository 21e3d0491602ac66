//! The server of files.

use crate::mcp::support::{Lab, call, installed, npm};
use serde_json::json;
use tenure_hosts::mcp::{McpServer, McpTransport};

#[tokio::test]
async fn files_inside_its_root_are_read_and_others_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let root = dir.path().canonicalize().expect("a folder");
    std::fs::write(root.join("note.txt"), "buy tea").expect("a file");
    let script = installed("server-filesystem");
    let path = root.to_str().expect("a plain path");
    let server = McpServer::new("files", McpTransport::stdio(["node", &script, path], npm()));
    let lab = Lab::new([server]);
    let agent = lab.started().await;
    assert!(lab.tools().contains(&"files__read_text_file".to_owned()), "{:?}", lab.tools());
    let inside = json!({ "path": root.join("note.txt") });
    assert_eq!(call(&agent, "files__read_text_file", inside).await, "buy tea");
    let outside = call(&agent, "files__read_text_file", json!({ "path": "/etc/passwd" })).await;
    assert!(outside.contains("Access denied"), "{outside}");
    assert!(!outside.contains("root:"), "{outside}");
    let new = json!({ "path": root.join("new.txt"), "content": "and milk" });
    call(&agent, "files__write_file", new).await;
    assert_eq!(std::fs::read_to_string(root.join("new.txt")).ok().as_deref(), Some("and milk"));
    agent.shutdown().await;
}
