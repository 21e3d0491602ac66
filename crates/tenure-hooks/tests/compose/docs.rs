//! The page of the guide that describes every ready-made hook is up to date.
//!
//! `TENURE_BLESS=1 cargo test -p tenure-hooks --all-features compose::docs` writes it anew.

use crate::compose::stage::Stage;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tenure_core::hook::Point;
use tenure_hooks::ready::{self, Ready};

const HEAD: &str = "# The ready-made hooks, one by one

What each of them does, where it is called, where it stands among the others, and what it takes by `with`. The program shows
the same: `tenure hooks`, `tenure hooks retry`. How they are used and how they fit together is in
[Ready-made hooks](ready-made-hooks.md). A time has a unit (`500ms`, `30s`, `2m`, `1h`), a path is beneath the project and
relative to the file that names it, a model is named as in a card.

";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    let stage = Stage::new();
    let (mut page, mut last) = (HEAD.to_owned(), "");
    for (group, hook) in ready::all() {
        if group != last {
            let (first, rest) = group.split_at(1);
            page.push_str(&format!("## {}{rest}\n\n", first.to_uppercase()));
            last = group;
        }
        page.push_str(&section(&stage, hook));
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn section(stage: &Stage, hook: &Ready) -> String {
    let about = hook.about();
    let sample = stage.hook(hook);
    let mut text = format!("### `{}`\n\n{}\n\n", about.name, about.summary);
    let points: Vec<_> = sample.points().iter().map(|it| format!("`{it}`")).collect();
    let mut facts = vec![format!("Called at {}", points.join(", "))];
    if sample.is_guard() {
        facts.push("a guard: if it fails, it denies".to_owned());
    } else if sample.is_observer() {
        facts.push("only observes: if it fails, nothing else does".to_owned());
    }
    text.push_str(&format!("{}.\n", facts.join("; ")));
    let named = |kinds: &[&str]| {
        kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ")
    };
    let (outside, inside) = sample.stands();
    if !outside.is_empty() {
        text.push_str(&format!("Stands around {}.\n", named(outside)));
    }
    if !inside.is_empty() {
        text.push_str(&format!("Stands within {}.\n", named(inside)));
    }
    if sample.is_innermost() {
        text.push_str("Stands next to the call, within all that may change it.\n");
    }
    let tools: Vec<_> =
        sample.tools().iter().map(|tool| format!("`{}`", tool.spec().name)).collect();
    if !tools.is_empty() {
        text.push_str(&format!("Brings the tools {}.\n", tools.join(", ")));
    }
    if !about.covers.is_empty() {
        text.push_str(&format!("Use cases: {}.\n", about.covers.join(", ")));
    }
    if !about.peers.is_empty() {
        text.push_str(&format!("Elsewhere: {}.\n", about.peers.join(", ")));
    }
    let example: Value = serde_json::from_str(about.example).expect("the example is JSON");
    text.push_str(&format!(
        "Example: [examples/hooks/{0}](../examples/hooks/{0}).\n\n```yaml\nhooks:\n  - {{ use: {0}, with: {example} }}\n```\n\n",
        about.name
    ));
    let options = hook.options();
    if options.is_empty() {
        text.push_str("It takes no options.\n\n");
        return text;
    }
    text.push_str("| option | is | by default | |\n|---|---|---|---|\n");
    for row in options {
        let default = match (&row.default, row.required) {
            (_, true) => "has to be given".to_owned(),
            (Some(default), false) => format!("`{default}`"),
            (None, false) => String::new(),
        };
        let cell = |text: &str| text.replace('|', "\\|");
        text.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            row.name,
            cell(&row.kind),
            cell(&default),
            cell(&row.about)
        ));
    }
    text.push('\n');
    text
}

#[test]
fn the_guide_describes_every_hook_as_it_is() {
    let path = root().join("docs/hooks-reference.md");
    if std::env::var_os("TENURE_BLESS").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/hooks-reference.md is not up to date; TENURE_BLESS=1 writes it anew"
    );
}

#[test]
fn every_option_is_described() {
    for (_, hook) in ready::all() {
        for row in hook.options() {
            assert!(!row.about.is_empty(), "{}: `{}` says nothing", hook.name(), row.name);
            // A schema may be any JSON.
            let is_open = row.name.contains("schema");
            assert!(
                row.kind != "anything" || is_open,
                "{}: `{}` may be anything",
                hook.name(),
                row.name
            );
        }
        assert!(hook.about().summary.ends_with('.'), "{}", hook.name());
    }
}

#[test]
fn the_hooks_cover_every_use_case() {
    let covered: BTreeSet<&str> =
        ready::all().flat_map(|(_, hook)| hook.about().covers.iter().copied()).collect();
    let counts = [(1, 5), (2, 4), (3, 5), (4, 5), (5, 5), (6, 4)];
    let all: BTreeSet<String> = counts
        .into_iter()
        .flat_map(|(group, count)| (1..=count).map(move |at| format!("UC-{group}.{at}")))
        .collect();
    assert_eq!(all.len(), 28);
    assert_eq!(covered, all.iter().map(String::as_str).collect());
}

#[test]
fn every_middleware_that_people_know_has_its_counterpart_or_a_reason() {
    const KNOWN: [&str; 17] = [
        "SummarizationMiddleware",
        "HumanInTheLoopMiddleware",
        "ModelCallLimitMiddleware",
        "ToolCallLimitMiddleware",
        "ModelFallbackMiddleware",
        "ModelRetryMiddleware",
        "ModelRefusalMiddleware",
        "ToolRetryMiddleware",
        "ToolErrorMiddleware",
        "PIIMiddleware",
        "TodoListMiddleware",
        "LLMToolSelectorMiddleware",
        "LLMToolEmulator",
        "ContextEditingMiddleware",
        "ProviderToolSearchMiddleware",
        "ShellToolMiddleware",
        "FilesystemFileSearchMiddleware",
    ];
    let guide =
        std::fs::read_to_string(root().join("docs/ready-made-hooks.md")).unwrap_or_default();
    for name in KNOWN {
        let has = ready::all().any(|(_, hook)| hook.about().peers.contains(&name));
        assert!(has || name == "ProviderToolSearchMiddleware", "{name} has no counterpart");
        assert!(guide.contains(name), "docs/ready-made-hooks.md does not mention {name}");
    }
}

#[test]
fn no_hook_claims_every_point() {
    let stage = Stage::new();
    for (_, hook) in ready::all() {
        let points = stage.hook(hook).points();
        assert!(!points.is_empty() && points.iter().count() < Point::ALL.len(), "{}", hook.name());
    }
}
