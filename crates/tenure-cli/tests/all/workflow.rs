//! `tenure run` of workflows: what they say, how they end, and by which code.

use crate::flows::{AGENTS, HANDOFFS, ORCHESTRATOR, story, story_with_a_person};
use crate::support::{Ran, Sandbox, nobody_is_left_with};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

const RUN: &[&str] = &["run", "workflows/story", "--trust"];

fn run(sandbox: &Sandbox, more: &[&str]) -> Ran {
    sandbox.run(&[RUN, more].concat())
}

/// The last line of `--json`.
fn result(ran: &Ran) -> Value {
    ran.json_lines().pop().expect("a result")
}

#[test]
fn a_completed_chat_prints_what_was_said_under_the_names_and_exits_0() {
    let sandbox = story(&[]);
    let ran = run(&sandbox, &[]).exits(0);
    let said = "writer:\na draft about a lighthouse\n\neditor:\nit is good\n";
    assert_eq!(ran.stdout, said, "{ran}");
    assert_eq!(sandbox.read("ended.txt"), "drafts 2\n", "{ran}");
    let ran = ran.says("Workflow Initialized | workflow=story").says("Workflow Completed");
    let ran = ran.says("SPEAKING").says("count").says("{\"drafts\":1}");
    assert!(!ran.stderr.contains("it is good"), "what is said goes to standard output: {ran}");
}

#[test]
fn quiet_is_the_last_thing_that_was_said_and_nothing_else() {
    let ran = run(&story(&[]), &["-q"]).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("it is good\n", ""));
}

#[test]
fn a_message_comes_after_the_initial_one() {
    let ran = run(&story(&[]), &["-m", "a storm"]).exits(0);
    assert!(ran.stdout.contains("a draft about a storm"), "{ran}");
    run(&story(&[]), &["-m", " "]).exits(2).says("the message is empty");
}

#[test]
fn a_pipe_is_read_only_if_the_user_begins() {
    let driven = ORCHESTRATOR.replace("AgentDriven", "UserDriven");
    let driven = driven.replace("initial_message: a lighthouse\n", "");
    let sandbox = story(&[("orchestrator.yaml", &driven)]);
    let ran = sandbox.run_with_input(RUN, "a whale\n").exits(0);
    assert!(ran.stdout.contains("a draft about a whale"), "{ran}");
    let ran = story(&[]).run_with_input(RUN, "a whale\n").exits(0);
    assert!(ran.stdout.contains("a draft about a lighthouse"), "{ran}");
}

#[test]
fn the_workflow_is_found_by_its_folder_its_file_its_project_and_its_name() {
    let sandbox = story(&[]);
    let ways: [&[&str]; 5] = [
        &["run", "workflows/story"],
        &["run", "workflows/story/orchestrator.yaml"],
        &["run", "."],
        &["run", ".", "--workflow", "story"],
        &["run", "story"],
    ];
    for way in ways {
        let ran = sandbox.run(&[way, &["--trust", "-q"]].concat()).exits(0);
        assert_eq!(ran.stdout, "it is good\n", "{way:?}: {ran}");
    }
    sandbox.run(&["run", ".", "--workflow", "stori"]).exits(2).says("did you mean `story`?");
    sandbox.run(&["run", "tale"]).exits(2).says("there is no `tale`");
}

#[test]
fn turns_that_are_used_up_exit_6() {
    let round = HANDOFFS.replace("target_agent: terminate", "target_agent: writer");
    let sandbox = story(&[("handoffs.yaml", &round)]);
    let ran = run(&sandbox, &[]).exits(6).says("`max_turns` in the orchestrator file");
    assert_eq!(ran.stdout.matches("writer:").count(), 2, "{ran}");
    assert_eq!(sandbox.read("ended.txt"), "drafts 4\n", "{ran}");
    let result = result(&run(&sandbox, &["--json", "-q"]).exits(6));
    assert_eq!((&result["status"], &result["outcome"]), (&"max_turns".into(), &"max_turns".into()));
    assert_eq!((&result["turns"], &result["exit_code"]), (&4.into(), &6.into()));
}

