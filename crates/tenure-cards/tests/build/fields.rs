//! What the fields of an agent's card do.

use crate::support::*;
use std::sync::Arc;
use std::sync::Mutex;
use tenure_core::Outcome;
use tenure_core::ask::{Answer, PendingAsk};

async fn answer(project: &Project, message: &str) -> Result<String, String> {
    let team = project.team();
    team.start().await.expect("it starts");
    let result = team.run(None, message).await;
    team.shutdown().await;
    result.map(|run| run.output).map_err(|error| error.to_string())
}

fn card(fields: &str) -> String {
    format!("---\nname: a\ndefault: true\n{fields}\n---\nx\n")
}

#[tokio::test]
async fn the_models_without_a_network_are_there_by_name() {
    for (fields, message, expected) in [
        ("", "hi", "hi"),
        ("model: passthrough", "hi", "hi"),
        ("model: silent", "hi", "hi"),
        ("model: playback\nmessages: past.txt", "x", "hello"),
        ("model: playback", "x", "HISTORY LOADED (1) messages"),
        ("model: 'script:s.json'", "x", "you said x"),
        ("model: sonnet\nrequest_params: { model: silent }", "hi", "hi"),
    ] {
        let project = Project::new([
            ("a.md", &card(fields)),
            ("past.txt", "---USER\nhi\n---ASSISTANT\nhello\n"),
            ("s.json", r#"[{"text": "you said {input}"}]"#),
        ]);
        assert_eq!(answer(&project, message).await.as_deref(), Ok(expected), "{fields}");
    }
}

#[tokio::test]
async fn a_turn_has_twenty_steps_unless_the_card_says_otherwise() {
    let script: String = "- { call: nothing }\n".repeat(50);
    for (fields, steps) in [("", 20), ("request_params: { max_iterations: 3 }", 3)] {
        let project = Project::new([
            ("a.md", &card(&format!("model: script:s.yml\n{fields}"))),
            ("s.yml", &script),
        ]);
        let team = project.team();
        team.start().await.expect("it starts");
        let error = team.run(None, "go").await.expect_err("it never ends");
        team.shutdown().await;
        assert_eq!(error.outcome(), Outcome::MaxSteps);
        let report = error.error().and_then(|error| error.report()).expect("a report");
        assert_eq!(report.steps, steps);
    }
}

#[tokio::test]
async fn messages_are_what_an_agent_knows_when_it_starts() {
    // Playback shows what it is given.
    for (fields, expected) in [
        ("model: script:s.yml\nmessages: past.txt", ["3", "5"]),
        ("model: script:s.yml\nmessages: past.txt\nuse_history: false", ["3", "3"]),
        ("model: script:s.yml\nuse_history: false", ["1", "1"]),
        ("model: script:s.yml\nrequest_params: { use_history: false }", ["1", "1"]),
    ] {
        let hooks =
            "def count(ctx, next):\n    return {'text': str(len(ctx.request['messages']))}\n";
        let fields = format!("{fields}\nhooks: [{{ on: wrap_model_call, run: 'count.py:count' }}]");
        let project = Project::new([
            ("a.md", &card(&fields)),
            ("count.py", hooks),
            ("past.txt", "---USER\nhi\n---ASSISTANT\nhello\n"),
            ("s.yml", "- x\n"),
        ]);
        let team = project.team();
        team.start().await.expect("it starts");
        let mut counts = Vec::new();
        for _ in 0..2 {
            counts.push(team.run(None, "x").await.expect("it runs").output);
        }
        team.shutdown().await;
        assert_eq!(counts, expected, "{fields}");
    }
}

#[tokio::test]
async fn a_shell_runs_in_its_folder_and_shows_what_it_said() {
    let project = Project::new([("a.md", &card("shell: true\ncwd: sub")), ("sub/file.txt", "x")]);
    for (command, expected) in [
        ("ls", "file.txt\n"),
        ("echo out; echo err >&2", "out\nerr\n"),
        ("echo no; exit 3", "no\nthe command ended with exit code 3"),
        ("read x; echo [$x]", "[]\n"),
        ("basename $TENURE_PROJECT | wc -l; echo ${SECRET_OF_TESTS:-none}", "1\nnone\n"),
    ] {
        let call = serde_json::json!({ "command": command });
        let said = answer(&project, &format!("***CALL_TOOL execute {call}")).await;
        assert_eq!(said.as_deref(), Ok(expected), "{command}");
    }
}

#[tokio::test]
async fn a_model_may_ask_the_person() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = asked.clone();
    let project = Project::new([("a.md", &card("human_input: true"))]);
    let team = project
        .builder()
        .on_ask(move |ask: &PendingAsk| {
            seen.lock().expect("a lock").push(ask.ask.prompt.clone());
            Some(Answer::Respond("blue".to_owned()))
        })
        .build()
        .expect("a good team");
    team.start().await.expect("it starts");
    let call = r#"***CALL_TOOL __human_input {"prompt": "which colour?"}"#;
    assert_eq!(team.run(None, call).await.expect("it runs").output, "blue");
    assert_eq!(*asked.lock().expect("a lock"), ["which colour?"]);
    team.shutdown().await;
}

