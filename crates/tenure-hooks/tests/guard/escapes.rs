//! Paths that want out.

use crate::guard::support::*;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;
use tenure_core::message::ToolStatus;
use tenure_hooks::guard::{Condition, Permissions};
use tenure_hooks::ready::{self, Bench};

/// A folder `in` with a file and a folder in it, and a secret beside it.
fn place() -> TempDir {
    let root = tempfile::tempdir().expect("it works here");
    fs::create_dir_all(root.path().join("in/sub")).expect("it works here");
    fs::create_dir(root.path().join("inner")).expect("it works here");
    fs::write(root.path().join("in/file"), "").expect("it works here");
    fs::write(root.path().join("secret"), "").expect("it works here");
    root
}

/// Whether a path may be read that a tool takes from `in`.
async fn may(root: &Path, path: &str) -> bool {
    let seen = Seen::default();
    let folder = root.join("in");
    let beneath = Condition::beneath_from(&folder, &folder);
    let permissions = Permissions::new().allow("read_file").where_("path", beneath);
    let replies = json!([{ "call": "read_file", "with": { "path": path } }, "end"]);
    let turn = run(scripted(&seen, replies).with_lifecycle(permissions)).await;
    let may = statuses(&turn) == [ToolStatus::Ok];
    assert_eq!(seen.count(), usize::from(may));
    may
}

#[tokio::test]
async fn what_is_beneath_may_be_reached_by_whatever_way() {
    let root = place();
    let absolute = root.path().join("in/file").to_string_lossy().into_owned();
    let ways = ["file", "./file", "sub/../file", "sub/./.././file", ".", "sub/", "new", "new/er"];
    for way in ways.into_iter().chain([&*absolute]) {
        assert!(may(root.path(), way).await, "{way}");
    }
    symlink(root.path().join("in/sub"), root.path().join("in/link")).unwrap();
    assert!(may(root.path(), "link/../file").await, "a link that stays within");
    assert!(may(root.path(), "../in/file").await, "out and in again");
}

#[tokio::test]
async fn nothing_leads_out() {
    let root = place();
    let at = |name: &str| root.path().join(name);
    symlink(root.path(), at("in/up")).unwrap();
    symlink(at("secret"), at("in/secret")).unwrap();
    symlink(at("in/secret"), at("in/twice")).unwrap();
    symlink(at("nowhere"), at("in/dangling")).unwrap();
    symlink("loop", at("in/loop")).unwrap();
    symlink("../inner", at("in/relative")).unwrap();
    let absolute = at("secret").to_string_lossy().into_owned();
    let long = "a/".repeat(4000);
    let ways = [
        "..",
        "../secret",
        "sub/../../secret",
        "../inner",
        "../in/../secret",
        "up/secret",
        "up/in/../secret",
        "secret",
        "twice",
        "dangling",
        "dangling/x",
        "loop",
        "relative/x",
        // `..` behind a link goes up from where the link leads.
        "relative/../secret",
        "new/../../secret",
        "new/..",
        "file/..",
        "file/x",
        "/",
        "//",
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "~/secret",
        "~",
        "~root/x",
        "file:///etc/passwd",
        "file\0",
        "file\0/../../secret",
        "",
        &absolute,
        &long,
    ];
    for way in ways {
        assert!(!may(root.path(), way).await, "{way:?} leads out");
    }
}

#[tokio::test]
async fn nothing_is_decoded() {
    // These are names like any other, beneath the folder; a tool that decodes them judges itself.
    let root = place();
    for name in ["%2e%2e%2fsecret", "..\\secret", "\u{ff0e}\u{ff0e}/secret", "...", "..."] {
        assert!(may(root.path(), name).await, "{name}");
    }
}

#[tokio::test]
async fn a_folder_whose_name_only_begins_alike_is_another() {
    let root = place();
    let outside = root.path().join("inner/file").to_string_lossy().into_owned();
    fs::write(&outside, "").unwrap();
    assert!(!may(root.path(), &outside).await);
}

#[tokio::test]
async fn without_the_folder_nothing_is_allowed() {
    let root = place();
    fs::remove_dir_all(root.path().join("in")).unwrap();
    assert!(!may(root.path(), "file").await);
    assert!(!may(root.path(), "../secret").await);
}

#[tokio::test]
async fn relative_paths_start_at_the_folder_of_the_project() {
    let root = place();
    let with = json!({
        "rules": [{ "allow": "read_file", "where": { "path": { "beneath": "in" } } }],
    });
    // The process works in another folder, where there is no `in`.
    for (path, expected) in [("in/file", true), ("secret", false), ("file", false)] {
        let bench = Bench::new().root(root.path());
        let hook = ready::find("permissions").unwrap().make(&with, &bench).unwrap();
        let seen = Seen::default();
        let replies = json!([{ "call": "read_file", "with": { "path": path } }, "end"]);
        let turn = run(scripted(&seen, replies).with_lifecycle(hook)).await;
        assert_eq!(statuses(&turn) == [ToolStatus::Ok], expected, "{path}");
    }
}