#[test]
fn a_turn_that_fails_exits_1_and_what_was_said_before_is_kept() {
    let sandbox = story(&[("editor.json", "[{\"error\": \"no ink\"}]")]);
    let ran = run(&sandbox, &[]).exits(1).says("error: ").says("no ink");
    assert_eq!(ran.stdout, "writer:\na draft about a lighthouse\n");
    assert_eq!(sandbox.read("ended.txt"), "drafts 2\n", "{ran}");
    let result = result(&run(&sandbox, &["--json", "-q"]).exits(1));
    assert_eq!((&result["status"], &result["outcome"]), (&"failed".into(), &"failed".into()));
    assert_eq!(result["output"], "a draft about a lighthouse");
}

#[test]
fn a_denied_turn_exits_5() {
    let guarded = AGENTS.replace(
        "    system_message: Read.\n",
        "    system_message: Read.\n    hooks:\n      - { on: before_agent, run: [\"sh\", \"no.sh\"], name: guard, policy: deny }\n",
    );
    let no = "cat >/dev/null\necho '{\"deny\": \"not today\"}'\n";
    let sandbox = story(&[("agents.yaml", &guarded), ("no.sh", no)]);
    run(&sandbox, &[]).exits(5).says("not today");
    let result = result(&run(&sandbox, &["--json", "-q"]).exits(5));
    assert_eq!((&result["status"], &result["outcome"]), (&"failed".into(), &"denied".into()));
    assert_eq!(sandbox.read("ended.txt").lines().count(), 2, "after_chat ran once in each");
}

#[test]
fn a_chat_whose_time_is_up_exits_124() {
    let sandbox = story(&[("writer.json", "[{\"text\": \"late\", \"wait\": \"60s\"}]")]);
    let began = Instant::now();
    let ran = run(&sandbox, &["--timeout", "2s"]).exits(124);
    assert!(began.elapsed() < Duration::from_secs(30), "{ran}");
    ran.says("the run did not end within 2s (--timeout)");
    assert_eq!(sandbox.read("ended.txt").lines().count(), 1);
    let result = result(&run(&sandbox, &["--timeout", "2s", "--json", "-q"]).exits(124));
    assert_eq!((&result["status"], &result["outcome"]), (&"failed".into(), &"timed_out".into()));
}

#[test]
fn without_a_terminal_a_persons_turn_pauses_the_chat_and_exits_7() {
    let sandbox = story_with_a_person(&[]);
    let ran = run(&sandbox, &["--no-store"]).exits(7);
    assert!(ran.stdout.contains("a draft about a lighthouse"), "{ran}");
    let ran = ran.says("paused:").says("answer writer: a draft").says("run it in one");
    assert!(!ran.stderr.contains("FAILED") && !ran.stderr.contains("warning:"), "{ran}");
    assert_eq!(sandbox.read("ended.txt").lines().count(), 1, "{ran}");
    for more in [&["--no-store"][..], &[]] {
        let ran = run(&sandbox, &[&["--json", "-q"], more].concat()).exits(7);
        let result = result(&ran);
        assert_eq!((&result["status"], &result["exit_code"]), (&"paused".into(), &7.into()));
    }
}

#[test]
fn a_person_is_asked_in_the_terminal() {
    let sandbox = story_with_a_person(&[]);
    let shown =
        sandbox.on_terminal(RUN, &[("it is your turn", "$ true"), ("you:", "more sea")]).exits(0);
    assert!(shown.stdout.contains("the person said more sea"), "{shown}");
    assert_eq!(shown.stdout.matches("a draft about a lighthouse").count(), 1, "{shown}");
    assert_eq!(sandbox.read("ended.txt").lines().count(), 1, "{shown}");
}

#[test]
fn leaving_the_question_cancels_the_chat_and_exits_8() {
    let sandbox = story_with_a_person(&[]);
    let shown = sandbox.on_terminal(RUN, &[("you:", "^D")]).exits(8);
    assert_eq!(sandbox.read("ended.txt").lines().count(), 1, "{shown}");
}

