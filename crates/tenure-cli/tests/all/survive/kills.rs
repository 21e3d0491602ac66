//! Killed with -9 at any moment, a run goes on with `--resume`.

use super::{CALLS, counter, kill, only_run, result, start, store, times, until};
use crate::flows::story;
use crate::support::Sandbox;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::Outcome;
use tenure_core::engine::RunStatus;

const RUN: &[&str] = &["run", "counter.md", "-m", "go", "--trust", "-q"];

/// The calls whose results are on record, by their number, and how often each was begun so far.
fn finished(sandbox: &Sandbox) -> BTreeMap<usize, usize> {
    let store = store(sandbox);
    let records = store.records(only_run(sandbox).id, 0, 10_000).expect("its records");
    let tools = records.iter().filter(|record| {
        record.name == "step.recorded"
            && record.step.as_ref().is_some_and(|step| &*step.kind == "tool")
    });
    let told = tools.map(|record| record.data.to_string());
    let number = |text: String| (1..=CALLS).find(|n| text.contains(&format!("counted {n}")));
    let finished = told.filter_map(number);
    finished.map(|n| (n, times(sandbox, "effects.txt", &format!("begin {n}")))).collect()
}

#[test]
fn killed_at_every_call_it_goes_on_and_nothing_finished_is_done_again() {
    let whole = counter("").run_ok();
    let sandbox = counter("");
    let mut child = start(&sandbox, RUN);
    for n in 1..=CALLS {
        // In the middle of a call, right behind one, or in the model call after it.
        let (line, more) = match n % 3 {
            // Behind the last one there is little left to be killed in.
            _ if n == CALLS => (format!("begin {n}"), Duration::ZERO),
            0 => (format!("begin {n}"), Duration::ZERO),
            1 => (format!("done {n}"), Duration::ZERO),
            _ => (format!("done {n}"), Duration::from_millis(30)),
        };
        until(&format!("`{line}` never came"), || times(&sandbox, "effects.txt", &line) > 0);
        std::thread::sleep(more);
        kill(child);
        let before = finished(&sandbox);
        assert_eq!(only_run(&sandbox).status, RunStatus::Running, "nobody could say otherwise");
        child = start(&sandbox, &["run", "--resume", "--trust", "-q"]);
        if n == CALLS {
            break;
        }
        let next = format!("begin {}", n + 1);
        until(&format!("`{next}` never came"), || times(&sandbox, "effects.txt", &next) > 0);
        for (n, began) in before {
            let now = times(&sandbox, "effects.txt", &format!("begin {n}"));
            assert_eq!(now, began, "call {n} was finished, and was done again");
        }
    }
    let ran = crate::support::Ran::of(child.wait_with_output().expect("it ends")).exits(0);
    assert_eq!(ran.stdout, whole, "{ran}");
    let info = only_run(&sandbox);
    assert_eq!((info.status, info.outcome), (RunStatus::Ended, Some(Outcome::Ok)));
    assert_eq!(info.lives as usize, CALLS + 1);
    for n in 1..=CALLS {
        assert!(times(&sandbox, "effects.txt", &format!("done {n}")) >= 1, "call {n} is missing");
    }
    assert_eq!(times(&sandbox, "ends.txt", "after"), 1, "the turn ended once");
}

trait Whole {
    fn run_ok(self) -> String;
}

impl Whole for Sandbox {
    /// What it says if nobody kills it.
    fn run_ok(self) -> String {
        let ran = self.run(RUN).exits(0);
        for n in 1..=CALLS {
            assert_eq!(times(&self, "effects.txt", &format!("begin {n}")), 1, "{ran}");
        }
        ran.stdout
    }
}

#[test]
fn killed_at_any_moment_it_comes_to_the_same_end() {
    let whole = counter("").run_ok();
    // From before the first record to about its end.
    for delay in [40, 130, 260, 390, 520, 700] {
        let sandbox = counter("");
        let child = start(&sandbox, RUN);
        std::thread::sleep(Duration::from_millis(delay));
        kill(child);
        if !sandbox.path(".tenure/tenure.db").exists() || super::runs(&sandbox).is_empty() {
            continue;
        }
        if only_run(&sandbox).status == RunStatus::Ended {
            continue;
        }
        let ran = sandbox.run(&["run", "--resume", "--trust", "-q"]).exits(0);
        assert_eq!(ran.stdout, whole, "killed after {delay} ms\n{ran}");
        assert_eq!(only_run(&sandbox).outcome, Some(Outcome::Ok));
    }
}

#[test]
fn a_run_that_was_killed_is_named_at_the_next_start_and_can_be_given_up() {
    let sandbox = counter("");
    let child = start(&sandbox, RUN);
    until("it never began", || times(&sandbox, "effects.txt", "begin 1") > 0);
    kill(child);
    let first = only_run(&sandbox).id;
    let ran = sandbox.run(&["run", "counter.md", "-m", "go", "--trust"]).exits(0);
    let ran = ran.says("1 earlier run did not finish").says("tenure run --resume");
    let after = times(&sandbox, "ends.txt", "after");
    let ran2 = sandbox.run(&["run", "--abandon", &first.to_string(), "--trust"]).exits(0);
    ran2.says("is over: abandoned");
    let info = store(&sandbox).run(first).expect("it reads").expect("it is there");
    assert_eq!((info.status, info.outcome), (RunStatus::Ended, Some(Outcome::Abandoned)), "{ran}");
    assert_eq!(times(&sandbox, "ends.txt", "after"), after + 1, "its end was delivered");
    sandbox.run(&["run", "--resume"]).exits(0).says("every run that is on record is over");
    let ran = sandbox.run(&["run", "--resume", &first.to_string()]).exits(2);
    ran.says("is over (outcome abandoned)");
    sandbox.run(&["run", "--resume", "nope"]).exits(1).says("there is no run `nope`");
}

