//! A person is waited for: in this process, in another one, and while nothing runs.

use super::{clerk, kill, only_ask, only_run, result, start, store, until};
use crate::flows::story_with_a_person;
use crate::support::Ran;
use tenure_core::Outcome;
use tenure_core::ask::Answer;
use tenure_core::engine::{RunStatus, Signalled};

const RUN: &[&str] = &["run", "clerk.md", "-m", "go", "--trust"];
const RESUME: &[&str] = &["run", "--resume", "--trust"];

#[test]
fn without_a_terminal_the_question_is_kept_and_an_answer_lets_the_run_go_on() {
    let sandbox = clerk("");
    let ran = sandbox.run(RUN).exits(7);
    let (run, ask) = (only_run(&sandbox), only_ask(&sandbox));
    let ran = ran.says("waiting: clerk asks: Write this note?");
    let ran = ran.says(&format!("tenure answer {} approve", ask.id));
    let ran = ran.says(&format!("tenure run --resume {}", run.id));
    assert_eq!(ran.stdout, "", "there is no answer yet");
    assert_eq!((run.status, run.asks), (RunStatus::Waiting, 1));
    // Nobody has answered: it still waits, and nothing is executed for that.
    sandbox.run(RESUME).exits(7).says(&ask.id);
    let ran = sandbox.run(&[RESUME, &["-q", "--json"]].concat()).exits(7);
    let line = result(&ran);
    let ran = ran.says("waiting: run ").says(&format!("tenure answer {} approve", ask.id));
    assert_eq!(line["run"], run.id.to_string(), "{ran}");
    assert_eq!((&line["run_status"], &line["exit_code"]), (&"waiting".into(), &7.into()));
    assert_eq!(line["asks"], serde_json::json!([ask.id]), "{ran}");
    assert_eq!(only_run(&sandbox).lives, 1);
    sandbox.run(&["answer", &ask.id, "approve"]).exits(0);
    let ran = sandbox.run(RESUME).exits(0);
    assert_eq!(ran.stdout, "the end: written\n", "{ran}");
    assert_eq!(sandbox.read("note.txt"), "buy milk\n", "{ran}");
    assert_eq!(only_run(&sandbox).outcome, Some(Outcome::Ok));
}

#[test]
fn killed_while_it_waits_and_answered_while_nothing_runs_it_goes_on_by_itself() {
    let sandbox = clerk("");
    // On a terminal the run stays and waits.
    sandbox.on_terminal(RUN, &[("[a]pprove", "$ kill -9 $PID")]);
    let ask = only_ask(&sandbox);
    assert_eq!(sandbox.read("note.txt"), "");
    let answered = store(&sandbox).answer(&ask.id, Answer::Approve, "somebody");
    assert_eq!(answered.expect("it is answered"), Signalled::Accepted);
    let ran = sandbox.run(RESUME).exits(0);
    assert_eq!(ran.stdout, "the end: written\n", "{ran}");
    assert_eq!(sandbox.read("note.txt"), "buy milk\n", "{ran}");
}

#[test]
fn programs_are_told_the_run_and_its_questions() {
    let sandbox = clerk("");
    let ran = sandbox.run(&[RUN, &["--json", "-q"]].concat()).exits(7);
    let (run, ask, line) = (only_run(&sandbox).id.to_string(), only_ask(&sandbox), result(&ran));
    assert_eq!(line["run"], run);
    assert_eq!(line["asks"], serde_json::json!([ask.id]));
    assert_eq!((&line["run_status"], &line["outcome"]), (&"waiting".into(), &().into()));
    assert_eq!((&line["exit_code"], &line["output"]), (&7.into(), &().into()));
    let events = ran.json_lines();
    let events = events.iter().filter(|line| line["type"] == "event");
    assert!(events.clone().count() > 0 && events.clone().all(|line| line["run"] == run), "{ran}");
}

#[test]
fn a_rejection_is_an_answer_too() {
    let sandbox = clerk("");
    sandbox.run(RUN).exits(7);
    let ask = only_ask(&sandbox).id;
    let no = Answer::Reject("too dear".to_owned());
    store(&sandbox).answer(&ask, no, "somebody").expect("it is answered");
    let ran = sandbox.run(RESUME).exits(0);
    assert!(ran.stdout.contains("too dear"), "{ran}");
    assert_eq!(sandbox.read("note.txt"), "", "{ran}");
}

