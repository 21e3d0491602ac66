//! Search for files and in files.

use crate::results::{calling, result_of};
use crate::support::refused;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use tenure_core::agent::Agent;
use tenure_core::hook::IntoRegistration;
use tenure_core::message::ToolStatus;
use tenure_core::tool::Effect;
use tenure_hooks::ready::{self, Bench};
use tenure_hooks::tools::{FileSearch, Order};
use tenure_models::Passthrough;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("it works here");
    for (path, text) in files {
        write(folder.path(), path, text.as_bytes());
    }
    folder
}

fn write(folder: &Path, path: &str, bytes: &[u8]) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("it works here")).expect("it works here");
    std::fs::write(path, bytes).expect("it works here");
}

async fn said(search: impl IntoRegistration, tool: &str, arguments: Value) -> (ToolStatus, String) {
    let result = result_of(calling(tool, arguments), search).await;
    (result.status, result.content.into_text())
}

async fn found(search: impl IntoRegistration, tool: &str, arguments: Value) -> Vec<String> {
    let (status, text) = said(search, tool, arguments).await;
    assert_eq!(status, ToolStatus::Ok, "{text}");
    text.lines().map(str::to_owned).collect()
}

const FILES: &[(&str, &str)] = &[
    ("b.rs", "fn beta() {}\n"),
    ("a.rs", "fn alpha() {}\n// Alpha again\n"),
    ("src/deep/c.rs", "fn gamma() { alpha() }\r\n"),
    ("src/notes.md", "alpha\n"),
    (".hidden/x.rs", "fn alpha() {}\n"),
    (".env", "alpha=secret\n"),
    ("server.pem", "alpha\n"),
    ("id_rsa", "alpha\n"),
    ("target/out.rs", "fn alpha() {}\n"),
    (".gitignore", "target/\n"),
];

#[tokio::test]
async fn paths_are_found_in_order_without_what_is_ignored_hidden_or_secret() {
    let folder = folder(FILES);
    let search = || FileSearch::new(folder.path());
    assert_eq!(
        found(search(), "glob", json!({ "pattern": "*.rs" })).await,
        ["a.rs", "b.rs", "src/deep/c.rs"]
    );
    assert_eq!(
        found(search(), "glob", json!({ "pattern": "**/*" })).await,
        ["a.rs", "b.rs", "src/deep/c.rs", "src/notes.md"]
    );
    assert_eq!(found(search(), "glob", json!({ "pattern": "src/*.md" })).await, ["src/notes.md"]);
    assert_eq!(
        found(search(), "glob", json!({ "pattern": "*.rs", "path": "src" })).await,
        ["src/deep/c.rs"]
    );
    assert_eq!(found(search(), "glob", json!({ "pattern": "*.py" })).await, ["nothing found"]);
    let all = found(search().gitignore(false).hidden(true), "glob", json!({ "pattern": "*" }));
    let all = all.await;
    assert!(all.contains(&"target/out.rs".to_owned()) && all.contains(&".hidden/x.rs".to_owned()));
    assert!(!all.iter().any(|it| it.contains("env") || it.contains("pem") || it.contains("id_")));
}

#[tokio::test]
async fn contents_are_found_as_files_lines_or_counts() {
    let folder = folder(FILES);
    let search = || FileSearch::new(folder.path());
    let grep = async |arguments| found(search(), "grep", arguments).await;
    assert_eq!(
        grep(json!({ "pattern": "alpha" })).await,
        ["a.rs", "src/deep/c.rs", "src/notes.md"]
    );
    assert_eq!(
        grep(json!({ "pattern": "alpha", "output_mode": "content", "include": "*.rs" })).await,
        ["a.rs:1: fn alpha() {}", "src/deep/c.rs:1: fn gamma() { alpha() }"]
    );
    assert_eq!(
        grep(json!({ "pattern": "ALPHA", "output_mode": "count", "ignore_case": true })).await,
        ["a.rs: 2", "src/deep/c.rs: 1", "src/notes.md: 1"]
    );
    assert_eq!(
        grep(json!({ "pattern": "^alpha$", "path": "src/notes.md" })).await,
        ["src/notes.md"]
    );
}

