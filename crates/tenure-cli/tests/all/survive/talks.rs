//! Conversations that go on.

use super::{clerk, only_ask, only_run, result, runs, store};
use crate::flows::story;
use crate::support::Sandbox;
use tenure_core::Outcome;
use tenure_core::ask::Answer;
use tenure_core::engine::RunStatus;

const HOOKS: &str = "import json


def look(ctx):
    with open('seen.txt', 'a') as file:
        file.write(json.dumps(ctx.agent.message_history, default=str) + '\\n')
";

/// An agent that says what it is told, and a hook that writes down what it remembers.
fn parrot() -> Sandbox {
    let card = "---\nname: parrot\nmodel: passthrough\nhooks:\n  - { on: after_agent, run: hooks.py:look }\n---\nx\n";
    Sandbox::with(&[("tenure.toml", ""), ("parrot.md", card), ("hooks.py", HOOKS)])
}

#[test]
fn it_remembers_what_was_said_in_another_process() {
    let sandbox = parrot();
    let said =
        |line: &str| sandbox.read("seen.txt").lines().last().unwrap_or_default().contains(line);
    sandbox.run(&["run", "parrot.md", "-m", "I am Ada", "--trust", "-q"]).exits(0);
    let thread = only_run(&sandbox).thread.expect("every run is part of a conversation");
    sandbox.run(&["run", "parrot.md", "-m", "alone", "--trust", "-q"]).exits(0);
    assert!(!said("I am Ada"), "another run is another conversation");
    let more = ["run", "parrot.md", "--continue", &thread, "-m", "who am I?", "--trust", "-q"];
    let ran = sandbox.run(&more).exits(0);
    assert!(said("I am Ada"), "{ran}\n{}", sandbox.read("seen.txt"));
    // The path is on record too, and the last conversation is meant.
    let ran = sandbox.run(&["run", "--continue", "-m", "and now?", "--trust", "--json"]).exits(0);
    assert!(said("I am Ada") && said("who am I?"), "{ran}\n{}", sandbox.read("seen.txt"));
    assert_eq!(result(&ran)["thread"], thread);
    let history = store(&sandbox).threads().load(&thread, "parrot").expect("it reads");
    assert_eq!(history.expect("it is there").len(), 6);
}

#[test]
fn there_has_to_be_a_conversation() {
    let sandbox = parrot();
    let ran = sandbox.run(&["run", "parrot.md", "--continue", "-m", "hi", "--trust"]).exits(2);
    ran.says("`parrot` has no earlier conversation on record");
    let ran =
        sandbox.run(&["run", "parrot.md", "--continue", "3f", "-m", "hi", "--trust"]).exits(2);
    ran.says("there is no conversation `3f`");
    assert!(runs(&sandbox).is_empty());
    let ran = story(&[]).run(&["run", "workflows/story", "--continue", "--trust"]).exits(2);
    ran.says("--continue is for conversations with an agent of a card");
}

#[test]
fn a_conversation_that_waits_for_a_person_refuses_a_message() {
    let sandbox = clerk("");
    sandbox.run(&["run", "clerk.md", "-m", "go", "--trust", "-q"]).exits(7);
    let (run, ask) = (only_run(&sandbox).id, only_ask(&sandbox).id);
    let more = ["run", "clerk.md", "--continue", "-m", "something else", "--trust"];
    let ran = sandbox.run(&more).exits(7).says("clerk asks: Write this note?");
    let ran = ran.says(&format!("tenure answer {ask} approve"));
    ran.says(&format!("tenure run --resume {run}")).says(&format!("tenure run --abandon {run}"));
    assert_eq!(only_run(&sandbox).status, RunStatus::Waiting, "nothing has changed");
    store(&sandbox).answer(&ask, Answer::Approve, "me").expect("it is answered");
    sandbox.run(&["run", "--resume", "--trust", "-q"]).exits(0);
    assert_eq!(sandbox.read("note.txt"), "buy milk\n");
}

#[test]
fn by_policy_a_message_cancels_what_waits_and_no_call_is_left_without_a_result() {
    let sandbox = clerk("[store]\non_message = \"cancel\"\n");
    sandbox.run(&["run", "clerk.md", "-m", "go", "--trust", "-q"]).exits(7);
    let first = only_run(&sandbox);
    sandbox.write("clerk.json", "[\"fine\"]");
    let more = ["run", "clerk.md", "--continue", "-m", "never mind", "--trust", "-q"];
    let script = "[{\"call\": \"write_note\", \"with\": {\"text\": \"buy milk\"}}, \"fine\"]";
    sandbox.write("clerk.json", script);
    sandbox.run(&more).exits(7);
    let then = store(&sandbox).run(first.id).expect("it reads").expect("it is there");
    assert_eq!((then.status, then.outcome), (RunStatus::Ended, Some(Outcome::Cancelled)));
    assert_eq!(sandbox.read("note.txt"), "", "nobody approved anything");
    let ask = only_ask(&sandbox);
    assert_ne!(ask.run, first.id, "the question of the first run was taken back");
    store(&sandbox).answer(&ask.id, Answer::Approve, "me").expect("it is answered");
    sandbox.run(&["run", "--resume", "--trust", "-q"]).exits(0);
    // A history with a call that hangs is none: it could not be loaded.
    let thread = first.thread.expect("a conversation");
    let history = store(&sandbox).threads().load(&thread, "clerk").expect("it reads");
    let calls = |history: &tenure_core::message::History| -> usize {
        history.iter().map(|message| message.calls().len()).sum()
    };
    assert!(calls(&history.expect("it is there")) >= 1);
}

#[test]
fn a_talk_is_kept_and_goes_on_in_a_talk_and_in_a_run() {
    let sandbox = parrot();
    let last = || sandbox.read("seen.txt").lines().last().unwrap_or_default().to_owned();
    let chat = ["chat", "parrot.md", "--trust", "-q"];
    sandbox.run_with_input(&chat, "I am Ada\n").exits(0);
    sandbox.run_with_input(&[&chat[..], &["--continue"]].concat(), "who am I?\n").exits(0);
    assert!(last().contains("I am Ada"), "{}", last());
    let more = ["run", "parrot.md", "--continue", "-m", "and now?", "--trust", "-q"];
    sandbox.run(&more).exits(0);
    assert!(last().contains("I am Ada") && last().contains("who am I?"), "{}", last());
    // What is said without a record is not kept.
    sandbox.run_with_input(&[&chat[..], &["--no-store"]].concat(), "unheard\n").exits(0);
    sandbox.run_with_input(&[&chat[..], &["--continue"]].concat(), "again\n").exits(0);
    assert!(last().contains("and now?") && !last().contains("unheard"), "{}", last());
}

#[test]
fn a_talk_does_not_go_on_in_a_conversation_that_waits() {
    let sandbox = clerk("");
    sandbox.run(&["run", "clerk.md", "-m", "go", "--trust", "-q"]).exits(7);
    let ran = sandbox.run(&["chat", "clerk.md", "--trust", "--continue"]).exits(7);
    ran.says("so it takes no message").says("tenure run --abandon");
}
