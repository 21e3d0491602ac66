//! `tenure runs`, `show`, `tail` and `events`.

use super::{RESUME, RUN, clerk, done, rows, signed, start, until, waiting};
use crate::support::{Ran, Sandbox};
use std::io::Read as _;

#[test]
fn runs_are_listed_with_where_they_stand_and_what_came_of_them() {
    let (sandbox, ask) = waiting();
    let ran = sandbox.run(&["runs"]).exits(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{ran}");
    assert!(lines[0].starts_with("Run ") && lines[0].contains("Status"), "{ran}");
    assert!(lines[1].contains("clerk") && lines[1].contains("waits: 1 ask"), "{ran}");
    assert!(lines[1].ends_with(" go"), "what it was asked: {ran}");
    sandbox.run(&["answer", &ask, "approve"]).exits(0);
    sandbox.run(&["runs"]).exits(0).prints(" answered ");
    sandbox
        .run(&["show", "last"])
        .exits(0)
        .prints("answered · nobody drives it")
        .prints("--resume");
    sandbox.run(RESUME).exits(0);
    let ran = sandbox.run(&["runs"]).exits(0).prints("go → the end: written").prints(" ok ");
    let id = ran.stdout.lines().nth(1).and_then(|line| line.split(' ').next());
    // The short id that is shown is enough everywhere.
    sandbox.run(&["show", id.expect("an id")]).exits(0).prints("the end: written");
    let none = sandbox.run(&["runs", "--status", "unfinished"]).exits(0);
    assert_eq!((&*none.stdout, &*none.stderr), ("", "no run fits\n"));
    let lines = sandbox.run(&["runs", "--json", "--status", "ended"]).exits(0).json_lines();
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["outcome"], &lines[0]["lives"]), (&"ok".into(), &2.into()));
    assert!(lines[0]["started"].as_str().is_some_and(|time| time.ends_with('Z')), "{lines:?}");
}

#[test]
fn what_is_said_of_a_question_and_of_a_file_fits_its_terminal() {
    let sandbox = clerk();
    let (name, prompt) = ("clerk_of_the_second_floor".repeat(3), "Write this note? ".repeat(9));
    sandbox.write(
        "clerk.md",
        &sandbox.read("clerk.md").replace("name: clerk", &format!("name: {name}")),
    );
    sandbox.write("hooks.py", &sandbox.read("hooks.py").replace("Write this note?", prompt.trim()));
    let file = format!("{}/{}.db", "folder".repeat(5), "runs".repeat(8));
    let of_file = ["--store", &file];
    sandbox.run(&[RUN, &of_file].concat()).exits(7);
    let copy = format!("{}.db", "copy".repeat(12));
    for args in [
        &["runs"][..],
        &["show", "last"],
        &["db", "verify"],
        &["db", "backup", &copy],
        &["db", "rotate-key"],
        &["db", "compact", "--keep", "1"],
    ] {
        let output = sandbox.command(&[args, &of_file].concat()).env("COLUMNS", "80").output();
        let ran = Ran::of(output.expect("it runs")).exits(0);
        for line in ran.stdout.lines().chain(ran.stderr.lines()) {
            assert!(line.chars().count() <= 80, "{args:?}: {line}\n{ran}");
        }
    }
}

#[test]
fn a_table_fits_its_terminal() {
    let sandbox = done();
    let long = "x".repeat(300);
    sandbox.run(&["run", "clerk.md", "-m", &long, "--trust", "-q"]).exits(7);
    for columns in ["80", "120"] {
        for args in [&["runs"][..], &["show", "last"], &["events", "last"]] {
            let output = sandbox.command(args).env("COLUMNS", columns).output().expect("it runs");
            let ran = Ran::of(output).exits(0);
            let most: usize = columns.parse().expect("a number");
            // What the run itself said is never cut.
            let drawn = ran.stdout.lines().filter(|line| !line.starts_with("  answer with"));
            for line in drawn {
                assert!(line.chars().count() <= most, "{columns}: {line}\n{ran}");
            }
        }
    }
}

