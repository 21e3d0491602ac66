//! Live objects of processes that have ended.

use crate::resume::support::*;
use tenure_core::step::{MemoryStepLog, StepKey, WhenWaiting};

const HOOKS: &str = r#"
from notes import note

class Pool:
    def __init__(self, name):
        self.name = name

def other(ctx, context_variables):
    context_variables["other"] = Pool("other")

def open_pool(ctx, context_variables):
    note("open")
    context_variables["pool"] = Pool("the pool")

def use(context_variables) -> str:
    """Uses the pool."""
    note("found " + str("pool" in context_variables))
    return context_variables["pool"].name

def take(context_variables) -> str:
    """Takes the pool, as a mapping gives it."""
    return context_variables.data.get("pool").name

def heal(context_variables) -> str:
    """Makes the pool anew if it is not there."""
    if "pool" not in context_variables:
        context_variables["pool"] = Pool("a new pool")
    return context_variables["pool"].name
"#;

fn project(declared: &str, tool: &str) -> Project {
    let card = format!(
        "---\nname: a\nmodel: script:a.yml\nfunction_tools: [{{ entrypoint: 'hooks.py:{tool}', effect: idempotent }}]\nhooks:\n\
         \x20 - {{ on: before_chat, run: hooks.py:other, again_on_resume: true }}\n\
         \x20 - {{ on: before_chat, run: hooks.py:open_pool, {declared} }}\n---\nx\n"
    );
    let script = format!("- {{ call: {tool} }}\n- 'done: {{result}}'\n");
    noting([("hooks.py", HOOKS), ("a.md", &card), ("a.yml", &script)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_made_again_is_there_in_every_life() {
    let project = project("again_on_resume: true", "use");
    let check = |cut: usize, _: &[StepKey], _: &MemoryStepLog, result| {
        let result: Result<tenure_cards::team::Run, _> = result;
        let run = result.unwrap_or_else(|error| panic!("cut after {cut}: {error}"));
        assert_eq!(run.output, "done: the pool", "cut after {cut}");
        assert_eq!(take_notes(&project).count("open"), 1, "cut after {cut}");
    };
    cut_everywhere(|| project.builder(), "a", check).await;
}

/// The output of a run that goes on when its `before_chat` is on record, and its tool is not.
async fn after_the_crash(project: &Project) -> String {
    let whole = MemoryStepLog::new();
    let run = life(project.builder(), whole.clone(), "a", WhenWaiting::Stay).await;
    assert_eq!(run.expect("it runs").output, "done: the pool");
    let opened = |key: &StepKey| key.name.contains("open_pool");
    let cut = whole.keys().iter().position(opened).expect("it is on record") + 1;
    take_notes(project);
    let run = life(project.builder(), whole.cut_after(cut), "a", WhenWaiting::Stay).await;
    run.expect("it goes on").output
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn using_what_was_lost_says_what_was_lost_and_what_to_declare() {
    for tool in ["use", "take"] {
        let project = project("retries: 0", tool);
        let output = after_the_crash(&project).await;
        for part in ["`pool` is lost", "`hooks.py:open_pool`", "a Pool", "`again_on_resume: true`"]
        {
            assert!(output.contains(part), "{tool}: {output}");
        }
        assert!(!output.contains("other"), "never another object: {output}");
        let notes = take_notes(&project);
        assert_eq!(notes.count("open"), 0, "{notes:?}");
        if tool == "use" {
            assert_eq!(notes.of("found"), ["False"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_lost_can_be_made_anew_by_whoever_looks_first() {
    assert_eq!(after_the_crash(&project("retries: 0", "heal")).await, "done: a new pool");
}
