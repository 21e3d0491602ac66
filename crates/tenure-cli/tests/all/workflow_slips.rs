//! What a new user gets wrong with workflows, and what the program says to it.

use crate::flows::{ORCHESTRATOR, TOOLS, story, story_with_a_person};
use crate::support::{Ran, Sandbox};

const KEYED: &str = "definitions:
  - name: key
    type: string
    source: { type: config, env_var: DESK_BADGE, required: true }
  - name: approved
    type: boolean
    source: { type: state, default: false }
";
const RUN: &[&str] = &["run", "workflows/story", "--trust"];

fn with_badge(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let mut command = sandbox.command(args);
    Ran::of(command.env("DESK_BADGE", "blue").output().expect("it runs"))
}

#[test]
fn a_variable_of_the_environment_that_a_chat_needs_is_named_before_anything_starts() {
    let sandbox = story(&[("context_variables.yaml", KEYED)]);
    let needs = "the context variable `key` needs the environment variable DESK_BADGE";
    let ran = sandbox.run(RUN).exits(1).says(needs).says("export DESK_BADGE=");
    assert!(!ran.stderr.contains("STARTING") && !ran.stderr.contains("Agent "), "{ran}");
    assert_eq!(ran.stdout, "");
    let ran = sandbox.run(&[RUN, &["--json", "-q"]].concat()).exits(1);
    let lines = ran.json_lines();
    assert_eq!(lines.len(), 1, "{ran}");
    assert_eq!(lines[0]["exit_code"], 1, "{ran}");
    with_badge(&sandbox, RUN).exits(0);

    let ran = sandbox.run(&["doctor"]).prints(needs);
    assert!(!ran.stdout.contains("every variable that it uses is set"), "{ran}");
    let ran = with_badge(&sandbox, &["doctor"]).prints("every variable that it uses is set");
    ran.prints("1 environment variable of context variables is set: DESK_BADGE");
    let ran = sandbox.run(&["trust", "review"]).exits(0).prints("DESK_BADGE: its value goes into");
    ran.prints("the context variable `key`");
}

#[test]
fn a_value_of_another_type_is_refused_before_anything_starts() {
    let variables = KEYED.replace("required: true", "required: false");
    let sandbox = story(&[("context_variables.yaml", &variables)]);
    let said = "the context variable `approved` cannot be set to that";
    let ran = sandbox.run(&[RUN, &["--set", "approved=maybe"]].concat()).exits(2).says(said);
    assert_eq!(sandbox.read("began.txt"), "", "{ran}");
    sandbox.run(&[RUN, &["--set", "approved=true"]].concat()).exits(0);
}

#[test]
fn a_misspelt_orchestrator_file_is_named() {
    let sandbox = story(&[("orchestrater.yaml", ORCHESTRATOR)]);
    std::fs::remove_file(sandbox.path("workflows/story/orchestrator.yaml")).expect("it is there");
    let said = "workflows/story";
    let help = "did you mean `orchestrator.yaml`?";
    for path in [".", "workflows/story"] {
        sandbox.run(&["check", path]).exits(3).prints(said).prints(help);
        sandbox.run(&["run", path]).exits(3).says("no orchestrator file").says(help);
    }
    sandbox.run(&["doctor"]).exits(1).prints("error");
    let ran = sandbox.run(&["run", ".", "--workflow", "story"]).exits(2);
    ran.says("the folder workflows/story has no orchestrator file");
}

#[test]
fn a_folder_with_nothing_to_run_is_told() {
    let sandbox = Sandbox::with(&[("notes.txt", "")]);
    sandbox.run(&["run", "."]).exits(3).says("no card and no workflow");
}

#[test]
fn chat_leads_to_run_for_a_workflow_by_its_name() {
    let ran = story(&[]).run(&["chat", "story"]).exits(2).says("`story` is a workflow");
    ran.says("`chat` is for cards").says("tenure run story");
}

#[test]
fn a_chat_that_is_left_says_that_the_chat_was_cancelled() {
    let shown = story_with_a_person(&[]).on_terminal(RUN, &[("you:", "^D")]).exits(8);
    assert!(shown.stdout.contains("the chat was cancelled"), "{shown}");
}

#[test]
fn events_of_the_workflow_are_flat_and_durations_are_milliseconds() {
    let ran = story(&[]).run(&[RUN, &["--json", "-q"]].concat()).exits(0);
    let lines = ran.json_lines();
    let said = lines.iter().find(|line| line["name"] == "chat.message").expect("a message");
    assert_eq!((&said["kind"], said["data"]["speaker"].is_null()), (&"chat.message".into(), false));
    let metrics = &lines.last().expect("a result")["metrics"];
    assert!(metrics["busy_ms"].is_f64() && metrics.get("busy").is_none(), "{metrics}");
}

#[test]
fn the_person_is_explained_as_a_person() {
    let ran = story_with_a_person(&[]).run(&["explain", ".", "--agent", "user"]).exits(0);
    let ran = ran.prints("a person has the turn").prints("waits for as long as it takes");
    assert!(!ran.stdout.contains("model calls") && !ran.stdout.contains("limit 30s"), "{ran}");
}

#[test]
fn a_tool_that_takes_too_long_is_told_with_its_limit() {
    let tools = TOOLS.replace("function: open_desk", "function: open_desk, timeout: 1s");
    let desk = "import time\n\n\ndef open_desk():\n    time.sleep(60)\n\n\ndef count():\n    pass\n\n\ndef close_desk():\n    pass\n";
    let sandbox = story(&[("tools.yaml", &tools), ("tools/desk.py", desk)]);
    let ran = sandbox.run(RUN).exits(0).says("open_desk failed: no answer within 1s\n");
    ran.says("platform log_workflow_start");
}
