//! Tools that are not called.

use crate::guard::support::*;
use crate::support::refused;
use serde_json::json;
use tenure_core::message::ToolStatus::{Denied, Ok as Done};
use tenure_hooks::guard::{DryRun, Permissions};

#[tokio::test]
async fn a_tool_is_not_called_and_the_model_reads_what_would_have_been() {
    let seen = Seen::default();
    let replies = json!([
        { "calls": [
            { "call": "shell", "with": { "command": "rm x" } },
            { "call": "read_file", "with": { "path": "a" } },
        ] },
        "end"
    ]);
    let turn = run(scripted(&seen, replies).with_lifecycle(DryRun::new().except("read_*"))).await;
    assert_eq!((seen.count(), seen.of("read_file")), (1, 1));
    let told = results(&turn);
    let text = "[DRY RUN] Tool 'shell' would execute here with {\"command\":\"rm x\"}";
    assert_eq!(told, [(Done, text.to_owned()), (Done, "read_file done".to_owned())]);
}

#[tokio::test]
async fn what_is_not_permitted_is_not_rehearsed() {
    let seen = Seen::default();
    let replies = json!([{ "calls": [{ "call": "shell" }, { "call": "search" }] }, "end"]);
    for swap in [false, true] {
        let (dry, permissions) = (DryRun::new(), Permissions::new().allow("search"));
        let builder = scripted(&seen, replies.clone());
        let builder = match swap {
            false => builder.with_lifecycle(dry).with_lifecycle(permissions),
            true => builder.with_lifecycle(permissions).with_lifecycle(dry),
        };
        assert_eq!(statuses(&run(builder).await), [Denied, Done]);
    }
    assert_eq!(seen.count(), 0);
}

#[tokio::test]
async fn a_pattern_that_cannot_be_read_has_nothing_called() {
    let seen = Seen::default();
    let broken = DryRun::new().tool("other").except("");
    run(scripted(&seen, json!([calls("shell", 1), "end"])).with_lifecycle(broken)).await.unwrap();
    assert_eq!(seen.count(), 0);
}

#[test]
fn options_are_checked() {
    let field = |with| refused("dry_run", with);
    assert_eq!(field(json!({ "tools": ["a", ""] })), "tools[1]");
    assert_eq!(field(json!({ "except": [""] })), "except[0]");
}
