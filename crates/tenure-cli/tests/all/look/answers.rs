//! `tenure asks` and `tenure answer`.

use super::{RESUME, signed, waiting};
use crate::support::Sandbox;

#[test]
fn what_waits_is_listed_with_the_exact_action() {
    let (sandbox, ask) = waiting();
    let ran = sandbox.run(&["asks"]).exits(0).prints(&ask).prints("clerk asks for approval");
    let ran = ran.prints("Write this note?").prints("write_note {\"text\":\"buy milk\"}");
    ran.says("tenure answer ID");
    sandbox.run(&["answer", &ask, "reject", "too", "dear", "--by", "ada"]).exits(0);
    let none = sandbox.run(&["asks"]).exits(0);
    assert_eq!((&*none.stdout, &*none.stderr), ("", "nothing waits for an answer\n"));
    sandbox
        .run(&["asks", "--all"])
        .exits(0)
        .prints(&format!("rejected (\"too dear\") by {}", signed("ada")));
    assert_eq!(sandbox.run(RESUME).exits(0).stdout, "the end: too dear\n");
}

#[test]
fn a_long_question_is_told_in_lines_of_its_own() {
    let sandbox = super::clerk();
    let long = format!("'{}and that is all?'", "a question of many words ".repeat(8));
    sandbox.write("hooks.py", &super::HOOKS.replace("'Write this note?'", &long));
    sandbox.run(super::RUN).exits(7);
    let ran = sandbox.run(&["asks"]).exits(0).prints("clerk asks for approval: a question of");
    let ran = ran.prints("and that is all?\n");
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{ran}");
    sandbox.write("hooks.py", &super::HOOKS.replace("'Write this note?'", "'word ' * 300"));
    sandbox.run(super::RUN).exits(7);
    let ran = sandbox.run(&["asks"]).exits(0).prints(" …\n");
    assert_eq!(ran.stdout.lines().filter(|line| line.contains("word word")).count(), 6, "{ran}");
}

#[test]
fn the_first_answer_counts_and_the_second_is_told() {
    let (sandbox, ask) = waiting();
    let short = &ask[..6];
    let ran = sandbox.run(&["answer", short, "approve", "--by", "ada"]).exits(0);
    ran.prints("accepted: approved").says("tenure run --resume");
    let ran = sandbox.run(&["answer", short, "reject"]).exits(1);
    ran.says(&format!("already decided: it was approved by {}, ", signed("ada")));
    let lines = sandbox.run(&["answer", &ask, "reject", "--json"]).exits(1).json_lines();
    assert_eq!(lines[0]["result"], "already_decided");
    assert_eq!(lines[0]["answer"]["decision"], "approve");
    assert_eq!(sandbox.run(RESUME).exits(0).stdout, "the end: written\n");
}

#[test]
fn an_answer_that_is_none_is_refused_and_the_question_stays() {
    let (sandbox, ask) = waiting();
    let ran = sandbox.run(&["answer", "ffff", "approve"]).exits(1);
    ran.says("there is no question `ffff`").says(&ask);
    sandbox.run(&["answer", &ask, "maybe"]).exits(2).says("approve, edit, reject or respond");
    sandbox.run(&["answer", &ask, "edit"]).exits(2).says("needs what to do instead");
    sandbox.run(&["answer", &ask, "edit", "{nonsense"]).exits(2).says("`{nonsense` is not JSON");
    sandbox.run(&["answer", &ask, "approve", "it"]).exits(2).says("has nothing behind it");
    let ran = sandbox.run(&["answer", &ask, "edit", "{\"text\": 3}"]).exits(1);
    ran.says("does not fit").says("`text`").says("stays open");
    sandbox.run(&["answer", &ask]).exits(2).says("there is no terminal to ask on");
    sandbox.run(&["answer", &ask, "edit", "{\"text\": \"buy oats\"}"]).exits(0);
    sandbox.run(RESUME).exits(0);
    assert_eq!(sandbox.read("note.txt"), "buy oats\n");
}

#[test]
fn a_decision_that_the_question_does_not_allow_is_refused() {
    let card = super::CARD.replace(
        "  - { on: wrap_tool_call, run: hooks.py:approve, policy: deny }\n",
        "  - { use: approval, with: { tools: { write_note: { allowed_decisions: [approve, reject] } } } }\n",
    );
    let sandbox = super::clerk();
    sandbox.write("clerk.md", &card);
    let ran = sandbox.run(super::RUN).exits(7).says(" approve   (or: reject)\n");
    assert!(!ran.stderr.contains("respond") && !ran.stderr.contains("edit"), "{ran}");
    sandbox.run(&["asks"]).exits(0).prints("  decide: approve or reject\n");
    let asks = sandbox.run(&["asks", "--json"]).exits(0).json_lines();
    let id = asks[0]["id"].as_str().expect("an id");
    let ran = sandbox.run(&["answer", id, "respond", "x"]).exits(1);
    ran.says("`respond` is not allowed here; allowed: approve or reject").says("stays open");
    let lines = sandbox.run(&["answer", id, "edit", "{}", "--json"]).exits(1).json_lines();
    assert_eq!(lines[0]["result"], "unfit");
    sandbox.run(&["answer", id, "maybe"]).exits(2).says("asks for one: approve or reject");
    sandbox.run(&["answer", id]).exits(2).says("behind the id: approve or reject");
    sandbox.run(&["answer", id, "approve"]).exits(0);
    assert_eq!(sandbox.run(RESUME).exits(0).stdout, "the end: written\n");
}

