//! Which tools may be called.

use crate::guard::support::*;
use crate::support::{refusal, refused};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::hook::{self, IntoRegistration};
use tenure_core::message::ToolStatus::{Denied, Ok as Done};
use tenure_core::{Outcome, step::MemoryStepLog};
use tenure_hooks::guard::{Condition, Permissions};
use tenure_hooks::ready::{self, Bench};
use tenure_models::Script;

fn one_call(tool: &str, with: Value) -> Value {
    json!([{ "call": tool, "with": with }, "end"])
}

/// Whether a call of `shell` with these arguments gets through.
async fn passes(permissions: Permissions, with: Value) -> bool {
    let seen = Seen::default();
    let turn = run(scripted(&seen, one_call("shell", with)).with_lifecycle(permissions)).await;
    let passed = statuses(&turn) == [Done];
    assert_eq!(seen.count(), usize::from(passed));
    passed
}

#[tokio::test]
async fn what_no_rule_allows_is_not_called_and_the_model_reads_why() {
    let seen = Seen::default();
    let permissions = Permissions::new().allow("read_*").deny("shell").why("no commands here");
    let replies = json!([
        { "calls": [{ "call": "shell" }, { "call": "read_file" }, { "call": "search" }] },
        "end"
    ]);
    let turn = run(scripted(&seen, replies).with_lifecycle(permissions)).await;
    assert_eq!(seen.all().len(), 1);
    assert_eq!(seen.of("read_file"), 1);
    let told = results(&turn);
    assert_eq!(told[0], (Denied, "Tool 'shell' not authorized: no commands here".to_owned()));
    assert_eq!(told[2].1, "Tool 'search' not authorized: no rule allows this call");
    assert_eq!(turn.unwrap().output(), "end");
}

#[tokio::test]
async fn the_first_rule_about_a_call_counts() {
    let rules = || {
        Permissions::new()
            .deny("shell")
            .where_("command", Condition::glob(["rm *", "sudo **"]))
            .allow("shell")
            .where_("command", Condition::glob(["**"]))
    };
    assert!(passes(rules(), json!({ "command": "ls -l" })).await);
    assert!(!passes(rules(), json!({ "command": "rm x" })).await);
    assert!(!passes(rules(), json!({ "command": "sudo rm /x" })).await);
}

#[tokio::test]
async fn arguments_are_judged_by_their_place() {
    let nested =
        || Permissions::new().allow("shell").where_("options.mode", Condition::one_of(["r"]));
    assert!(passes(nested(), json!({ "options": { "mode": "r" } })).await);
    assert!(!passes(nested(), json!({ "options": { "mode": "w" } })).await);
    assert!(!passes(nested(), json!({ "options": "r" })).await);
    assert!(!passes(nested(), json!({ "options.mode": "r" })).await);
    let pointer = || Permissions::new().allow("shell").where_("/a.b/0", Condition::one_of([1]));
    assert!(passes(pointer(), json!({ "a.b": [1] })).await);
    let each = || Permissions::new().allow("shell").where_("files.*", Condition::glob(["*.txt"]));
    assert!(passes(each(), json!({ "files": ["a.txt", "b.txt"] })).await);
    assert!(!passes(each(), json!({ "files": ["a.txt", "b.sh"] })).await);
    assert!(!passes(each(), json!({ "files": [] })).await);
    let any = || {
        let bad = Condition::glob(["*.sh"]);
        Permissions::new().deny("shell").where_("files.*", bad).allow("shell")
    };
    assert!(!passes(any(), json!({ "files": ["a.txt", "b.sh"] })).await);
    assert!(passes(any(), json!({ "files": ["a.txt"] })).await);
}

