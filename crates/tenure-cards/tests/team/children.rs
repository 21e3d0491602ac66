//! Agents as tools of others.

use crate::support::*;
use crate::team::plain_log;
use std::time::Duration;

/// A parent that calls its child once for each word of what it is told.
fn parent(more: &str) -> String {
    format!(
        "---\nname: parent\ndefault: true\nmodel: script:script.yml\nagents: [child]\n{more}\n---\nx\n"
    )
}

const ONE: &str = "- { call: agent__child, with: { message: '{input}' } }\n- '{result}'\n";
const THREE: &str = "- calls: [{ call: agent__child, with: { message: a } }, { call: agent__child, with: { message: b } }, { call: agent__child, with: { message: c } }]\n- done {result}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_cannot_start_is_a_tool_error_and_the_parent_goes_on() {
    // The child itself starts; its clones do not.
    let hooks = "def start(ctx):\n    if ctx.agent_name.endswith('[tool]'):\n        raise RuntimeError('no room')\n";
    let child = "---\nname: child\nlifecycle_hooks: { on_start: child.py:start }\n---\nx\n";
    let project = Project::new([
        ("child.py", hooks),
        ("child.md", child),
        ("parent.md", &parent("")),
        ("script.yml", ONE),
    ]);
    let (team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    let output = team.run(None, "hello").await.expect("the parent goes on").output;
    assert!(output.starts_with("Spawn failed: ") && output.contains("no room"), "{output}");
    team.shutdown().await;
    tenure_testkit::assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_takes_too_long_is_a_tool_error_and_is_stopped() {
    let project = Project::new([
        ("child.md", &logged("child", "model: slow")),
        ("parent.md", &parent("child_timeout_sec: 0.3")),
        ("script.yml", ONE),
    ]);
    let (team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    let before = std::time::Instant::now();
    let output = team.run(None, "hello").await.expect("the parent goes on").output;
    assert!(output.contains("did not end within its limit"), "{output}");
    assert!(before.elapsed() < Duration::from_millis(2900), "the model was not waited for");
    team.shutdown().await;
    let log = plain_log(&project);
    assert_eq!(log, ["start child", "start child", "stop child", "stop child"]);
    tenure_testkit::assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_clones_than_max_parallel_wait_their_turn() {
    let child_script = "- { text: '{input}', wait: 100ms }\n";
    for (more, overlap) in [("max_parallel: 1", false), ("", true)] {
        let project = Project::new([
            ("child.md", &logged("child", "model: script:child.yml")),
            ("parent.md", &parent(more)),
            ("script.yml", THREE),
            ("child.yml", child_script),
        ]);
        let (team, recorder) = project.recorded();
        team.start().await.expect("it starts");
        assert_eq!(team.run(None, "go").await.expect("it runs").output, "done c");
        team.shutdown().await;
        tenure_testkit::assert_paired(&recorder);
        let log = plain_log(&project);
        let clones = &log[1..7];
        let in_turn = ["start child", "stop child"].repeat(3);
        assert_eq!(clones != in_turn, overlap, "{more:?}: {log:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_childs_schema_is_the_tools_and_it_is_told_the_arguments() {
    let child = "---\nname: child\ntool_input_schema:\n  type: object\n  properties: { city: { type: string, description: The city } }\n  required: [city]\n---\nx\n";
    let script = "- { call: agent__child, with: { city: Bern } }\n- '{result}'\n";
    let project =
        Project::new([("child.md", child), ("parent.md", &parent("")), ("script.yml", script)]);
    let team = project.team();
    team.start().await.expect("it starts");
    assert_eq!(team.run(None, "go").await.expect("it runs").output, r#"{"city":"Bern"}"#);
    team.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clone_gets_the_history_that_its_parent_says_it_gets() {
    for (source, merge, answers) in [("none", "none", ["1", "1"]), ("child", "child", ["1", "3"])] {
        let hooks = "def count(ctx):\n    return {'finish': str(len(ctx.request['messages']))}\n";
        let child =
            "---\nname: child\nhooks:\n  - { on: before_model, run: 'count.py:count' }\n---\nx\n";
        let more = format!("history_source: {source}\nhistory_merge_target: {merge}");
        let project = Project::new([
            ("count.py", hooks),
            ("child.md", child),
            ("parent.md", &parent(&more)),
            ("script.yml", ONE),
        ]);
        let team = project.team();
        team.start().await.expect("it starts");
        let mut outputs = Vec::new();
        for _ in 0..2 {
            outputs.push(team.run(None, "go").await.expect("it runs").output);
        }
        team.shutdown().await;
        assert_eq!(outputs, answers, "{source} {merge}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g11_a_guard_of_a_card_comes_along_into_its_children_however_deep() {
    let guard = "hooks: [{ on: wrap_tool_call, run: ['./guard.sh'], policy: deny, name: guard }]";
    let refuse = "#!/bin/sh\ncall=$(cat)\ncase $call in\n  *'\"name\":\"execute\"'*) echo '{\"deny\": \"no shell\"}';;\n  *) echo '{\"allow\": true}';;\nesac\n";
    let project = Project::new([
        ("leaf.md", "---\nname: leaf\nshell: true\n---\nx\n"),
        ("middle.yaml", "type: chain\nname: child\nsequence: [leaf]\n"),
        ("parent.md", &parent(guard)),
        ("script.yml", ONE),
        ("guard.sh", refuse),
    ]);
    project.make_executable("guard.sh");
    let (team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    let call = r#"***CALL_TOOL execute {"command": "touch ran"}"#;
    assert_eq!(team.run(None, call).await.expect("it runs").output, "no shell");
    assert_eq!(team.run(Some("leaf"), call).await.expect("it runs").output, "<empty>");
    assert!(project.path().join("ran").exists(), "without the parent there is no guard");
    team.shutdown().await;
    tenure_testkit::assert_paired(&recorder);
}

#[tokio::test]
async fn what_refuses_a_tool_refuses_it_to_a_subagent_too() {
    let card = "subagents: true\nshell: true\nmodel: script:own.json\n\
                lifecycle_hooks: { on_start: 'log.py:start', on_shutdown: 'log.py:stop' }\n\
                hooks:\n  - { on: wrap_tool_call, run: 'no.py:shell', after: [tool_hooks], name: refuse }\n\
                tool_hooks: { before_tool_call: 'no.py:note' }\n";
    let no = "import log\n\n\n\
              async def shell(ctx, next):\n    if ctx.tool.name == 'execute':\n        \
              return {'deny': 'no shell'}\n    return await next()\n\n\n\
              async def note(ctx):\n    log.log('tools of ' + ctx.agent_name)\n";
    let own = r#"{"turns": [
        {"when": "go", "replies": [{"call": "subagent", "with": {"message": "help"}}, "it said {result}"]},
        {"replies": [{"call": "execute", "with": {"command": "touch ran"}}, "{result}"]}
    ]}"#;
    let project = Project::new([("a.yaml", card), ("no.py", no), ("own.json", own)]);
    let team = project.team();
    team.start().await.expect("it starts");
    let run = team.run(None, "go").await.expect("the turn goes on");
    team.shutdown().await;
    assert!(run.output.contains("no shell"), "{}", run.output);
    assert!(!project.path().join("ran").exists(), "the clone's tool ran");
    let log = project.log();
    assert!(log.iter().any(|line| line.starts_with("tools of a.subagent")), "{log:?}");
    let lives: Vec<_> = log.iter().filter(|line| !line.starts_with("tools")).collect();
    assert_eq!(lives, ["start a", "stop a"], "the helper's life is nobody's business");
}

#[tokio::test]
async fn as_many_children_run_at_once_as_the_card_says() {
    let parent = "agents: [child]\nmodel: script:many.json\nmax_parallel: 20\n";
    let child = "tool_only: true\nmodel: script:wait.json\n";
    let calls: Vec<_> = (0..20)
        .map(|n| format!(r#"{{"call": "agent__child", "with": {{"message": "{n}"}}}}"#))
        .collect();
    let many = format!(r#"[{{"calls": [{}]}}, "done"]"#, calls.join(","));
    let wait = r#"[{"text": "{input}", "wait": "400ms"}]"#;
    let files = [
        ("parent.yaml", parent),
        ("child.yaml", child),
        ("many.json", many.as_str()),
        ("wait.json", wait),
    ];
    let project = Project::new(files);
    let team = project.team();
    team.start().await.expect("it starts");
    let begun = std::time::Instant::now();
    team.run(None, "go").await.expect("it runs");
    let took = begun.elapsed();
    team.shutdown().await;
    assert!(took.as_millis() < 790, "they did not run at the same time: {took:?}");
}

#[tokio::test]
async fn a_refusal_at_on_start_is_a_denial() {
    let card = "lifecycle_hooks: { on_start: 'no.py:no' }\n";
    let no = "def no(ctx):\n    return {'deny': 'not on a Sunday'}\n";
    let project = Project::new([("a.yaml", card), ("no.py", no)]);
    let error = project.team().start().await.expect_err("it was refused");
    assert_eq!(error.outcome(), tenure_core::Outcome::Denied, "{error}");
    assert!(error.to_string().contains("not on a Sunday"), "{error}");
}