#[test]
fn only_what_is_allowed_is_offered() {
    for (allowed, offered, decide) in [
        ("[approve, edit, reject]", " approve   (or: reject, edit)\n", "approve, edit or reject"),
        ("[reject]", " reject\n", "reject"),
        ("[respond, edit]", " edit JSON   (or: respond)\n", "edit or respond"),
        ("[respond]", " respond TEXT\n", "respond"),
    ] {
        let rule = format!("write_note: {{ allowed_decisions: {allowed} }}");
        let card = super::CARD.replace(
            "  - { on: wrap_tool_call, run: hooks.py:approve, policy: deny }\n",
            &format!("  - {{ use: approval, with: {{ tools: {{ {rule} }} }} }}\n"),
        );
        let sandbox = super::clerk();
        sandbox.write("clerk.md", &card);
        sandbox.run(super::RUN).exits(7).says(offered);
        sandbox.run(&["asks"]).exits(0).prints(&format!("  decide: {decide}\n"));
    }
    let (sandbox, ask) = waiting();
    let ran = sandbox.run(RESUME).exits(7);
    ran.says(&format!("tenure answer {ask} approve   (or: reject, edit, respond)\n"));
}

#[test]
fn without_a_record_a_question_that_nobody_can_be_asked_is_a_denial() {
    let card = super::CARD.replace(
        "  - { on: wrap_tool_call, run: hooks.py:approve, policy: deny }\n",
        "  - { use: approval, with: { tools: { write_note: {} } } }\n",
    );
    let sandbox = super::clerk();
    sandbox.write("clerk.md", &card);
    // The model reads that the call was not made, and goes on without it; but whoever looks at the
    // code must not think that all went well.
    let run = ["run", "clerk.md", "-m", "go", "--trust", "--no-store"];
    let ran = sandbox.run(&run).exits(5);
    let ran = ran.says("there is no terminal to answer on").says("`--yes write_note`");
    assert!(ran.stdout.contains("there is no terminal to ask a person on"), "{ran}");
    assert!(!sandbox.path("note.txt").exists(), "nothing was written");
    let lines = sandbox.run(&[&run[..], &["--json"]].concat()).exits(5).json_lines();
    let result = lines.last().expect("a result");
    assert_eq!((&result["type"], &result["exit_code"]), (&"result".into(), &5.into()), "{result}");
    assert!(result["error"].as_str().is_some_and(|it| it.contains("no terminal")), "{result}");
    // What was approved in advance needs nobody to be there.
    let ran = sandbox.run(&[&run[..], &["--yes", "write_note"]].concat()).exits(0);
    assert!(sandbox.path("note.txt").exists(), "{ran}");
}

#[test]
fn on_a_terminal_the_question_is_put_as_in_a_run() {
    let (sandbox, ask) = waiting();
    let talk = [("the call of ", "= "), ("buy milk", "= "), ("[a]pprove", "a")];
    let shown = sandbox.on_terminal(&["answer", &ask], &talk).exits(0);
    assert!(shown.stdout.contains("approved"), "{shown}");
    assert_eq!(sandbox.run(RESUME).exits(0).stdout, "the end: written\n");
}

#[test]
fn whoever_is_asked_is_told_that_somebody_else_was_first() {
    let (sandbox, ask) = waiting();
    let elsewhere = format!(
        "$ {} answer {ask} approve --by ada --store {}",
        env!("CARGO_BIN_EXE_tenure"),
        sandbox.path(".tenure/tenure.db").display()
    );
    let talk = [("[a]pprove", elsewhere.as_str()), ("no longer open", "= ")];
    let shown = sandbox.on_terminal(&["answer", &ask], &talk).exits(1);
    let by = format!("it was approved by {}", signed("ada"));
    assert!(shown.stdout.contains(&by), "{shown}");
}

#[test]
fn a_text_is_answered_without_a_decision() {
    let hooks = "async def where(ctx):\n    answer = await ctx.ask('Which city?', schema={'type': 'string', 'minLength': 3})\n    return {'finish': answer.value}\n";
    let card = "---\nname: guide\nmodel: passthrough\nhooks:\n  - { on: before_agent, run: hooks.py:where, policy: deny }\n---\nx\n";
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("guide.md", card), ("hooks.py", hooks)]);
    sandbox.run(&["run", "guide.md", "-m", "go", "--trust", "-q"]).exits(7);
    let asks = sandbox.run(&["asks", "--json"]).exits(0).json_lines();
    let id = asks[0]["id"].as_str().expect("an id");
    sandbox.run(&["answer", id, "Ur"]).exits(1).says("at least 3 characters");
    sandbox.run(&["answer", id, "New", "York"]).exits(0).prints("answered (\"New York\")");
    assert_eq!(sandbox.run(RESUME).exits(0).stdout, "New York\n");
}