#[tokio::test]
async fn skills_are_listed_and_can_be_read() {
    let skill = "---\nname: knots\ndescription: How to tie them\n---\nOver, under, through.\n";
    let hooks = "def show(ctx, next):\n    return {'text': ctx.request['instruction']}\n";
    let fields = "skills: [skills]\nhooks: [{ on: wrap_model_call, run: 'show.py:show', when: \"agent.name == 'a' and request.step == 1\" }]";
    let project = Project::new([
        ("a.md", &card(fields)),
        ("show.py", hooks),
        ("skills/knots/SKILL.md", skill),
    ]);
    let shown = answer(&project, "x").await.expect("it runs");
    assert!(shown.contains("<available_skills>\n- knots: How to tie them\n"), "{shown}");
    let project = Project::new([("a.md", &card("skills: [knots]")), ("knots/SKILL.md", skill)]);
    let read = answer(&project, r#"***CALL_TOOL read_skill {"name": "knots"}"#).await;
    assert_eq!(read.as_deref(), Ok(skill));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subagent_is_the_same_agent_without_hooks_but_with_the_guards() {
    let guard =
        "def no(ctx, next):\n    return {'deny': 'guarded in ' + ctx.agent_name.split('#')[0]}\n";
    let more =
        "subagents: true\nsubagent_model: 'script:sub.yml'\nmodel: 'script:own.yml'\nshell: true";
    let hooks = "hooks: [{ on: wrap_tool_call, run: 'guard.py:no', policy: deny, when: \"tool.name == 'execute'\" }]";
    let project = Project::new([
        ("a.md", &logged("a", &format!("{more}\n{hooks}"))),
        ("guard.py", guard),
        ("own.yml", "- { call: subagent, with: { message: help } }\n- 'it says {result}'\n"),
        ("sub.yml", "- { call: execute, with: { command: 'echo hi' } }\n- 'told {result}'\n"),
    ]);
    let said = answer(&project, "go").await;
    assert_eq!(said.as_deref(), Ok("it says told guarded in a.subagent"));
    assert_eq!(project.log(), ["start a", "stop a"], "its own start and stop are not the helper's");
    let explanation = project.team().explain("a").expect("it is there");
    assert_eq!(explanation.tools, ["execute", "read_text_file", "write_text_file", "subagent"]);
}

#[tokio::test]
async fn the_older_type_smart_has_subagents() {
    let project = Project::new([("a.md", "---\ntype: smart\nname: a\n---\nx\n")]);
    let said = answer(&project, r#"***CALL_TOOL subagent {"message": "hello helper"}"#).await;
    assert_eq!(said.as_deref(), Ok("hello helper"));
}

#[tokio::test]
async fn old_tool_calls_are_trimmed_from_the_history() {
    let script = "- { call: nothing }\n- { call: nothing }\n- { call: nothing }\n- done\n";
    for (fields, left) in [("trim_tool_history: true", 4), ("", 8)] {
        let fields = format!("model: script:s.yml\n{fields}");
        let project = Project::new([("a.md", &card(&fields)), ("s.yml", script)]);
        let team = project.team();
        team.start().await.expect("it starts");
        let run = team.run(None, "go").await.expect("it runs");
        assert_eq!(run.turn.expect("a turn").history().len(), left, "{fields}");
        team.shutdown().await;
    }
}

#[tokio::test]
async fn a_trajectory_is_saved_when_the_turn_ends() {
    let project = Project::new([("a.md", &card("use_history: false\nsave_trajectory: true"))]);
    answer(&project, "hello").await.expect("it runs");
    let dir = project.path().join(".tenure/trajectories");
    let files: Vec<_> = std::fs::read_dir(dir).expect("the folder").collect();
    assert_eq!(files.len(), 1);
    let path = files[0].as_ref().expect("a file").path();
    let text = std::fs::read_to_string(path).expect("its text");
    let turn: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&turn["outcome"], &turn["output"]), (&"ok".into(), &"hello".into()));
    assert_eq!(turn["messages"][0]["text"], "hello");
}

#[cfg(unix)]
#[tokio::test]
async fn a_trajectory_is_never_written_outside_of_the_project() {
    for inner in [None, Some("trajectories")] {
        let outside = tempfile::tempdir().expect("a folder");
        let project = Project::new([("a.md", &card("use_history: false\nsave_trajectory: true"))]);
        let mut link = project.path().join(".tenure");
        if let Some(inner) = inner {
            std::fs::create_dir(&link).expect("a folder");
            link.push(inner);
        }
        std::os::unix::fs::symlink(outside.path(), link).expect("a link");
        let team = project.team();
        team.start().await.expect("it starts");
        let run = team.run(None, "hello").await.expect("it runs");
        let failures = run.turn.expect("a turn").failures;
        team.shutdown().await;
        assert_eq!(std::fs::read_dir(outside.path()).expect("the folder").count(), 0);
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert!(failures[0].message.contains("leads out of the project"), "{failures:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_functions_are_tools() {
    let tools =
        "async def add(a: int, b: int = 1) -> int:\n    \"\"\"Adds.\"\"\"\n    return a + b\n";
    let project =
        Project::new([("a.md", &card("function_tools: 'tools.py:add'")), ("tools.py", tools)]);
    let said = answer(&project, r#"***CALL_TOOL add {"a": 41}"#).await;
    assert_eq!(said.as_deref(), Ok("42"));
}

#[tokio::test]
async fn limits_of_the_project_hold() {
    let project = Project::new([
        ("a.md", &card("model: slow")),
        ("tenure.toml", "[limits]\nturn = \"200ms\"\n"),
    ]);
    let team = project.team();
    team.start().await.expect("it starts");
    let error = team.run(None, "x").await.expect_err("it takes too long");
    assert_eq!(error.outcome(), Outcome::TimedOut);
    team.shutdown().await;
}

#[tokio::test]
async fn a_shell_command_that_says_too_much_is_cut() {
    let project = Project::new([("a.md", &card("shell: true"))]);
    let call = r#"***CALL_TOOL execute {"command": "head -c 1000000 /dev/zero | tr '\\0' x"}"#;
    let said = answer(&project, call).await.expect("it runs");
    assert!(said.ends_with("x\n[934464 more bytes were left out]"), "{}", said.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_shell_command_leaves_no_process() {
    let project = Project::new([("a.md", &card("shell: true"))]);
    let (team, mut recorder) = project.recorded();
    team.start().await.expect("it starts");
    let marker = format!("300.{}", std::process::id());
    let call =
        format!(r#"***CALL_TOOL execute {{"command": "sleep {marker} & sleep {marker}; true"}}"#);
    let (result, ()) = tokio::join!(team.run(None, call), async {
        recorder.wait_for(|event| event.name() == "tool.executing").await;
        while processes(&marker) < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        team.cancel();
    });
    assert_eq!(result.expect_err("it was cancelled").outcome(), Outcome::Cancelled);
    team.shutdown().await;
    for _ in 0..200 {
        if processes(&marker) == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("a process was left behind");
}

/// How many processes of `sleep` have this argument.
fn processes(argument: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("there is /proc");
    entries
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| line.split(|byte| *byte == 0).eq([b"sleep", argument.as_bytes(), b""]))
        .count()
}
