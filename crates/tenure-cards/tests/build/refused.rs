//! What is accepted works, or is refused at the field that asks for it.

use crate::support::*;
use tenure_cards::HookCatalog;
use tenure_cards::diagnostic::Severity;
use tenure_core::hook::{self, Flow};

/// Each problem as `code line message`.
fn refused(project: &Project) -> Vec<String> {
    let report = project.builder().build().expect_err("it is refused");
    let told = |it: &tenure_cards::diagnostic::Diagnostic| {
        let line = it.source.line_col(it.span.start as usize).line;
        assert!(it.help.is_some(), "{} has no remedy", it.message);
        format!("{} {line} {}", it.code, it.message)
    };
    let errors = report.iter().filter(|it| it.severity == Severity::Error);
    errors.map(told).collect()
}

#[test]
fn what_this_release_cannot_do_is_refused_by_name() {
    for (field, problem) in [
        (
            "mcp_connect: [{ target: 'https://example.com/mcp', management: provider }]",
            "T0701 3 `management: provider` cannot be run yet",
        ),
        ("mcp_connect: [{ connector_id: x }]", "T0701 3 `connector_id` cannot be run yet"),
        (
            "mcp_connect: [{ target: serve, auth: { oauth: true } }]",
            "T0701 3 `auth` cannot be run yet",
        ),
        (
            "mcp_connect: [{ target: serve, defer_loading: true }]",
            "T0701 3 `defer_loading: true` cannot be run yet",
        ),
        ("harness_tools: true", "T0701 3 `harness_tools` cannot be run yet"),
        (
            "request_params: { tool_result_mode: passthrough }\nhistory_merge_target: orchestrator",
            "T0701 3 results cannot be passed through behind which the conversations of children stand",
        ),
        ("model: script:gone.yml", "T0703 3 the script `gone.yml` is not there"),
        ("model: script:../x.yml", "T0703 3 the script `../x.yml` is outside of the project"),
        (
            "model: script:bad.yml",
            "T0703 3 the script `bad.yml` cannot be used: replies[0].call must be the name of a tool",
        ),
        ("skills: [gone]", "T0704 3 the skill `gone` is not there"),
        ("skills: [empty]", "T0704 3 the skill `empty` has no SKILL.md"),
        ("skills: [nameless]", "T0704 3 the skill file `nameless/SKILL.md` has no `name`"),
        ("hooks: [{ use: nobody }]", "T0318 3 no hook is registered under the name `nobody`"),
    ] {
        let card = format!("---\nname: a\n{field}\n---\nx\n");
        let project = Project::new([
            ("a.md", &card),
            ("bad.yml", "- { call: 1 }\n"),
            ("empty/readme.txt", ""),
            ("nameless/SKILL.md", "---\ndescription: x\n---\ny\n"),
        ]);
        assert_eq!(refused(&project), [problem], "{field}");
    }
}

#[test]
fn an_agent_elsewhere_is_refused() {
    let project = Project::new([("a.yml", "type: a2a\nname: a\nurl: https://example.com\n")]);
    assert_eq!(refused(&project), ["T0701 1 `a` is an agent elsewhere (type a2a)"]);
}

#[test]
fn everything_is_refused_at_once_in_all_cards() {
    let project = Project::new([
        ("a.md", "---\nmodel: nobody.gpt\nharness_tools: true\nagents: [b]\n---\nx\n"),
        ("b.md", "---\nmodel: ' . '\n---\nx\n"),
    ]);
    assert_eq!(refused(&project).len(), 3);
}

#[test]
fn another_model_makes_a_card_run_whose_own_is_remote() {
    let project = Project::new([("a.md", "---\nmodel: sonnet\n---\nx\n")]);
    let team = project.builder().model_override("passthrough").build().expect("it runs now");
    assert_eq!(team.explain("a").expect("it is there").model, "passthrough");
}

#[test]
fn a_registered_hook_that_refuses_what_it_is_given_says_why() {
    let greet = hook::before_agent(|_, _| Box::pin(async { Ok(Flow::Continue) }));
    let catalog = HookCatalog::new().register("greet", greet);
    let card = "---\nname: a\nhooks:\n  - { use: greet, with: { word: hi } }\n---\nx\n";
    let project = Project::new([("a.md", card)]);
    let report = project.builder().hook_catalog(catalog).build().expect_err("it is refused");
    assert_eq!(
        messages(&report),
        ["T0318 the hook `greet` cannot be made: it takes nothing by `with`"]
    );
}

