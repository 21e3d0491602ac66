//! `tenure cancel`, `kill`, `replay` and `restart`.

use super::{RESUME, RUN, SCRIPT, clerk, done, start, until, waiting};
use serde_json::Value;

/// What is known of the newest run.
fn last(sandbox: &crate::support::Sandbox) -> Value {
    sandbox.run(&["runs", "--json", "-n", "1"]).exits(0).json_lines().remove(0)
}

#[test]
fn a_run_that_is_driven_is_cancelled_in_order() {
    let sandbox = clerk();
    sandbox.write("clerk.json", "[{\"text\": \"late\", \"wait\": \"25s\"}]");
    let mut run = start(&sandbox, RUN);
    let is_busy = || sandbox.run(&["events", "last"]).stdout.contains("model.started");
    until("it never began", is_busy);
    let ran = sandbox.run(&["cancel", "last"]).exits(0);
    ran.prints("cancelled:").prints("its end hooks have run");
    assert_eq!(run.wait().expect("it ends").code(), Some(8));
    assert_eq!(sandbox.read("stopped.txt"), "yes\n");
    assert_eq!(last(&sandbox)["outcome"], "cancelled");
    sandbox.run(&["cancel", "last"]).exits(1).says("it is over already");
}

#[test]
fn a_run_that_nobody_drives_is_cancelled_when_it_is_taken_up() {
    let (sandbox, _ask) = waiting();
    let ran = sandbox.run(&["cancel", "last"]).exits(0);
    ran.prints("recorded:").prints("nobody drives it").prints("tenure run --resume");
    assert_eq!(last(&sandbox)["status"], "waiting");
    assert_eq!(last(&sandbox)["wanted"], serde_json::json!(["cancel"]));
    sandbox.run(&["runs"]).exits(0).prints("waits: 1 ask, to be cancelled");
    sandbox.run(&["asks"]).exits(0).prints("its run is to be cancelled: `tenure run --resume");
    sandbox.run(&["show", "last"]).exits(0).prints("nobody drives it · to be cancelled");
    let id = last(&sandbox)["id"].as_str().expect("an id").to_owned();
    sandbox.run(&["run", "--resume", &id, "--trust", "-q"]).exits(8);
    assert_eq!(last(&sandbox)["outcome"], "cancelled");
    assert_eq!(sandbox.read("note.txt"), "");
    let asks = sandbox.run(&["asks", "--all", "--json"]).exits(0).json_lines();
    assert_eq!(asks[0]["status"], "cancelled", "nobody waits for the answer any more");
}

#[test]
fn a_killed_run_is_recorded_as_abandoned_without_its_hooks() {
    let (sandbox, _ask) = waiting();
    let stopped = sandbox.read("stopped.txt");
    sandbox.run(&["kill", "last"]).exits(0).prints("abandoned:").prints("no hook of it was called");
    let run = last(&sandbox);
    assert_eq!((&run["status"], &run["outcome"]), (&"ended".into(), &"abandoned".into()));
    assert_eq!(sandbox.read("stopped.txt"), stopped);
    sandbox.run(&["kill", "last"]).exits(1).says("it is over already");
    sandbox.run(&["db", "verify"]).exits(0);
}

#[test]
fn a_record_is_held_against_the_code_as_it_is_now() {
    let sandbox = done();
    let note = sandbox.read("note.txt");
    let same = sandbox.run(&["replay", "last", "--trust"]).exits(0);
    same.prints("same: clerk").prints("no difference in ");
    let before = last(&sandbox);
    // The model is told something else now.
    sandbox.write("clerk.md", &super::CARD.replace("\nx\n", "\nBe brief.\n"));
    let ran = sandbox.run(&["replay", "last", "--trust"]).exits(1);
    ran.prints("differs:").prints("model:script#0").prints("tenure restart");
    let lines = sandbox.run(&["replay", "last", "--trust", "--json"]).exits(1).json_lines();
    assert_eq!(lines[0]["result"], "differs");
    assert_eq!(lines[0]["difference"]["step"]["kind"], "model");
    assert_eq!(sandbox.read("note.txt"), note, "nothing is done");
    assert_eq!(last(&sandbox), before, "nothing is recorded");
}

#[test]
fn what_is_not_trusted_is_not_replayed() {
    let sandbox = done();
    sandbox.run(&["replay", "last"]).exits(4);
}

#[test]
fn a_run_begins_anew_at_a_step() {
    let sandbox = done();
    let shown = sandbox.run(&["show", "last", "--json"]).exits(0).stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let lines = shown["timeline"].as_array().expect("lines");
    let mut models = lines.iter().filter(|line| line["what"] == "model");
    let second = models.next_back().and_then(|line| line["step"].as_u64()).expect("a step");
    sandbox.write("clerk.json", &SCRIPT.replace("the end", "another end"));
    let from = second.to_string();
    let ran = sandbox.run(&["restart", "last", "--from", &from, "--trust", "-q"]).exits(0);
    assert_eq!(ran.stdout, "another end: written\n", "{ran}");
    assert_eq!(sandbox.read("note.txt"), "buy milk\n", "the tool was served from the record");
    let runs = sandbox.run(&["runs", "--json"]).exits(0).json_lines();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1]["output"], "the end: written", "the old run stays as it is");
    sandbox.run(&["show", "last"]).exits(0).prints("begins with ").prints("another end: written");
    sandbox
        .run(&["restart", "last", "--from", "9999", "--trust"])
        .exits(1)
        .says("has no step `9999`");
}

#[test]
fn an_interrupted_run_says_so_and_what_was_cut_off() {
    let sandbox = clerk();
    sandbox.write("clerk.json", "[{\"text\": \"late\", \"wait\": \"25s\"}]");
    let mut run = start(&sandbox, RUN);
    until("it never began", || sandbox.run(&["events", "last"]).stdout.contains("model.started"));
    sandbox.run(&["runs"]).exits(0).prints("running");
    run.kill().expect("it can be killed");
    run.wait().expect("it is over");
    sandbox.run(&["runs"]).exits(0).prints("interrupted");
    let ran = sandbox.run(&["show", "last"]).exits(0).prints("nobody drives it");
    ran.prints("call 1  interrupted").prints("go on with `tenure run --resume");
    sandbox.write("clerk.json", "[\"in time\"]");
    assert_eq!(sandbox.run(RESUME).exits(0).stdout, "in time\n");
}