#[tokio::test]
async fn a_missing_or_odd_argument_is_never_allowed() {
    let text =
        || Permissions::new().allow("shell").where_("command", Condition::pattern("ls( .*)?"));
    assert!(passes(text(), json!({ "command": "ls -l" })).await);
    assert!(!passes(text(), json!({ "command": "ls -l\nrm x" })).await);
    assert!(!passes(text(), json!({ "command": "also" })).await);
    for odd in [json!({}), json!({ "command": null }), json!({ "command": ["ls"] })] {
        assert!(!passes(text(), odd.clone()).await, "{odd}");
    }
    // An odd argument denies even where a later rule would allow everything.
    let lenient = || text().allow("shell").allow_others();
    assert!(!passes(lenient(), json!({ "command": 3 })).await);
    assert!(passes(lenient(), json!({})).await);
    let number = || {
        let small = Condition::min(1.0).and(Condition::max(10.0));
        Permissions::new().allow("shell").where_("n", small)
    };
    assert!(passes(number(), json!({ "n": 10 })).await);
    assert!(!passes(number(), json!({ "n": 10.5 })).await);
    assert!(!passes(number(), json!({ "n": "5" })).await);
}

#[tokio::test]
async fn rules_that_cannot_be_read_allow_nothing() {
    let broken = Permissions::new().allow("shell").where_("x", Condition::pattern("(")).allow("*");
    assert!(!passes(broken.allow_others(), json!({ "x": "(" })).await);
    let too_early = Permissions::new().where_("x", Condition::max(1.0)).allow("*");
    assert!(!passes(too_early, json!({})).await);
}

#[tokio::test]
async fn what_other_hooks_make_of_the_arguments_is_what_is_judged() {
    let seen = Seen::default();
    let meddler = hook::wrap_tool_call(|_cx, request, next| {
        Box::pin(async move {
            request.arguments["command"] = json!("rm -rf /");
            Ok(next.call(request).await?)
        })
    });
    let permissions =
        Permissions::new().allow("shell").where_("command", Condition::one_of(["ls"]));
    let builder = scripted(&seen, one_call("shell", json!({ "command": "ls" })))
        .with_lifecycle(permissions)
        .with_lifecycle(meddler);
    assert_eq!(statuses(&run(builder).await), [Denied]);
    assert_eq!(seen.count(), 0);
}

#[tokio::test]
async fn a_denied_call_ends_the_turn_where_that_is_asked_for() {
    let seen = Seen::default();
    let permissions = Permissions::new().allow("search").ends_turn();
    let replies = json!([{ "calls": [{ "call": "shell" }, { "call": "search" }] }, "end"]);
    let builder = scripted(&seen, replies).without_history().with_lifecycle(permissions);
    let agent = builder.build().unwrap();
    agent.startup().await.unwrap();
    for _ in 0..2 {
        let turn = agent.run("go").await;
        assert_eq!(outcome(&turn), Outcome::Denied);
        assert_eq!(statuses(&turn), [Denied, Done], "the other call is answered all the same");
        let error = turn.unwrap_err().to_string();
        assert!(error.starts_with("Tool 'shell' not authorized"), "{error}");
    }
    assert_eq!(seen.of("search"), 2);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_guard_that_panics_or_hangs_denies() {
    let panics = Permissions::new().allow("shell").where_("x", Condition::check(|_| panic!("oh")));
    assert!(!passes(panics, json!({ "x": 1 })).await);
    let seen = Seen::default();
    let slow = Condition::check(|_| {
        std::thread::sleep(Duration::from_millis(400));
        true
    });
    // A look at the file system leaves the thread, so that it can be given up.
    let slow = slow.and(Condition::beneath("."));
    let hangs = Permissions::new().allow("shell").where_("x", slow).into_registration();
    let hangs = hangs.limit(Duration::from_millis(50));
    let turn = run(scripted(&seen, one_call("shell", json!({ "x": "y" }))).with_lifecycle(hangs));
    let told = results(&turn.await);
    assert_eq!((told[0].0, seen.count()), (Denied, 0));
    assert!(told[0].1.contains("timed out"), "{}", told[0].1);
}

#[tokio::test]
async fn a_person_is_asked_and_what_they_edit_is_judged_again() {
    let answers = [
        (Answer::Approve, 1, "ls"),
        (Answer::Reject("not now".to_owned()), 0, ""),
        (Answer::Edit(json!({ "command": "pwd" })), 1, "pwd"),
        (Answer::Edit(json!({ "command": "rm x" })), 0, ""),
        (Answer::Edit(json!("rm x")), 0, ""),
    ];
    for (answer, count, command) in answers {
        let seen = Seen::default();
        let permissions = Permissions::new()
            .deny("shell")
            .where_("command", Condition::glob(["rm *"]))
            .ask("shell");
        let said = answer.clone();
        let builder = scripted(&seen, one_call("shell", json!({ "command": "ls" })))
            .with_lifecycle(permissions)
            .on_ask(move |_: &PendingAsk| Some(said.clone()));
        run(builder).await.unwrap();
        assert_eq!(seen.count(), count, "{answer:?}");
        if count == 1 {
            assert_eq!(seen.all()[0].1["command"], command);
        }
    }
    let seen = Seen::default();
    let alone = Permissions::new().ask("shell");
    let turn = run(scripted(&seen, one_call("shell", json!({}))).with_lifecycle(alone)).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Denied], 0), "nobody can be asked");
}