#[tokio::test]
async fn nothing_outside_the_folder_is_seen() {
    let outside = folder(&[("secret.txt", "alpha\n")]);
    let folder = folder(FILES);
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    let file = outside.path().join("secret.txt");
    std::os::unix::fs::symlink(&file, folder.path().join("link.txt")).unwrap();
    let search = || FileSearch::new(folder.path());
    let all = found(search(), "grep", json!({ "pattern": "alpha" })).await;
    assert!(!all.iter().any(|it| it.contains("link")), "{all:?}");
    let absolute = file.to_str().unwrap().to_owned();
    for path in
        ["..", "src/../../x", "/etc", absolute.as_str(), "link", "link/secret.txt", "link.txt"]
    {
        let (status, text) = said(search(), "grep", json!({ "pattern": "a", "path": path })).await;
        assert_eq!(status, ToolStatus::Error, "{path}");
        assert!(text.contains("leads out of the folder"), "{path}: {text}");
    }
    for path in [".env", "server.pem", ".hidden", ".hidden/x.rs"] {
        let (status, text) = said(search(), "grep", json!({ "pattern": "a", "path": path })).await;
        assert_eq!(status, ToolStatus::Error, "{path}");
        assert!(text.contains("is not searched"), "{path}: {text}");
    }
    for pattern in ["../*", "/etc/*", "a/../../*"] {
        let (status, _) = said(search(), "glob", json!({ "pattern": pattern })).await;
        assert_eq!(status, ToolStatus::Error, "{pattern}");
    }
}

#[tokio::test]
async fn what_is_ignored_is_not_searched_by_its_name_either() {
    let folder = folder(&[
        (".gitignore", "private/\n*.log\n"),
        ("private/a.txt", "alpha\n"),
        ("private/deep/b.txt", "alpha\n"),
        ("src/.ignore", "notes\n"),
        ("src/notes/c.txt", "alpha\n"),
        ("src/run.log", "alpha\n"),
        ("src/fine/d.txt", "alpha\n"),
    ]);
    std::os::unix::fs::symlink("private", folder.path().join("public")).unwrap();
    let search = || FileSearch::new(folder.path());
    let ignored = [
        "private",
        "./private/",
        "private/a.txt",
        "private/deep",
        "private/deep/b.txt",
        "public",
        "public/deep",
        "src/notes",
        "src/notes/c.txt",
        "src/run.log",
    ];
    for path in ignored {
        for (tool, pattern) in [("grep", "alpha"), ("glob", "*")] {
            let arguments = json!({ "pattern": pattern, "path": path });
            let (status, text) = said(search(), tool, arguments).await;
            assert_eq!(status, ToolStatus::Error, "{path}: {text}");
            assert!(text.contains("is not searched"), "{path}: {text}");
        }
    }
    let fine = json!({ "pattern": "alpha", "path": "src/fine" });
    assert_eq!(found(search(), "grep", fine).await, ["src/fine/d.txt"]);
    let all = json!({ "pattern": "alpha", "path": "private/deep" });
    let all = found(search().gitignore(false), "grep", all).await;
    assert_eq!(all, ["private/deep/b.txt"]);
}

#[tokio::test]
async fn a_secret_is_one_in_any_case() {
    let folder = folder(&[("ID_RSA", "alpha"), ("Server.PEM", "alpha"), ("Main.rs", "alpha")]);
    let search = || FileSearch::new(folder.path());
    assert_eq!(found(search(), "grep", json!({ "pattern": "alpha" })).await, ["Main.rs"]);
    for path in ["ID_RSA", "Server.PEM"] {
        let (status, text) = said(search(), "grep", json!({ "pattern": "a", "path": path })).await;
        assert_eq!(status, ToolStatus::Error, "{path}: {text}");
    }
    // What a model looks for is of the case that it writes.
    assert_eq!(found(search(), "glob", json!({ "pattern": "main.rs" })).await, ["nothing found"]);
}

#[tokio::test]
async fn what_is_left_out_is_said() {
    let folder = folder(&[("a.txt", "x\nx\nx\n"), ("b.txt", "x\n")]);
    write(folder.path(), "large.txt", &b"x\n".repeat(600));
    write(folder.path(), "binary", b"x\0x\n");
    let search = || FileSearch::new(folder.path()).max_file_size(1000);
    let content = json!({ "pattern": "x", "output_mode": "content" });
    let lines = found(search().max_results(2), "grep", content.clone()).await;
    assert_eq!(lines[..2], ["a.txt:1: x", "a.txt:2: x"]);
    assert_eq!(lines[2], "[there is more than 2; search for less at once]");
    let lines = found(search(), "grep", json!({ "pattern": "x" })).await;
    assert_eq!(lines, ["a.txt", "b.txt", "[left out because of their size: 1]"]);
    let long = "y".repeat(2000);
    write(folder.path(), "c.txt", long.as_bytes());
    let lines = found(
        search().max_file_size(5000),
        "grep",
        json!({ "pattern": "y", "output_mode": "content" }),
    );
    let lines = lines.await;
    assert!(lines[0].ends_with("[...]") && lines[0].len() < 400, "{lines:?}");
}