#[test]
fn by_policy_they_go_on_or_are_given_up_before_the_next_run() {
    for (policy, outcome) in [("resume", Outcome::Ok), ("abandon", Outcome::Abandoned)] {
        let sandbox = counter(&format!("[store]\non_start = \"{policy}\"\n"));
        let child = start(&sandbox, RUN);
        until("it never began", || times(&sandbox, "effects.txt", "begin 2") > 0);
        kill(child);
        let first = only_run(&sandbox).id;
        let ran = sandbox.run(&["run", "counter.md", "-m", "go", "--trust", "--json"]).exits(0);
        let info = store(&sandbox).run(first).expect("it reads").expect("it is there");
        assert_eq!(info.outcome, Some(outcome), "{policy}: {ran}");
        let results = ran.json_lines().into_iter().filter(|line| line["type"] == "result");
        assert_eq!(results.count(), 1, "standard output is the new run's: {ran}");
        assert_ne!(result(&ran)["run"], first.to_string());
    }
}

#[test]
fn what_is_resumed_has_to_be_trusted_too() {
    let sandbox = counter("");
    let child = start(&sandbox, RUN);
    until("it never began", || times(&sandbox, "effects.txt", "begin 1") > 0);
    kill(child);
    let before = sandbox.read("effects.txt");
    sandbox.run(&["run", "--resume"]).exits(4).says("not trusted");
    assert_eq!(sandbox.read("effects.txt"), before);
    assert_eq!(only_run(&sandbox).lives, 1, "nothing was taken up");
}

#[test]
fn a_parked_run_says_the_step_that_differs() {
    let sandbox = counter("");
    let child = start(&sandbox, RUN);
    until("it never came so far", || times(&sandbox, "effects.txt", "begin 3") > 0);
    kill(child);
    sandbox.write("counter.md", &super::COUNTER.replace("---\nx\n", "---\nanother instruction\n"));
    let effects = sandbox.read("effects.txt");
    let ran = sandbox.run(&["run", "--resume", "--trust", "-q"]).exits(1);
    let ran = ran.says("parked:").says("turn/model:").says("was recorded with another input");
    assert_eq!(sandbox.read("effects.txt"), effects, "nothing was guessed: {ran}");
    assert_eq!(only_run(&sandbox).status, RunStatus::Parked);
    assert_eq!(times(&sandbox, "ends.txt", "after"), 0, "and nothing ended");
    let ran = sandbox.run(&["run", "--resume", "--trust"]).exits(1);
    let id = only_run(&sandbox).id;
    let go_on = format!("tenure run --resume {id}   (when the code is as it was again)");
    let ran = ran.says("is parked: step turn/model:").says(&go_on);
    ran.says("restart ").says(&format!("tenure run --abandon {id}"));
    // Also where nothing but answers is wanted, and to programs.
    let args = ["run", "--resume", "--trust", "-q", "--json"];
    let ran = sandbox.run(&args).exits(1).says("parked: run ").says(&go_on);
    let line = super::result(&ran);
    assert_eq!((&line["run_status"], &line["exit_code"]), (&"parked".into(), &1.into()));
    assert!(line["error"].as_str().is_some_and(|why| why.contains("turn/model")), "{ran}");
    // With the card as it was it goes on.
    sandbox.write("counter.md", super::COUNTER);
    let run = only_run(&sandbox).id.to_string();
    let ran = sandbox.run(&["run", "--resume", &run, "--trust", "-q"]).exits(0);
    assert!(ran.stdout.contains("the end: counted 5"), "{ran}");
}

/// A workflow whose writer takes its time.
fn slow_story() -> Sandbox {
    story(&[
        ("writer.json", "[{\"text\": \"a draft about {input}\", \"wait\": \"300ms\"}]"),
        ("editor.json", "[{\"text\": \"it is good\", \"wait\": \"300ms\"}]"),
    ])
}

#[test]
fn a_workflow_that_was_killed_goes_on_with_the_same_chat() {
    let args = ["run", "workflows/story", "--trust", "-q"];
    let whole = slow_story().run(&args).exits(0).stdout;
    for delay in [150, 450, 750] {
        let sandbox = slow_story();
        let child = start(&sandbox, &args);
        sandbox.wait_for("began.txt");
        let began = sandbox.read("began.txt");
        std::thread::sleep(Duration::from_millis(delay));
        kill(child);
        if only_run(&sandbox).status == RunStatus::Ended {
            continue;
        }
        let ran = sandbox.run(&["run", "--resume", "--trust", "-q"]).exits(0);
        assert_eq!(ran.stdout, whole, "killed after {delay} ms\n{ran}");
        assert_eq!(sandbox.read("began.txt"), began, "the chat kept its id: {ran}");
        assert_eq!(sandbox.read("ended.txt"), "drafts 2\n", "killed after {delay} ms\n{ran}");
        assert_eq!(only_run(&sandbox).outcome, Some(Outcome::Ok));
    }
}
