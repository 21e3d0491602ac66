//! Where runs are recorded, where not, and what is never written.

use super::{clerk, counter, kill, only_run, runs, start, times, until};
use crate::support::{Ran, Sandbox};
use std::path::Path;

const CARD: &str = "---\nname: a\nmodel: passthrough\n---\nx\n";
const RUN: &[&str] = &["run", "a.md", "-m", "hi", "-q"];

#[test]
fn without_a_project_nothing_is_recorded() {
    let sandbox = Sandbox::with(&[("a.md", CARD)]);
    sandbox.run(RUN).exits(0);
    assert!(!sandbox.path(".tenure").exists());
    let ran = sandbox.run(&["run", "--resume"]).exits(2).says("nothing is on record here");
    ran.says("--store");
    let ran = sandbox.run(&["run", "a.md", "--continue", "-m", "hi"]).exits(2);
    ran.says("there are no records here");
}

#[test]
fn a_project_records_unless_it_or_the_command_says_otherwise() {
    let sandbox = Sandbox::with(&[("a.md", CARD), ("tenure.toml", "[store]\nrecord = false\n")]);
    sandbox.run(RUN).exits(0);
    sandbox.write("tenure.toml", "");
    sandbox.run(&[RUN, &["--no-store"]].concat()).exits(0);
    assert!(!sandbox.path(".tenure").exists());
    sandbox.run(RUN).exits(0);
    assert_eq!(sandbox.read(".tenure/.gitignore"), "*\n");
    assert_eq!(runs(&sandbox).len(), 1);
    sandbox.write("tenure.toml", "[store]\npath = \"kept/here.db\"\n");
    sandbox.run(RUN).exits(0);
    assert!(sandbox.path("kept/here.db").exists());
    assert_eq!(runs(&sandbox).len(), 1);
}

#[test]
fn a_file_can_be_named_anywhere() {
    let sandbox = clerk("");
    let file = sandbox.home().join("elsewhere.db").to_string_lossy().into_owned();
    let args = ["run", "clerk.md", "-m", "go", "--trust", "-q", "--store", &file];
    let ran = sandbox.run(&args).exits(7);
    assert!(!sandbox.path(".tenure").exists(), "{ran}");
    let ran = ran.says(&format!("approve --store {file}"));
    let ran = ran.says("tenure run --resume").says(&format!(" --store {file}"));
    let ask = tenure_store::Store::open_existing_with(&file, &super::keys(&sandbox));
    let ask = ask.expect("it is there");
    let ask = ask.asks(&tenure_store::AskQuery::open()).expect("its questions").remove(0).id;
    sandbox.run(&["answer", &ask, "approve", "--store", &file]).exits(0);
    let resumed = sandbox.run(&["run", "--resume", "--trust", "-q", "--store", &file]).exits(0);
    assert_eq!(resumed.stdout, "the end: written\n", "{ran}");
}

#[test]
fn one_process_at_a_time_drives_and_the_other_is_told_what_to_do() {
    let sandbox = counter("");
    let child = start(&sandbox, &["run", "counter.md", "-m", "go", "--trust", "-q"]);
    until("it never began", || times(&sandbox, "effects.txt", "begin 1") > 0);
    let again = ["run", "counter.md", "-m", "go", "--trust", "-q"];
    let ran = sandbox.run(&again).exits(1);
    let ran = ran.says(&format!("process {}", child.id())).says("tenure run counter.md");
    ran.says("--store FILE").says("--no-store").says("wait:");
    let beside = sandbox.home().join("beside.db").to_string_lossy().into_owned();
    sandbox.run(&[&again[..], &["--store", &beside]].concat()).exits(0);
    let first = Ran::of(child.wait_with_output().expect("it ends")).exits(0);
    assert!(first.stdout.contains("counted 5"), "{first}");
    // The right is gone with its process, however that ends.
    let child = start(&sandbox, &again);
    until("it never began", || times(&sandbox, "effects.txt", "begin 1") > 2);
    kill(child);
    sandbox.run(&["run", "--resume", "--trust", "-q"]).exits(0);
}

const KEY: &str = "sk-live-0123456789abcdef";

/// Everything in a folder, byte for byte.
fn bytes(folder: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(folder).expect("the folder").filter_map(Result::ok);
    files.flat_map(|file| std::fs::read(file.path()).unwrap_or_default()).collect()
}

#[test]
fn secrets_are_not_in_the_file() {
    let hooks = "import os
KEY = os.environ['SERVICE_API_KEY']


def tool() -> str:
    \"\"\"Tells.\"\"\"
    print('printed ' + KEY)
    return 'the tool knows ' + KEY


def end(ctx):
    return {'output': 'the answer is ' + KEY}


async def ask(ctx, next):
    await ctx.ask('May I use ' + KEY + '?', action={'key': KEY})
    return await next()
";
    let card = "---\nname: a\nmodel: script:a.json\nfunction_tools: hooks.py:tool\nhooks:\n  - { on: wrap_tool_call, run: hooks.py:ask }\n  - { on: after_agent, run: hooks.py:end }\n---\nx\n";
    let sandbox = Sandbox::with(&[
        ("tenure.toml", "[hooks]\nenv = [\"SERVICE_API_KEY\"]\n"),
        ("a.md", card),
        ("a.json", "[{\"call\": \"tool\", \"with\": {}}, \"done\"]"),
        ("hooks.py", hooks),
    ]);
    let run = |args: &[&str]| {
        let mut command = sandbox.command(args);
        Ran::of(command.env("SERVICE_API_KEY", KEY).output().expect("the program starts"))
    };
    let hidden = |when: &str, ran: &Ran| {
        let all = bytes(&sandbox.path(".tenure"));
        let has = |text: &str| all.windows(text.len()).any(|it| it == text.as_bytes());
        assert!(has("redacted"), "{when}: something was there to be hidden\n{ran}");
        assert!(!has(KEY) && !has("0123456789abcdef"), "{when}: it is in the file\n{ran}");
    };
    let message = format!("my key is {KEY}");
    let ran = run(&["run", "a.md", "-m", &message, "--trust"]).exits(7);
    hidden("while it waits", &ran);
    let ask = super::only_ask(&sandbox).id;
    run(&["answer", &ask, "approve"]).exits(0);
    let ran = run(&["run", "--resume", "--trust"]).exits(0);
    hidden("at its end", &ran);
    assert_eq!(only_run(&sandbox).output, Some("the answer is [redacted]".into()), "{ran}");
}
