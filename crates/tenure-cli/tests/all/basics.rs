//! Every exit code, and what is printed where.

use crate::support::Sandbox;

const ECHO: &str = "---\nname: echo\nmodel: passthrough\n---\nYou repeat.\n";

/// An agent whose model is this script.
fn scripted(script: &str, more: &str) -> Sandbox {
    let card = format!("---\nname: actor\nmodel: script:actor.json\n{more}---\nYou act.\n");
    Sandbox::with(&[("actor.md", &card), ("actor.json", script)])
}

const TOOL: &str = "def roll(sides: int) -> str:\n    \"\"\"Rolls a die.\"\"\"\n    return '4'\n";

#[test]
fn exit_0_and_the_answer_alone_on_standard_output() {
    let sandbox = Sandbox::with(&[("echo.md", ECHO)]);
    let ran = sandbox.run(&["run", "echo.md", "-m", "hello there"]).exits(0);
    assert_eq!(ran.stdout, "hello there\n");
    let ran = ran.says("STARTING").says("COMPLETED").says("TOTAL").says("Summary");
    assert!(!ran.stderr.contains('\u{1b}'), "no colours without a terminal:\n{ran}");
}

#[test]
fn exit_1_if_the_run_fails() {
    let sandbox = scripted("[{\"error\": \"the model is ill\"}]", "");
    sandbox.run(&["run", "actor.md", "-m", "hi"]).exits(1).says("error:").says("the model is ill");
}

#[test]
fn exit_1_if_a_start_hook_raises_and_its_message_is_shown() {
    let card =
        "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:start\n---\nx\n";
    let hooks = "async def start(ctx):\n    raise ValueError('no database')\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("hooks.py", hooks)]);
    sandbox
        .run(&["run", "a.md", "-m", "hi", "--trust"])
        .exits(1)
        .says("ValueError: no database")
        .says("NOT STARTED");
}

#[test]
fn exit_2_for_mistakes_on_the_command_line() {
    let sandbox = Sandbox::with(&[("echo.md", ECHO)]);
    sandbox.run(&["runn"]).exits(2).says("unrecognized subcommand");
    sandbox.run(&["run"]).exits(2);
    sandbox.run(&["run", "echo.md", "-m", "x", "--timeout", "30"]).exits(2).says("30s");
    sandbox.run(&["run", "nowhere.md", "-m", "x"]).exits(2).says("there is no `nowhere.md`");
    sandbox
        .run(&["run", "echo.md", "-m", "x", "--agent", "ecco"])
        .exits(2)
        .says("`ecco`")
        .says("echo");
    sandbox.run(&["explain", "echo.md", "--point", "on_strat"]).exits(2).says("on_start");
    sandbox.run(&["dump", "."]).exits(2).says("is a directory");
}

#[test]
fn exit_2_if_there_is_no_message_and_nobody_to_type_one() {
    let sandbox = Sandbox::with(&[("echo.md", ECHO)]);
    let ran = sandbox.on_terminal(&["run", "echo.md"], &[]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stdout.contains("-m"), "{ran}");
    sandbox.run(&["run", "echo.md"]).exits(2).says("empty");
}

#[test]
fn the_message_is_read_from_standard_input() {
    let sandbox = Sandbox::with(&[("echo.md", ECHO)]);
    let ran = sandbox.run_with_input(&["run", "echo.md", "-q"], "two\nlines\n").exits(0);
    assert_eq!(ran.stdout, "two\nlines\n");
    assert_eq!(ran.stderr, "");
}

#[test]
fn exit_3_if_the_check_finds_errors_and_nothing_runs() {
    let sandbox = Sandbox::with(&[("bad.md", "---\nname: bad\nmodle: passthrough\n---\nx\n")]);
    sandbox.run(&["run", "bad.md", "-m", "hi"]).exits(3).says("modle").says("1 error");
    sandbox.run(&["check", "bad.md"]).exits(3).prints("modle");
    sandbox.run(&["dump", "bad.md"]).exits(3).says("modle");
    sandbox.run(&["explain", "bad.md"]).exits(3).says("modle");
}

#[test]
fn exit_4_if_the_project_is_not_trusted() {
    let card =
        "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:start\n---\nx\n";
    let hooks = "async def start(ctx):\n    open('ran.txt', 'w').write('x\\n')\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("hooks.py", hooks)]);
    sandbox
        .run(&["run", "a.md", "-m", "hi"])
        .exits(4)
        .says("not trusted")
        .says("hooks.py")
        .says("on_start start")
        .says("tenure trust review")
        .says("tenure trust accept");
    assert_eq!(sandbox.read("ran.txt"), "");
}