#[test]
fn options_of_ready_made_hooks_are_refused_where_they_are_written() {
    let card = "---\nname: a\nhooks:\n  - use: retry\n    with:\n      attempts: 0\n---\nx\n";
    let found = refused(&Project::new([("a.md", card)]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("T0319 6 the hook `retry` cannot be made"), "{found:?}");
}

#[test]
fn every_option_that_is_wrong_is_told_at_its_own_line() {
    let card = "---
name: a
hooks:
  - use: retry
    with:
      factor: 0.5
      jitter: ful
      atempts: 3
      initial_delay: 5
      budget:
        ratio: many
---
x
";
    let found = refused(&Project::new([("a.md", card)]));
    let starts = [
        "T0319 7 the hook `retry` cannot be made: `jitter`: unknown value `ful`; did you mean `full`?",
        "T0319 8 the hook `retry` cannot be made: `atempts`: unknown field `atempts`; did you mean \
         `attempts`?",
        "T0319 9 the hook `retry` cannot be made: `initial_delay`: the limit `5` has no unit",
        "T0319 11 the hook `retry` cannot be made: `budget.ratio`: it is the text \"many\"",
        "T0319 6 the hook `retry` cannot be made: `factor`: waits grow by 1 to 100 times",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for start in starts {
        assert!(found.iter().any(|it| it.starts_with(start)), "{start}: {found:#?}");
    }
}

#[test]
fn an_order_that_cannot_be_is_refused_at_the_hook_that_asks_for_it() {
    let card = "---
name: a
hooks:
  - { use: permissions, with: { default: allow } }
  - { use: tool_errors, with: { message: sorry }, after: permissions }
---
x
";
    let project = Project::new([("a.md", card)]);
    let found = refused(&project);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("T0705 5 "), "{found:?}");
    assert!(found[0].contains("cannot be put in order"), "{found:?}");
    let report = project.builder().build().expect_err("it is refused");
    let help =
        report.iter().find(|it| it.severity == Severity::Error).and_then(|it| it.help.clone());
    assert_eq!(help.as_deref(), Some("take the `before` or `after` away"));
}

#[test]
fn the_key_of_a_provider_is_not_exported_to_another_host() {
    let hook = "{ use: telemetry, with: { endpoint: \"https://otel.example\", headers: { \
                Authorization: OPENAI_API_KEY } } }";
    let card = format!("---\nname: a\nhooks:\n  - {hook}\n---\nx\n");
    let found = refused(&Project::new([("a.md", &*card)]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("the key of `openai` sent to otel.example"), "{found:?}");
    let other = card.replace("OPENAI_API_KEY", "OTEL_TOKEN");
    assert!(Project::new([("a.md", &*other)]).builder().build().is_ok());
}

#[test]
fn what_does_not_fit_is_said_in_the_words_of_files() {
    for (hook, says) in [
        ("{ use: log, policy: abort }", "take the `policy` away"),
        ("{ use: retry, on: on_start }", "take its `on` away"),
    ] {
        let card = format!("---\nname: a\nhooks:\n  - {hook}\n---\nx\n");
        let found = refused(&Project::new([("a.md", &*card)]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("T0705 4 ") && found[0].contains(says), "{found:?}");
        for word in ["`only`", "impl", "policy_at", "observes`"] {
            assert!(!found[0].contains(word), "{found:?}");
        }
    }
}

#[test]
fn a_hook_that_is_hardly_meant_so_is_doubted() {
    let doubts = |hooks: &str| -> Vec<String> {
        let card =
            format!("---\nname: a\nmodel: passthrough\nshell: true\nhooks:\n{hooks}---\nx\n");
        let inspected = Project::new([("a.md", &*card)]).builder().inspect();
        let doubted = inspected.report.iter().filter(|it| it.code.as_str() == "T0909");
        let told = |it: &tenure_cards::diagnostic::Diagnostic| {
            let line = it.source.line_col(it.span.start as usize).line;
            format!("{line} {}", it.message)
        };
        doubted.map(told).collect()
    };
    let about = |tool: &str, name: &str, line: usize| {
        format!("{line} the hook `{name}` is about the tool `{tool}`, which `a` does not have")
    };
    assert_eq!(
        doubts(
            "  - { use: approval, with: { tools: { delte: true, execute: true, write_text_file: true, 'del*': true } } }\n  \
             - { use: permissions, with: { rules: [{ deny: shel }, { allow: '*' }] } }\n"
        ),
        [about("delte", "approval", 6), about("shel", "permissions", 7)]
    );
    let open = doubts("  - { use: dry_run, policy: continue }\n");
    assert_eq!(open.len(), 1, "{open:?}");
    assert!(open[0].contains("fail open"), "{open:?}");
    for tools in ["execute, write_text_file", "execute, 'write_*'", "write_text_file"] {
        let hook = format!("  - {{ use: dry_run, with: {{ tools: [{tools}] }} }}\n");
        assert!(doubts(&hook).is_empty(), "{tools}");
    }
    // What a shell brings beside commands is easily left out.
    let alone = "is about `execute` and not about `write_text_file`, which `shell` brings too";
    for hook in [
        "{ use: dry_run, with: { tools: [execute] } }",
        "{ use: permissions, with: { rules: [{ ask: execute }], default: allow } }",
        "{ on: wrap_tool_call, run: [echo, x], name: own, when: \"tool.name == 'execute'\" }",
    ] {
        let found = doubts(&format!("  - {hook}\n"));
        assert!(found.len() == 1 && found[0].contains(alone), "{hook}: {found:?}");
    }
    assert!(doubts("  - { use: permissions, with: { rules: [{ ask: execute }] } }\n").is_empty());
}

#[test]
fn building_and_explaining_execute_nothing() {
    let card = "---
name: a
shell: true
function_tools: ['tool.py:f']
lifecycle_hooks: { on_start: log.py:start }
hooks: [{ on: on_start, run: [touch, ran] }]
---
x
";
    // An interpreter that would be noticed.
    let python = "#!/bin/sh\ntouch \"$(dirname \"$0\")/../../ran\"\n";
    let project = Project::new([
        ("a.md", card),
        ("tool.py", "open('ran', 'w')\ndef f(x: str) -> str:\n    \"\"\"F.\"\"\"\n    return x\n"),
        (".venv/bin/python", python),
    ]);
    let team = project.team();
    team.explain("a").expect("it is there");
    project.builder().inspect();
    drop(team);
    assert!(!project.path().join("ran").exists());
    assert!(project.log().is_empty());
}