#[tokio::test]
async fn permissions_come_along_to_clones() {
    let seen = Seen::default();
    let child = Agent::builder("child")
        .model(Script::from_json(&json!([{ "call": "shell" }, "child: {result}"])).unwrap())
        .tool(seen.tool("shell"))
        .blueprint()
        .unwrap();
    let parent = Agent::builder("parent")
        .model(
            Script::from_json(&json!([
                { "call": "agent__child", "with": { "message": "go" } },
                "{result}"
            ]))
            .unwrap(),
        )
        .agent_tool(&child)
        .with_lifecycle(Permissions::new().allow("agent__child"));
    let output = run(parent).await.unwrap().output().to_owned();
    assert!(output.contains("Tool 'shell' not authorized"), "{output}");
    assert_eq!(seen.count(), 0);
}

#[tokio::test]
async fn a_path_that_was_denied_stays_denied_when_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    let agent = |seen: &Seen| {
        let beneath = Condition::beneath_from(&inside, folder.path());
        let permissions = Permissions::new().allow("read_file").where_("path", beneath);
        let replies = one_call("read_file", json!({ "path": "inside/a" }));
        scripted(seen, replies).with_lifecycle(permissions)
    };
    let (log, seen) = (MemoryStepLog::new(), Seen::default());
    let turn = recorded(agent(&seen), &log).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Denied], 0), "there is no such folder");
    std::fs::create_dir(&inside).unwrap();
    let died = died_after(&log, "step", "judged");
    let turn = recorded(agent(&seen), &died).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Denied], 0));

    // What was allowed, and not yet done, is looked at again.
    let (log, seen) = (MemoryStepLog::new(), Seen::default());
    assert_eq!(statuses(&recorded(agent(&seen), &log).await), [Done]);
    let died = died_after(&log, "step", "judged");
    std::fs::remove_dir(&inside).unwrap();
    let turn = recorded(agent(&seen), &died).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Denied], 1), "it is not there any more");
}

#[tokio::test]
async fn options_make_the_same_rules() {
    let seen = Seen::default();
    let with = json!({
        "rules": [
            { "deny": "shell", "where": { "command": { "glob": ["rm *"] } }, "why": "no" },
            { "allow": "shell", "where": { "command": { "max_length": 20 } } },
        ],
        "on_denied": "end",
    });
    let made = ready::find("permissions").unwrap().make(&with, &Bench::new()).unwrap();
    assert!(made.is_guard() && made.is_innermost());
    let turn =
        run(scripted(&seen, one_call("shell", json!({ "command": "rm x" }))).with_lifecycle(made));
    assert_eq!(turn.await.unwrap_err().to_string(), "Tool 'shell' not authorized: no");
}

#[test]
fn options_are_checked() {
    let field = |with| refused("permissions", with);
    assert_eq!(field(json!({})), "rules");
    assert_eq!(field(json!({ "rules": [{}] })), "rules[0]");
    assert_eq!(field(json!({ "rules": [{ "allow": "a", "deny": "b" }] })), "rules[0]");
    assert_eq!(field(json!({ "rules": [{ "allow": "" }] })), "rules[0]");
    let rule = |condition| json!({ "rules": [{ "allow": "a", "where": { "x": condition } }] });
    assert_eq!(field(rule(json!({}))), "rules[0].where.x");
    assert_eq!(field(rule(json!({ "pattern": "(" }))), "rules[0].where.x");
    assert_eq!(field(rule(json!({ "beneath": "../up" }))), "rules[0].where.x.beneath");
    assert_eq!(field(rule(json!({ "relative_to": "a" }))), "rules[0].where.x.relative_to");
    assert_eq!(field(rule(json!({ "maximum": 3 }))), "rules[0].where.x.maximum");
    assert_eq!(field(json!({ "default": "perhaps" })), "default");
}