#[test]
fn exit_5_if_a_guard_says_no() {
    let card = "---\nname: a\nmodel: passthrough\nhooks:\n  - { on: before_agent, run: h.py:no, policy: deny }\n---\nx\n";
    let hooks = "async def no(ctx):\n    return {'deny': 'not today'}\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("h.py", hooks)]);
    let ran = sandbox.run(&["run", "a.md", "-m", "hi", "--trust"]).exits(5);
    let ran = ran.says("error: denied by `h.py:no` at before_agent: not today");
    assert_eq!(ran.stdout, "");
    let ran = sandbox.run(&["run", "a.md", "-m", "hi", "--trust", "--json", "-q"]).exits(5);
    let result = ran.json_lines().pop().expect("a result");
    assert_eq!(result["error"], "denied by `h.py:no` at before_agent: not today");
}

#[test]
fn an_exception_names_the_hook_and_the_line_also_where_nothing_else_is_printed() {
    let card = "---\nname: a\nmodel: passthrough\nhooks:\n  - { on: before_agent, run: h.py:check }\n---\nx\n";
    let hooks = "async def check(ctx):\n    x = 1\n    raise ValueError('no database')\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("h.py", hooks)]);
    sandbox
        .run(&["run", "a.md", "-m", "hi", "--trust", "-q"])
        .exits(1)
        .says("`h.py:check`")
        .says("before_agent")
        .says("ValueError: no database")
        .says("h.py:3");
}

#[test]
fn a_run_that_cannot_start_sums_nothing_up() {
    let card =
        "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:start\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("hooks.py", "def start(ctx):\n    pass\n")]);
    // There is no Python here.
    let mut command = sandbox.command(&["run", "a.md", "-m", "hi", "--trust"]);
    let output = command.env("PATH", sandbox.home()).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error:") && !said.contains("Summary"), "{said}");
}

#[test]
fn exit_6_if_the_model_comes_to_no_end() {
    let call = "{\"call\": \"roll\", \"with\": {\"sides\": 6}}";
    let script = format!("[{call}, {call}, {call}, {call}]");
    let more = "function_tools: [tools.py:roll]\nrequest_params: { max_iterations: 2 }\n";
    let sandbox = scripted(&script, more);
    sandbox.write("tools.py", TOOL);
    sandbox
        .run(&["run", "actor.md", "-m", "hi", "--trust"])
        .exits(6)
        .says("max_steps = 2; allow more with `request_params: { max_iterations: N }`");
}

#[test]
fn exit_124_if_the_time_is_up_and_the_shutdown_hook_runs() {
    let more = "lifecycle_hooks:\n  on_shutdown: hooks.py:stop\n";
    let sandbox = scripted("[{\"text\": \"late\", \"wait\": \"60s\"}]", more);
    sandbox
        .write("hooks.py", "async def stop(ctx):\n    open('stopped.txt', 'w').write('yes\\n')\n");
    let ran = sandbox.run(&["run", "actor.md", "-m", "hi", "--trust", "--timeout", "2s"]);
    let ran = ran.exits(124).says("TIMED OUT");
    let ran = ran.says("error: the run did not end within 2s (--timeout)");
    assert_eq!(sandbox.read("stopped.txt"), "yes\n", "{ran}");
    assert_eq!(ran.stdout, "");
}

#[test]
fn the_time_of_the_start_counts_and_it_is_rolled_back() {
    let card = "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:start\n  on_shutdown: hooks.py:stop\n---\nx\n";
    let hooks = "import time


def start(ctx):
    open('started.txt', 'w').write('yes\\n')
    time.sleep(60)


def stop(ctx):
    open('stopped.txt', 'w').write('yes\\n')
";
    let sandbox = Sandbox::with(&[("a.md", card), ("hooks.py", hooks)]);
    let began = std::time::Instant::now();
    let args = ["run", "a.md", "-m", "hi", "--trust", "--json", "--timeout", "2s"];
    let ran = sandbox.run(&args).exits(124).says("did not end within 2s");
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(sandbox.read("started.txt"), "yes\n", "{ran}");
    assert_eq!(sandbox.read("stopped.txt"), "yes\n", "{ran}");
    let result = ran.json_lines().pop().expect("a result");
    assert_eq!((&result["outcome"], &result["agent"]), (&"timed_out".into(), &"a".into()));
}

#[test]
fn the_shorter_one_of_the_two_limits_counts() {
    let sandbox = scripted("[{\"text\": \"late\", \"wait\": \"60s\"}]", "");
    let run = |limit| sandbox.run(&["run", "actor.md", "-m", "hi", "--timeout", limit]).exits(124);
    sandbox.write("tenure.toml", "[limits]\nturn = \"200ms\"\n");
    run("50s").says("the turn did not end within 200ms ([limits] turn)");
    sandbox.write("tenure.toml", "[limits]\nturn = \"50s\"\n");
    run("200ms").says("the run did not end within 200ms (--timeout)");
}