#[test]
fn ctrl_c_ends_the_chat_in_order_and_exits_130() {
    let sandbox = story(&[("writer.json", "[{\"text\": \"late\", \"wait\": \"60s\"}]")]);
    let mut command = sandbox.command(RUN);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    sandbox.wait_for("began.txt");
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("a process id"), rustix::process::Signal::INT)
        .expect("it lives");
    let ran = Ran::of(child.wait_with_output().expect("it ends")).exits(130);
    assert_eq!(sandbox.read("ended.txt").lines().count(), 1, "{ran}");
    nobody_is_left_with(&sandbox.project().to_string_lossy());
}

#[test]
fn events_come_as_lines_of_json_in_their_order_and_the_result_last() {
    let ran = run(&story(&[]), &["--json", "-q", "--chat-id", "c1"]).exits(0);
    let lines = ran.json_lines();
    let names: Vec<&str> = lines.iter().filter_map(|line| line["name"].as_str()).collect();
    let expected = [
        "orchestrator.initialize",
        "chat.started",
        "lifecycle.tool_call",
        "lifecycle.tool_result",
        "orchestrator.plan",
        "orchestrator.route",
        "select_speaker",
        "orchestrator.execute",
        "agent.turn.started",
        "lifecycle.tool_call",
        "lifecycle.tool_result",
        "agent.turn.ended",
        "chat.message",
        "orchestrator.route",
        "select_speaker",
        "agent.turn.started",
        "agent.turn.ended",
        "chat.message",
        "orchestrator.aggregate",
        "lifecycle.tool_call",
        "lifecycle.tool_result",
        "chat.ended",
        "orchestrator.complete",
    ];
    let mut rest = names.iter();
    for name in expected {
        assert!(rest.any(|it| *it == name), "{name} is missing or out of order: {names:#?}");
    }
    assert_eq!(names.iter().filter(|name| **name == "select_speaker").count(), 2);
    let result = lines.last().expect("a result");
    assert_eq!((&result["type"], &result["status"]), (&"result".into(), &"completed".into()));
    assert_eq!((&result["workflow"], &result["chat_id"]), (&"story".into(), &"c1".into()));
    assert_eq!(result["output"], "it is good");
    let said = result["messages"].as_array().expect("messages");
    let speakers: Vec<_> = said.iter().map(|it| it["speaker"].as_str().expect("a name")).collect();
    assert_eq!(speakers, ["user", "writer", "editor"]);
}