#[test]
fn each_call_is_shown_with_its_own_arguments_and_result() {
    let pays = r#"[{"call": "pay", "with": {"to": "{input}"}}, "paid {input}"]"#;
    let asks = r#"[{"calls": [{"call": "pay", "with": {"to": "ada"}}, {"call": "pay", "with": {"to": "bob"}}]},
        {"calls": [{"call": "agent__c", "with": {"message": "eve"}}, {"call": "agent__c", "with": {"message": "joe"}}]}, "done"]"#;
    let tool = "import asyncio\nasync def pay(to: str) -> str:\n    \
        await asyncio.sleep(0.2 if to in ('ada', 'eve') else 0.1)\n    return f'to {to}'\n";
    let sandbox = Sandbox::with(&[
        ("tenure.toml", ""),
        (
            "a.md",
            "---\ndefault: true\nagents: [c]\nmodel: script:a.json\nfunction_tools: [t.py:pay]\n---\nx\n",
        ),
        ("c.md", "---\nmodel: script:c.json\nfunction_tools: [t.py:pay]\n---\nx\n"),
        ("a.json", asks),
        ("c.json", pays),
        ("t.py", tool),
    ]);
    sandbox.run(&["run", ".", "-m", "x", "--trust", "-q"]).exits(0);
    let ran = sandbox.run(&["show", "last"]).exits(0);
    let export = sandbox.run(&["export", "last", "--format", "markdown"]).exits(0).stdout;
    for to in ["ada", "bob", "eve", "joe"] {
        let row = format!(r#"pay {{"to":"{to}"}} → to {to}"#);
        let found = rows(&ran).iter().filter(|shown| shown.contains(&row)).count();
        assert_eq!(found, 1, "{row}\n{ran}");
        let told = export.split("- tool `pay`").filter(|told| told.contains(&format!("to {to}\n")));
        let told: Vec<_> = told.collect();
        assert!(told.len() == 1 && told[0].contains(&format!(r#"{{"to":"{to}"}}"#)), "{export}");
    }
}

#[test]
fn a_run_is_shown_step_by_step_over_its_lives() {
    let sandbox = done();
    let ran = sandbox.run(&["show", "last"]).exits(0);
    let shown = rows(&ran);
    let has = |row: &str| shown.iter().any(|shown| shown.contains(row));
    let told = [
        "life 1 begins",
        "agent clerk",
        "hook on_start hooks.py:start",
        "log hooks.py:start: up",
        "turn clerk",
        "calls write_note",
        "tool write_note {\"text\":\"buy milk\"} set aside",
        &format!("ask \"Write this note?\" approved by {}", signed("ada")),
        "run waits for a person",
        "life 2 goes on",
        "tool write_note {\"text\":\"buy milk\"} → written",
        "\"the end: written\"",
        "hook on_shutdown hooks.py:stop",
        "run is over",
    ];
    for row in told {
        assert!(has(row), "{row:?} is missing\n{ran}");
    }
    let models = shown.iter().filter(|row| row.starts_with("model")).count();
    assert_eq!(models, 2, "what was served from the record is not told twice\n{ran}");
    assert!(!has("phase"), "{ran}");
    let ran = ran.prints("clerk  card · ").prints("2 lives").prints("2 model calls · 1 tool call");
    assert!(ran.stdout.ends_with("  output\n    the end: written\n"), "{ran}");
    let phases = rows(&sandbox.run(&["show", "last", "--phases"]).exits(0));
    let is_there = |row: &&String| row.contains("awaiting_tool_approval");
    assert!(phases.iter().any(|row| is_there(&row)), "{phases:?}");
}

#[test]
fn programs_get_the_same_as_json() {
    let sandbox = done();
    let ran = sandbox.run(&["show", "last", "--json", "--events"]).exits(0);
    let shown: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(shown["run"]["outcome"], "ok");
    let timeline = shown["timeline"].as_array().expect("lines");
    let tool = timeline.iter().find(|line| line["what"] == "tool" && line["outcome"] == "ok");
    let tool = tool.expect("the call that came to something");
    assert_eq!(tool["title"], "write_note");
    let step = tool["step"].as_u64().expect("a step");
    let events = shown["events"].as_array().expect("events");
    let record = events.iter().find(|event| event["seq"] == step).expect("its record");
    assert_eq!(record["type"], "step.recorded");
    assert_eq!(record["step"]["kind"], "tool");
    assert_eq!(record["data"]["value"]["content"], "written");
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64()).collect();
    let all: Vec<_> = (1..=events.len() as u64).map(Some).collect();
    assert_eq!(numbers, all, "there is no gap");
}

#[test]
fn what_clones_did_is_indented() {
    let sandbox = Sandbox::with(&[
        ("tenure.toml", ""),
        (
            "lead.md",
            "---\nname: lead\ndefault: true\nmodel: script:lead.json\nagents: [worker]\n---\nLead.\n",
        ),
        ("worker.md", "---\nname: worker\ntool_only: true\nmodel: passthrough\n---\nWork.\n"),
        (
            "lead.json",
            "[{\"call\": \"agent__worker\", \"with\": {\"message\": \"dig\"}}, \"it is dug\"]",
        ),
    ]);
    sandbox.run(&["run", ".", "-m", "go", "-q"]).exits(0);
    let ran = sandbox.run(&["show", "last"]).exits(0);
    let line = |part: &str| {
        let found = ran.stdout.lines().find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("{part:?} is missing\n{ran}")).to_owned()
    };
    assert!(line("lead · call 1").contains("model  lead"), "{ran}");
    assert!(line("worker#1[tool] · call 1").contains("model    worker"), "{ran}");
    assert!(line("agent    worker#1[tool]").contains("agent    worker"), "{ran}");
}

#[test]
fn records_are_chosen_by_type_and_number() {
    let sandbox = done();
    let steps =
        sandbox.run(&["events", "last", "--type", "step.*", "--json"]).exits(0).json_lines();
    assert!(steps.len() >= 4 && steps.iter().all(|it| it["type"] == "step.recorded"), "{steps:?}");
    let first = steps[0]["seq"].as_u64().expect("a number").to_string();
    let args = ["events", "last", "--after", &first, "--type", "step.recorded", "--json"];
    assert_eq!(sandbox.run(&args).exits(0).json_lines(), steps[1..]);
    let ran = sandbox.run(&["events", "--type", "run.*"]).exits(0);
    let types: Vec<_> = ran.stdout.lines().filter_map(|it| it.split_whitespace().nth(2)).collect();
    assert_eq!(types.first(), Some(&"run.started"), "{ran}");
    assert_eq!(types.last(), Some(&"run.ended"), "{ran}");
}

#[test]
fn a_run_is_followed_until_it_is_over() {
    let sandbox = clerk();
    sandbox.write("clerk.json", "[{\"text\": \"slowly done\", \"wait\": \"1500ms\"}]");
    let mut run = start(&sandbox, RUN);
    let has_run =
        || sandbox.run(&["runs", "--json", "--status", "running"]).stdout.contains("clerk");
    until("it never began", has_run);
    let ran = sandbox.run(&["tail", "last"]).exits(0);
    assert!(run.wait().expect("it ends").success());
    let ran = ran.prints("slowly done").prints("is over").says("ok");
    let before = ran.stdout.find("on_start").expect("the start");
    assert!(before < ran.stdout.find("slowly done").expect("the answer"), "{ran}");
    let mut said = String::new();
    run.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert_eq!(said, "slowly done\n", "following changes nothing");
}

#[test]
fn data_cannot_steer_the_terminal() {
    let sandbox = clerk();
    sandbox.write("clerk.json", r#"["a\u001b[2Jb\u001b]0;title\u0007c"]"#);
    sandbox.run(&["run", "clerk.md", "-m", "\u{1b}[31mred", "--trust", "-q"]).exits(0);
    for args in [&["runs"][..], &["show", "last"], &["events", "last"], &["tail", "last"]] {
        let ran = sandbox.run(args).exits(0);
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'), "{args:?} {ran}");
    }
}

#[test]
fn a_place_without_records_says_so_and_what_to_do() {
    let sandbox = clerk();
    let ran = sandbox.run(&["runs"]).exits(1).says("no runs are recorded here");
    let ran = ran.says(".tenure/tenure.db").says("--store FILE");
    assert_eq!(ran.stdout, "");
    sandbox.run(&["runs", "--store", "gone.db"]).exits(2).says("there is no `gone.db`");
    sandbox.run(&["runs", "-C", "gone"]).exits(2).says("there is no `gone`");
    sandbox.run(RUN).exits(7);
    sandbox.run(&["show", "ffff"]).exits(1).says("there is no run `ffff`");
    let folder = sandbox.path("deeper");
    std::fs::create_dir(&folder).expect("a folder");
    let output = sandbox.command(&["runs"]).current_dir(&folder).output().expect("it runs");
    Ran::of(output).exits(0).prints("clerk");
    let project = sandbox.project().to_string_lossy().into_owned();
    let mut elsewhere = sandbox.command(&["runs", "-C", &project]);
    Ran::of(elsewhere.current_dir("/").output().expect("it runs")).exits(0).prints("clerk");
}