#[test]
fn quiet_prints_the_answer_and_nothing_else() {
    let sandbox = Sandbox::with(&[("echo.md", ECHO)]);
    let ran = sandbox.run(&["run", "echo.md", "-m", "hello", "-q"]).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("hello\n", ""));
}

#[test]
fn json_is_one_object_a_line_and_ends_with_the_result() {
    let sandbox = Sandbox::with(&[("echo.md", ECHO)]);
    let ran = sandbox.run(&["run", "echo.md", "-m", "hello", "--json", "-q"]).exits(0);
    let lines = ran.json_lines();
    let (result, events) = lines.split_last().expect("at least the result");
    assert!(events.iter().all(|line| line["type"] == "event"), "{ran}");
    assert!(events.iter().any(|line| line["name"] == "agent.phase.idle_entered"), "{ran}");
    let ended = events.iter().find(|line| line["name"] == "agent.turn.ended").expect("a turn");
    assert!(ended["data"]["took_ms"].as_f64().is_some_and(|took| took > 0.0), "{ended}");
    assert!(ended["data"]["took"].is_null(), "{ended}");
    assert_eq!(result["type"], "result");
    assert_eq!(result["agent"], "echo");
    assert_eq!(result["outcome"], "ok");
    assert_eq!(result["output"], "hello");
    assert_eq!(result["exit_code"], 0);
    assert!(result["usage"]["calls"].as_u64() > Some(0), "{result}");
    assert!(result["failures"].as_array().is_some_and(Vec::is_empty), "{result}");
}

#[test]
fn json_tells_how_it_failed() {
    let sandbox = scripted("[{\"error\": \"ill\"}]", "");
    let ran = sandbox.run(&["run", "actor.md", "-m", "hi", "--json", "-q"]).exits(1);
    let result = ran.json_lines().pop().expect("a result");
    assert_eq!(result["agent"], "actor");
    assert_eq!(result["outcome"], "failed");
    assert_eq!(result["exit_code"], 1);
    assert!(result["error"].as_str().is_some_and(|it| it.contains("ill")), "{result}");
    let bad = Sandbox::with(&[("bad.md", "---\nmodle: x\n---\nx\n")]);
    let ran = bad.run(&["run", "bad.md", "-m", "hi", "--json"]).exits(3);
    assert_eq!(ran.json_lines().pop().expect("a result")["exit_code"], 3);
}

#[test]
fn colours_obey_the_usual_variables() {
    let sandbox = Sandbox::with(&[("echo.md", ECHO)]);
    let run = |variables: &[(&str, &str)]| {
        let mut command = sandbox.command(&["run", "echo.md", "-m", "hi"]);
        command.envs(variables.iter().copied());
        let output = command.output().expect("the program starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
    assert!(!run(&[]).contains('\u{1b}'));
    assert!(!run(&[("CLICOLOR", "1")]).contains('\u{1b}'));
    assert!(!run(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "")]).contains('\u{1b}'));
    let on_terminal = |args: &[&str]| sandbox.on_terminal(args, &[]).stdout;
    assert!(on_terminal(&["run", "echo.md", "-m", "hi"]).contains("COMPLETED\u{1b}["));
}

#[test]
fn what_is_printed_fits_the_columns_there_are() {
    let more = "lifecycle_hooks:\n  on_start: hooks.py:start\n";
    let sandbox = scripted("[\"done\"]", more);
    sandbox.write("hooks.py", "async def start(ctx):\n    print('word ' * 60)\n");
    let mut command = sandbox.command(&["run", "actor.md", "-m", "hi", "--trust"]);
    let output = command.env("COLUMNS", "40").output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("TOTAL"), "{said}");
    for line in said.lines() {
        assert!(line.chars().count() <= 40, "{line:?} in\n{said}");
    }
}

#[test]
fn foreign_text_cannot_steer_the_terminal() {
    let more = "lifecycle_hooks:\n  on_start: hooks.py:start\n";
    let sandbox = scripted("[\"red \\u001b[31m and clear \\u001b[2J\"]", more);
    sandbox
        .write("hooks.py", "async def start(ctx):\n    print('\\033[2Jgone\\033]0;title\\007')\n");
    let ran = sandbox.run(&["run", "actor.md", "-m", "hi", "--trust"]).exits(0).says("gone");
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\u{7}'), "{ran}");
    let shown = sandbox.on_terminal(&["run", "actor.md", "-m", "hi", "--trust"], &[]);
    assert!(!shown.stdout.contains("\u{1b}[2Jgone"), "{shown}");
    assert!(!shown.stdout.contains("clear \u{1b}[2J"), "{shown}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_tenure");
    let line = format!("{program} schema card | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}");
    let output = sandbox.other("bash", &["-c", &line]).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "{output:?}");
}