#[test]
fn the_same_seed_gives_the_same_events() {
    let random = ORCHESTRATOR.replace("DefaultPattern", "RandomPattern");
    let random =
        random.replace("initial_agent: writer\n", "").replace("max_turns: 4", "max_turns: 12");
    let sandbox = story(&[("orchestrator.yaml", &random)]);
    let speakers = |seed: &str| {
        let ran = run(&sandbox, &["--json", "-q", "--seed", seed]).exits(6);
        let lines = ran.json_lines();
        let turns = lines.iter().filter(|it| it["name"] == "select_speaker");
        turns.map(|it| it["agent"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let first = speakers("7");
    assert_eq!(first.len(), 12);
    assert_eq!(first, speakers("7"));
    assert!((0..8).any(|seed| speakers(&seed.to_string()) != first), "every seed gives the same");
}

#[test]
fn app_user_and_chat_are_seen_by_lifecycle_tools() {
    let sandbox = story(&[]);
    run(&sandbox, &["-q", "--app", "shop", "--user", "ada", "--chat-id", "c-7"]).exits(0);
    assert_eq!(sandbox.read("began.txt"), "story shop ada c-7\n");
    run(&sandbox, &["-q"]).exits(0);
    assert!(sandbox.read("began.txt").starts_with("story local local chat_"), "the defaults");
}

#[test]
fn declared_variables_can_be_set_and_others_cannot() {
    let variables = "definitions:\n  - name: mood\n    type: string\n    source: { type: state, default: calm }\n";
    let sandbox = story(&[("context_variables.yaml", variables)]);
    let result = result(&run(&sandbox, &["--json", "-q", "--set", "mood=wild"]).exits(0));
    assert_eq!(result["variables"]["mood"], "wild");
    run(&sandbox, &["--set", "moood=wild"]).exits(2).says("did you mean `mood`?");
    run(&sandbox, &["--set", "app_id=x"]).exits(2).says("--app");
}

#[test]
fn another_agent_may_begin_and_an_unknown_one_may_not() {
    let ran = run(&story(&[]), &["--agent", "editor"]).exits(0);
    assert_eq!(ran.stdout, "editor:\nit is good\n");
    run(&story(&[]), &["--agent", "editr"]).exits(2).says("did you mean `editor`?");
}

#[test]
fn a_lifecycle_tool_that_fails_is_told_with_its_reason_and_the_chat_goes_on() {
    let desk = "def open_desk():\n    raise RuntimeError('no desk')\n\n\ndef count():\n    pass\n\n\ndef close_desk():\n    pass\n";
    let ran = run(&story(&[("tools/desk.py", desk)]), &[]).exits(0);
    let told = ["LIFECYCLE", "before_chat", "open_desk", "failed", "no desk"];
    let is_told = |line: &str| told.iter().all(|part| line.contains(part));
    assert!(ran.stderr.lines().any(is_told), "{ran}");
    assert!(ran.stderr.contains("Traceback"), "{ran}");
}

#[test]
fn secrets_do_not_come_out_of_messages_or_events() {
    let variables = "definitions:\n  - name: key\n    type: string\n    source: { type: config, env_var: STORY_API_KEY }\n";
    let desk = "def open_desk(context_variables):
    context_variables.data['note'] = 'sk-' + 'very-secret-1'


def count():
    print('sk-' + 'very-secret-1')
    return 'sk-' + 'very-secret-1'


def close_desk():
    pass
";
    let sandbox = story(&[
        ("context_variables.yaml", variables),
        ("tools/desk.py", desk),
        ("writer.json", "[\"the key is sk-very-secret-1\"]"),
    ]);
    for more in [&[][..], &["--json"], &["-q", "--agent", "writer"]] {
        let mut command = sandbox.command(&[RUN, more].concat());
        let output = command.env("STORY_API_KEY", "sk-very-secret-1").output();
        let ran = Ran::of(output.expect("the program starts")).exits(0);
        assert!(!ran.to_string().contains("very-secret"), "{more:?}: {ran}");
    }
}

#[test]
fn what_is_not_for_workflows_is_refused_by_name() {
    let sandbox = story(&[]);
    run(&sandbox, &["--watch"]).exits(2).says("--watch").says("a workflow is run once");
    let ran = sandbox.run(&["chat", "workflows/story"]).exits(2);
    ran.says("tenure run workflows/story");
    sandbox.run(&["chat", "."]).exits(2).says("holds workflows and no card");
    sandbox.run(&["dump", "workflows/story"]).exits(2).says("tenure explain workflows/story");
    sandbox.write("card.md", "---\nname: a\nmodel: passthrough\n---\nx\n");
    let ran = sandbox.run(&["run", "card.md", "-m", "hi", "--user", "ada"]).exits(2);
    ran.says("--user is for workflows");
}

/// The tools of the chat count too, which no agent's chain has.
#[test]
fn metrics_of_an_agent_have_the_lifecycle_tools_of_its_workflow() {
    let hooked =
        "system_message: Write.\n    hooks:\n      - { use: metrics, with: { file: numbers.txt } }";
    let agents = AGENTS.replace("system_message: Write.", hooked);
    let sandbox = story(&[("agents.yaml", &agents)]);
    sandbox.run(&["run", "workflows/story", "--trust", "-q"]).exits(0);
    let numbers = sandbox.read("workflows/story/numbers.txt");
    let calls = "tenure_lifecycle_tool_calls_total";
    for line in [
        format!(r#"{calls}{{trigger="before_chat",tool="open_desk",status="success"}} 1"#),
        format!(r#"{calls}{{trigger="after_chat",tool="close_desk",status="success"}} 1"#),
        format!(r#"{calls}{{trigger="after_agent",tool="count",status="success"}} 1"#),
        format!(
            r#"{calls}{{trigger="after_chat",tool="platform.log_workflow_completion",status="success"}} 1"#
        ),
    ] {
        assert!(numbers.lines().any(|found| found == line), "{line} in:\n{numbers}");
    }
}