#[tokio::test]
async fn numbers_are_compared_by_what_they_are() {
    let deny = || {
        let none = Condition::one_of([json!(0), json!({ "n": [1] })]);
        Permissions::new().deny("shell").where_("level", none).allow("shell")
    };
    for level in [json!(0), json!(0.0), json!(-0.0), json!({ "n": [1.0] })] {
        assert!(!passes(deny(), json!({ "level": level })).await, "{level}");
    }
    assert!(passes(deny(), json!({ "level": 1 })).await, "another number is no match");
    assert!(!passes(deny(), json!({ "level": "0" })).await, "a text is odd");
    let large = || {
        let one = Condition::one_of([u64::MAX]);
        Permissions::new().allow("shell").where_("n", one)
    };
    assert!(passes(large(), json!({ "n": u64::MAX })).await);
    assert!(!passes(large(), json!({ "n": u64::MAX - 1 })).await);
}

#[tokio::test]
async fn a_value_of_another_shape_than_the_place_speaks_of_is_denied() {
    let deny = |place: &str| {
        let secret = Condition::glob(["secret*"]);
        Permissions::new().deny("shell").where_(place, secret).allow("shell")
    };
    for with in [json!("secret.txt"), json!(7), json!(true), json!(null)] {
        assert!(!passes(deny("f.*"), json!({ "f": with })).await, "{with}");
        assert!(!passes(deny("f.path"), json!({ "f": with })).await, "{with}");
    }
    assert!(!passes(deny("f.path"), json!({ "f": [{ "path": "secret" }] })).await);
    assert!(passes(deny("f.*"), json!({ "f": ["open.txt"] })).await);
    assert!(passes(deny("f.*"), json!({})).await, "what is missing is not odd");
}

#[tokio::test]
async fn what_only_some_items_have_allows_nothing() {
    let allow = || Permissions::new().allow("shell").where_("g.*.path", Condition::glob(["*.txt"]));
    assert!(passes(allow(), json!({ "g": [{ "path": "a.txt" }, { "path": "b.txt" }] })).await);
    assert!(!passes(allow(), json!({ "g": [{ "path": "a.txt" }, { "file": "secret" }] })).await);
    assert!(!passes(allow(), json!({ "g": [{ "path": "a.txt" }, "secret"] })).await);
}

#[tokio::test]
async fn a_pattern_stands_by_itself() {
    let with = |pattern| json!({ "rules": [{ "allow": "shell", "where": { "command": { "pattern": pattern } } }] });
    let refusal = refusal("permissions", with("ls)|(?:pwd"));
    assert_eq!(refusal.field(), "rules[0].where.command");
    let either =
        || Permissions::new().allow("shell").where_("command", Condition::pattern("ls|pwd"));
    assert!(passes(either(), json!({ "command": "pwd" })).await);
    assert!(!passes(either(), json!({ "command": "ls; rm" })).await);
}

#[tokio::test]
async fn a_pattern_of_paths_refuses_what_goes_up() {
    let glob = || Permissions::new().allow("shell").where_("path", Condition::glob(["data/**"]));
    let regex = || Permissions::new().allow("shell").where_("path", Condition::pattern("data/.*"));
    for path in ["data/../secret", "data/a/..", "data/a ../b", "data/..\\b"] {
        assert!(!passes(glob(), json!({ "path": path })).await, "{path}");
        assert!(!passes(regex(), json!({ "path": path })).await, "{path}");
    }
    assert!(passes(glob(), json!({ "path": "data/a..b" })).await);
    assert!(passes(regex(), json!({ "path": "data/...x" })).await);
    let seen = Seen::default();
    let replies = one_call("shell", json!({ "path": "data/../x" }));
    let told = results(&run(scripted(&seen, replies).with_lifecycle(glob())).await);
    assert!(told[0].1.contains("judge paths with `beneath`"), "{}", told[0].1);
}