#[tokio::test]
async fn the_newest_come_first_if_wanted() {
    let folder = folder(&[("a", ""), ("b", ""), ("c", "")]);
    for (name, age) in [("a", 300), ("b", 100), ("c", 200)] {
        let file = std::fs::File::open(folder.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    let search = FileSearch::new(folder.path()).order(Order::Newest);
    assert_eq!(found(search, "glob", json!({ "pattern": "*" })).await, ["b", "c", "a"]);
}

#[tokio::test]
async fn a_search_that_takes_long_ends_with_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..200 {
        write(folder.path(), &format!("{number}.txt"), &b"abcdefgh\n".repeat(20_000));
    }
    let search = FileSearch::new(folder.path()).limit(Duration::from_millis(50));
    let since = Instant::now();
    let lines = found(search, "grep", json!({ "pattern": "[a-z]+x$", "ignore_case": true })).await;
    assert_eq!(lines.last().unwrap(), "[the time was up before all was searched]");
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_pattern_that_makes_no_sense_or_is_too_large_is_refused() {
    let folder = folder(FILES);
    for pattern in ["(", "(a{1000}){1000}"] {
        let search = FileSearch::new(folder.path());
        let (status, text) = said(search, "grep", json!({ "pattern": pattern })).await;
        assert_eq!(status, ToolStatus::Error, "{pattern}");
        assert!(text.contains("is no regular expression"), "{text}");
    }
    let (status, text) =
        said(FileSearch::new(folder.path()), "glob", json!({ "pattern": "{a" })).await;
    assert_eq!(status, ToolStatus::Error, "{text}");
    let (status, text) =
        said(FileSearch::new(folder.path()), "grep", json!({ "pattern": 1 })).await;
    assert_eq!(status, ToolStatus::Error, "{text}");
}

#[tokio::test]
async fn several_roots_keep_their_names() {
    let folder = folder(&[("docs/a.md", "x"), ("src/a.rs", "x"), ("other/a.rs", "x")]);
    let bench = Bench::new().root(folder.path());
    let make = || {
        let with = json!({ "roots": ["src", "./docs"], "grep_name": "look" });
        ready::find("file_search").unwrap().make(&with, &bench).unwrap()
    };
    assert_eq!(found(make(), "look", json!({ "pattern": "x" })).await, ["docs/a.md", "src/a.rs"]);
    let one = found(make(), "glob", json!({ "pattern": "*", "path": "src" })).await;
    assert_eq!(one, ["src/a.rs"]);
    let (status, text) = said(make(), "glob", json!({ "pattern": "*", "path": "other" })).await;
    assert_eq!(status, ToolStatus::Error);
    assert!(text.contains("these may: src, docs"), "{text}");
}

#[tokio::test]
async fn a_folder_that_is_not_there_fails_the_start() {
    let search = FileSearch::new("no/such/folder");
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(search);
    let error = agent.build().unwrap().startup().await.unwrap_err();
    assert!(error.to_string().contains("no/such/folder is to be searched"), "{error}");
}

#[test]
fn both_tools_may_be_called_again() {
    let registration = FileSearch::new(".").into_registration();
    for tool in registration.tools() {
        assert_eq!(tool.spec().effect, Effect::Idempotent);
    }
    assert_eq!(registration.tools().len(), 2);
}

#[test]
fn options_are_checked() {
    for (with, field) in [
        (json!({ "roots": [] }), "roots"),
        (json!({ "roots": ["a", "../b"] }), "roots[1]"),
        (json!({ "exclude": ["/etc"] }), "exclude"),
        (json!({ "glob_name": "" }), "glob_name"),
        (json!({ "glob_name": "x", "grep_name": "x" }), "grep_name"),
        (json!({ "max_results": 0 }), "max_results"),
        (json!({ "order": "random" }), "order"),
        (json!({ "limit": "1" }), "limit"),
    ] {
        assert_eq!(refused("file_search", with.clone()), field, "{with}");
    }
}