#[test]
fn while_a_person_is_asked_somebody_elsewhere_may_answer() {
    let sandbox = clerk("");
    let program = env!("CARGO_BIN_EXE_tenure");
    let answer = format!(
        "$ cd {}; {program} answer $({program} asks --json | head -1 | sed 's/.*\"id\":\"\\([0-9a-f]*\\)\".*/\\1/') approve",
        sandbox.project().display()
    );
    let shown = sandbox.on_terminal(RUN, &[("[a]pprove", &answer)]).exits(0);
    assert!(shown.stdout.contains("the end: written"), "{shown}");
    assert_eq!(sandbox.read("note.txt"), "buy milk\n", "{shown}");
}

#[test]
fn a_run_can_be_cancelled_and_killed_from_elsewhere() {
    for (wish, code, outcome) in
        [("cancel", 8, Outcome::Cancelled), ("kill", 1, Outcome::Abandoned)]
    {
        let sandbox = super::counter("");
        let child = start(&sandbox, &["run", "counter.md", "-m", "go", "--trust", "-q"]);
        until("it never began", || super::times(&sandbox, "effects.txt", "begin 1") > 0);
        let run = only_run(&sandbox).id.to_string();
        sandbox.run(&[wish, &run]).exits(0);
        let ran = Ran::of(child.wait_with_output().expect("it ends")).exits(code);
        let info = only_run(&sandbox);
        assert_eq!((info.status, info.outcome), (RunStatus::Ended, Some(outcome)), "{ran}");
        let stops = super::times(&sandbox, "ends.txt", "stop");
        assert_eq!(stops, usize::from(wish == "cancel"), "{wish}: {ran}");
    }
}

#[test]
fn a_workflow_waits_for_its_person_and_goes_on_with_the_answer() {
    let sandbox = story_with_a_person(&[]);
    let ran = sandbox.run(&["run", "workflows/story", "--trust"]).exits(7);
    let (run, ask) = (only_run(&sandbox), only_ask(&sandbox));
    let ran = ran.says("waiting:").says(&format!("tenure run --resume {}", run.id));
    assert_eq!(sandbox.read("ended.txt"), "", "the chat has not ended: {ran}");
    let words = Answer::Respond("more sea".to_owned());
    let answered = store(&sandbox).answer(&ask.id, words, "somebody");
    assert_eq!(answered.expect("it is answered"), Signalled::Accepted);
    let ran = sandbox.run(RESUME).exits(0);
    assert!(ran.stdout.contains("the person said more sea"), "{ran}");
    assert_eq!(sandbox.read("ended.txt").lines().count(), 1, "{ran}");
    assert_eq!(only_run(&sandbox).outcome, Some(Outcome::Ok));
}

#[test]
fn a_workflow_that_waits_can_be_given_up() {
    let sandbox = story_with_a_person(&[]);
    sandbox.run(&["run", "workflows/story", "--trust", "-q"]).exits(7);
    let run = only_run(&sandbox).id.to_string();
    sandbox.run(&["run", "--resume", &run, "--abandon", "--trust"]).exits(0).says("abandoned");
    assert_eq!(only_run(&sandbox).outcome, Some(Outcome::Abandoned));
    assert_eq!(sandbox.read("ended.txt").lines().count(), 1);
    let asks = store(&sandbox).asks(&tenure_store::AskQuery::open()).expect("its questions");
    assert!(asks.is_empty(), "{asks:?}");
}

#[test]
fn a_killed_wait_leaves_no_lock_behind() {
    let sandbox = clerk("");
    let child = start(&sandbox, RUN);
    until("no question", || {
        sandbox.path(".tenure/tenure.db").exists()
            && store(&sandbox).asks(&tenure_store::AskQuery::open()).is_ok_and(|it| !it.is_empty())
    });
    kill(child);
    sandbox.run(&["answer", &only_ask(&sandbox).id, "approve"]).exits(0);
    let ran = sandbox.run(RESUME).exits(0);
    assert_eq!(sandbox.read("note.txt"), "buy milk\n", "{ran}");
}
