//! Trust: nothing of a project is executed before somebody agreed to exactly that (G13).

use crate::support::Sandbox;
use std::os::unix::fs::PermissionsExt as _;

const CARD: &str =
    "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:start\n---\nx\n";
const HOOKS: &str = "async def start(ctx):\n    open('ran.txt', 'w').write('yes\\n')\n";

fn project() -> Sandbox {
    Sandbox::with(&[("a.md", CARD), ("hooks.py", HOOKS)])
}

const RUN: &[&str] = &["run", "a.md", "-m", "hi"];

#[test]
fn g13_the_first_run_asks_and_a_yes_is_remembered() {
    let sandbox = project();
    let shown = sandbox.on_terminal(RUN, &[("[y/N]", "y")]).exits(0);
    assert!(shown.stdout.contains("on_start start"), "{shown}");
    assert_eq!(sandbox.read("ran.txt"), "yes\n");
    let ran = sandbox.run(RUN).exits(0);
    assert_eq!(ran.stdout, "hi\n");
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    };
    assert_eq!(mode(&sandbox.store()), 0o600);
    assert_eq!(mode(sandbox.store().parent().expect("a folder")), 0o700);
}

#[test]
fn g13_without_a_terminal_the_list_and_the_way_on_are_shown() {
    let sandbox = project();
    sandbox.write("tenure.toml", "[hooks]\nenv = [\"DATABASE_URL\"]\n");
    let ran = sandbox.run(RUN).exits(4);
    let root = sandbox.project().canonicalize().expect("the project");
    insta::assert_snapshot!(ran.stderr.replace(&*root.to_string_lossy(), "PROJECT"));
}

#[test]
fn g13_anything_but_a_yes_is_a_no() {
    for answer in ["n", "", "maybe", "^D"] {
        let sandbox = project();
        let shown = sandbox.on_terminal(RUN, &[("[y/N]", answer)]).exits(4);
        assert_eq!(sandbox.read("ran.txt"), "", "{answer:?}\n{shown}");
        assert!(!sandbox.store().exists(), "{answer:?}");
    }
}

#[test]
fn g13_a_changed_hook_is_asked_about_again() {
    let sandbox = project();
    sandbox.run(&["trust", "accept", "."]).exits(0);
    sandbox.run(RUN).exits(0);
    std::fs::remove_file(sandbox.path("ran.txt")).expect("it ran");
    sandbox.write("hooks.py", &format!("{HOOKS}\n# changed\n"));
    let ran = sandbox.run(RUN).exits(4).says("changed").says("hooks.py");
    assert_eq!(sandbox.read("ran.txt"), "", "{ran}");
    let shown = sandbox.on_terminal(RUN, &[("[y/N]", "y")]).exits(0);
    assert!(shown.stdout.contains("changed"), "{shown}");
    sandbox.run(RUN).exits(0);
}

#[test]
fn g13_a_new_hook_is_asked_about_too() {
    let sandbox = project();
    sandbox.run(&["trust", "accept", "."]).exits(0);
    sandbox.write(
        "a.md",
        &CARD
            .replace("---\nx", "hooks:\n  - { on: before_agent, run: [\"sh\", \"x.sh\"] }\n---\nx"),
    );
    sandbox.write("x.sh", "echo '{}'\n");
    sandbox.run(RUN).exits(4).says("new");
}

#[test]
fn g13_trust_for_one_command_records_nothing() {
    let sandbox = project();
    sandbox.run(&["run", "a.md", "-m", "hi", "--trust"]).exits(0);
    assert!(!sandbox.store().exists());
    sandbox.run(RUN).exits(4);
}

#[test]
fn g13_nothing_in_the_project_or_the_environment_grants_trust() {
    let sandbox = project();
    sandbox.write("trust.json", "{\"version\": 1, \"projects\": {}}\n");
    sandbox.write(".tenure/trust.json", "{\"version\": 1, \"projects\": {}}\n");
    let output = sandbox
        .command(RUN)
        .env("TENURE_TRUST", "1")
        .env("TENURE_TRUSTED", "true")
        .env("TENURE_YES", "1")
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(4));
    sandbox.write("tenure.toml", "[trust]\naccept = true\n");
    let code = sandbox.run(RUN).code;
    assert!(code == Some(3) || code == Some(4), "{code:?}");
    assert_eq!(sandbox.read("ran.txt"), "");
}

#[test]
fn g13_a_damaged_store_trusts_nothing() {
    let sandbox = project();
    sandbox.run(&["trust", "accept", "."]).exits(0);
    std::fs::write(sandbox.store(), "not json").expect("damage");
    sandbox.run(RUN).exits(4).says("is damaged").says("delete it");
    assert_eq!(sandbox.read("ran.txt"), "");
    sandbox.run(&["trust", "accept", "."]).exits(1).says("is damaged");
}

#[test]
fn a_project_that_executes_nothing_needs_no_trust() {
    let sandbox = Sandbox::with(&[("a.md", "---\nname: a\nmodel: passthrough\n---\nx\n")]);
    sandbox.run(RUN).exits(0);
    sandbox.run(&["trust"]).exits(0).prints("executes nothing");
    assert!(!sandbox.store().exists());
}

#[test]
fn the_command_shows_reviews_accepts_and_revokes() {
    let sandbox = project();
    sandbox.run(&["trust"]).exits(4).prints("not trusted");
    let review = sandbox.run(&["trust", "review", "."]).exits(0).prints("on_start start");
    let accept = review.stdout.lines().find(|line| line.contains("accept: ")).expect("a line");
    let fingerprint = accept.split_whitespace().last().expect("a fingerprint").to_owned();
    sandbox
        .run(&["trust", "accept", ".", "--fingerprint", &"0".repeat(32)])
        .exits(4)
        .says("not what");
    let few = &fingerprint[..31];
    sandbox.run(&["trust", "accept", ".", "--fingerprint", few]).exits(2).says("at least 32");
    sandbox.run(&["trust", "accept", ".", "--fingerprint", &fingerprint]).exits(0);
    sandbox.run(&["trust", "status"]).exits(0).prints("trusted");
    sandbox.run(RUN).exits(0);
    sandbox.run(&["trust", "revoke"]).exits(0).prints("forgot");
    sandbox.run(RUN).exits(4);
    sandbox.run(&["trust", "revoke"]).exits(0).prints("was not trusted");
}

#[test]
fn a_script_that_a_command_runs_is_hashed() {
    let card = "---\nname: a\nmodel: passthrough\nhooks:\n  - { on: before_agent, run: [\"sh\", \"audit.sh\"] }\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("audit.sh", "echo '{}'\n")]);
    sandbox.run(&["trust", "accept", "."]).exits(0);
    sandbox.run(RUN).exits(0);
    sandbox.write("audit.sh", "echo '{}' # changed\n");
    sandbox.run(RUN).exits(4).says("changed");
}

#[test]
fn g13_a_file_that_changes_while_the_question_is_put_does_not_run() {
    let card = "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:start\nhooks:\n  - { on: before_agent, run: [\"sh\", \"audit.sh\"] }\n---\nx\n";
    let hooks = HOOKS.replace("async", "import lib\nasync");
    for (file, text) in [("audit.sh", "touch evil.txt"), ("lib.py", "open('evil.txt', 'w')")] {
        let sandbox = Sandbox::with(&[
            ("a.md", card),
            ("hooks.py", &hooks),
            ("lib.py", ""),
            ("audit.sh", "echo '{}'\n"),
        ]);
        let change = format!("$ echo \"{text}\" > {file}");
        let talk = [("[y/N]", &*change), ("", "y")];
        let shown = sandbox.on_terminal(RUN, &talk);
        // A module runs from what was shown; a command's file is looked at again, and refused.
        let shown = match file {
            "lib.py" => shown.exits(0),
            _ => {
                let shown = shown.exits(4);
                assert!(shown.stdout.contains("changed since it was read"), "{shown}");
                assert!(shown.stdout.contains(file), "{shown}");
                shown
            }
        };
        assert!(!sandbox.path("evil.txt").exists(), "{shown}");
        // What was agreed to is what was shown, so the new contents are asked about.
        sandbox.run(RUN).exits(4).says(file);
    }
}

#[test]
fn g13_the_python_source_that_was_shown_is_the_one_that_runs() {
    let sandbox = project();
    let change = "$ echo \"async def start(ctx): open('evil.txt', 'w')\" > hooks.py";
    sandbox.on_terminal(RUN, &[("[y/N]", change), ("", "y")]).exits(0);
    assert_eq!(sandbox.read("ran.txt"), "yes\n");
    assert!(!sandbox.path("evil.txt").exists());
    sandbox.run(RUN).exits(4).says("hooks.py");
}

#[test]
fn a_relative_folder_of_the_path_leads_to_nothing_in_the_project() {
    let card = "---\nname: a\nmodel: script:a.json\nshell: true\nlifecycle_hooks:\n  on_start: hooks.py:start\nhooks:\n  - { on: before_agent, run: [\"sh\", \"audit.sh\"] }\n---\nx\n";
    let script = r#"[{"call": "execute", "with": {"command": "cat /dev/null"}}, "done"]"#;
    let fake = "#!/bin/sh\ntouch \"$(dirname \"$0\")/fake.txt\"\n";
    let sandbox = Sandbox::with(&[
        ("a.md", card),
        ("a.json", script),
        ("hooks.py", HOOKS),
        ("audit.sh", "cat > /dev/null; echo '{}'\n"),
    ]);
    for name in ["sh", "cat", "python3", "python"] {
        sandbox.write(name, fake);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(sandbox.path(name), mode).expect("its mode");
    }
    let path = std::env::var("PATH").expect("a search path");
    for path in [format!(".:{path}"), format!(":{path}"), format!("./:../project:{path}")] {
        let mut command = sandbox.command(&["run", "a.md", "-m", "hi", "--trust"]);
        let ran = crate::support::Ran::of(command.env("PATH", path).output().expect("it starts"));
        let ran = ran.exits(0);
        assert_eq!(sandbox.read("ran.txt"), "yes\n", "{ran}");
        assert!(!sandbox.path("fake.txt").exists(), "{ran}");
    }
}

#[test]
fn what_a_model_may_run_is_shown() {
    let card = "---\nname: a\nmodel: passthrough\nshell: true\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card)]);
    sandbox.run(RUN).exits(4).says("the model may run any command, as you");
}

#[test]
fn g13_the_doctor_does_not_run_an_interpreter_of_a_project_that_is_not_trusted() {
    let python = "#!/bin/sh\ntouch ran-python.txt\nexec python3 \"$@\"\n";
    for (file, config) in
        [(".venv/bin/python", ""), ("tools/python", "[python]\ninterpreter = \"tools/python\"\n")]
    {
        let sandbox = project();
        sandbox.write("tenure.toml", config);
        sandbox.write(file, python);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(sandbox.path(file), mode).expect("its mode");
        let said = format!("{file} comes with the project and was not run");
        sandbox.run(&["doctor"]).exits(0).prints(&said);
        sandbox.run(RUN).exits(4).says("interpreter").says(file);
        assert!(!sandbox.path("ran-python.txt").exists(), "{file}");
        sandbox.run(&["trust", "accept"]).exits(0);
        sandbox.run(&["doctor"]).exits(0).prints("All is well.");
        sandbox.run(RUN).exits(0);
        assert!(sandbox.path("ran-python.txt").exists(), "{file} is what runs");
        sandbox.write(file, &format!("{python}# changed\n"));
        sandbox.run(RUN).exits(4).says("changed").says(file);
    }
}

#[test]
fn a_log_that_a_hook_writes_does_not_make_its_project_untrusted() {
    let card = "---\nname: a\nmodel: passthrough\nhooks:\n  - { on: before_agent, run: [\"sh\", \"hook.sh\", \"audit.log\"], writes: [audit.log] }\n---\nx\n";
    let hook = "cat >> \"$1\"; echo >> \"$1\"; echo '{}'\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("hook.sh", hook)]);
    sandbox.run(&["trust", "accept", "."]).exits(0);
    for lines in 1..=2 {
        sandbox.run(RUN).exits(0);
        assert_eq!(sandbox.read("audit.log").lines().count(), lines);
    }
    sandbox.run(&["explain", "."]).exits(0).prints("writes audit.log");
}

#[test]
fn the_files_that_commands_of_a_workflow_write_are_explained() {
    let tools = r#"{ "lifecycle_tools": [
      { "trigger": "after_chat", "agent": null, "run": ["sh", "end.sh", "chat.log"], "writes": ["chat.log"] } ] }"#;
    let orchestrator = "workflow_name: w\norchestration_pattern: RoundRobinPattern\nhooks:\n- { on: after_chat, run: [sh, end.sh, hook.log], writes: [hook.log] }\n";
    let sandbox = Sandbox::with(&[
        ("tenure.toml", ""),
        ("workflows/w/orchestrator.yaml", orchestrator),
        (
            "workflows/w/agents.yaml",
            "agents:\n- { name: A, model: passthrough, system_message: x }\n",
        ),
        ("workflows/w/tools.json", tools),
        ("workflows/w/end.sh", "cat >> \"$1\"\n"),
    ]);
    sandbox.run(&["explain", "w"]).exits(0).prints("writes chat.log").prints("writes hook.log");
}

#[test]
fn the_program_that_is_shown_is_the_one_that_the_search_path_leads_to() {
    let card = "---\nname: a\nmodel: passthrough\nhooks:\n  - { on: before_agent, run: [own-tool] }\n---\nx\n";
    let tool = "#!/bin/sh\necho '{}'\n";
    let sandbox =
        Sandbox::with(&[("a.md", card), ("decoy/own-tool", tool), ("programs/own-tool", tool)]);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.path("programs/own-tool"), mode).expect("its mode");
    let path = std::env::var("PATH").expect("a search path");
    let folders = [sandbox.path("decoy"), sandbox.path("programs")];
    let path = format!("{}:{}:{path}", folders[0].display(), folders[1].display());
    let mut command = sandbox.command(&["trust", "review", "."]);
    let ran = crate::support::Ran::of(command.env("PATH", path).output().expect("it starts"));
    let ran = ran.exits(0).prints("programs/own-tool");
    assert!(!ran.stdout.contains("decoy"), "{ran}");
}

const GUARDED: &str = "---\nname: a\nmodel: passthrough\nshell: true\nhooks:\n  - { on: wrap_tool_call, run: guard.py:check, policy: deny, timeout: 5s }\nrequest_params: { max_iterations: 5 }\n---\nx\n";
const GUARD: &str = "async def check(ctx, next):\n    return {'deny': 'no'}\n";

#[test]
fn a_guard_that_is_gone_or_weaker_has_to_be_accepted_again() {
    let hook = "  - { on: wrap_tool_call, run: guard.py:check, policy: deny, timeout: 5s }\n";
    let said = "a in a.md: hook wrap_tool_call guard.py:check (policy deny, timeout 5s)";
    let limit = "every agent, by tenure.toml: limits.tool 30s";
    let edits = [
        (GUARDED.replace(&format!("hooks:\n{hook}"), ""), "[limits]\ntool = \"30s\"\n", said),
        (GUARDED.replace("deny", "continue"), "[limits]\ntool = \"30s\"\n", said),
        (GUARDED.replace("5s", "5m"), "[limits]\ntool = \"30s\"\n", said),
        (GUARDED.to_owned(), "[limits]\ntool = \"30m\"\n", limit),
        (GUARDED.to_owned(), "", limit),
    ];
    for (card, config, gone) in edits {
        let sandbox = Sandbox::with(&[("a.md", GUARDED), ("guard.py", GUARD)]);
        sandbox.write("tenure.toml", "[limits]\ntool = \"30s\"\n");
        sandbox.run(&["trust", "accept", "."]).exits(0);
        sandbox.run(RUN).exits(0);
        sandbox.write("a.md", &card);
        sandbox.write("tenure.toml", config);
        let ran = sandbox.run(RUN).exits(4);
        let lines = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(lines.contains(&format!("what is different: GONE guards {gone}")), "{ran}");
        sandbox.run(&["trust", "review", "."]).exits(0).prints("GONE");
        let shown = sandbox.on_terminal(RUN, &[("[y/N]", "y")]).exits(0);
        assert!(shown.stdout.contains("GONE"), "{shown}");
        sandbox.run(RUN).exits(0);
    }
}

#[test]
fn five_hundred_harmless_files_do_not_push_the_shell_off_the_first_screen() {
    let card = "---\nname: a\nmodel: passthrough\nshell: true\nlifecycle_hooks:\n  on_start: hooks.py:start\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card), ("hooks.py", HOOKS)]);
    for at in 0..500 {
        sandbox.write(&format!("a{at}.py"), "");
    }
    let sized = [("COLUMNS", "80"), ("LINES", "24")];
    let shown = sandbox.on_terminal_with(&sized, RUN, &[("[y/N]", "n")]).exits(4);
    let text = shown.stdout.replace('\r', "");
    let plain = anstream_free(&text);
    let lines: Vec<&str> = plain.lines().collect();
    let question = lines.iter().position(|line| line.contains("[y/N]")).expect("the question");
    assert!(question < 24, "{shown}");
    assert!(lines[..=question].iter().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(lines[3].contains("shell: the model may run any command, as you"), "{shown}");
    assert!(plain.contains("500 importable files: a0.py"), "{shown}");
    assert!(plain.contains("with 500 more that you have not seen"), "{shown}");
}

/// The text without what colours it.
fn anstream_free(text: &str) -> String {
    let mut plain = String::new();
    let mut parts = text.split("\u{1b}[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        plain.push_str(part.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |it| it.1));
    }
    plain
}

#[test]
fn a_trust_store_in_the_project_or_of_another_user_does_not_count() {
    let sandbox = project();
    let inside = |data: &str, args: &[&str]| {
        let mut command = sandbox.command(args);
        let output = command.env("XDG_DATA_HOME", sandbox.path(data)).output();
        crate::support::Ran::of(output.expect("it starts"))
    };
    inside("data", &["trust", "accept", "."]).exits(1).says("is inside the project");
    inside("data", RUN).exits(4).says("is inside the project").says("XDG_DATA_HOME");
    sandbox.run(&["trust", "accept", "."]).exits(0);
    sandbox.run(RUN).exits(0);
    // What comes with a project is as good as the store of the user, but for where it is.
    std::fs::create_dir_all(sandbox.path("data/tenure")).expect("made");
    std::fs::copy(sandbox.store(), sandbox.path("data/tenure/trust.json")).expect("copied");
    inside("data", RUN).exits(4).says("is inside the project");
    let folder = sandbox.store().parent().expect("a folder").to_owned();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).expect("chmod");
    sandbox.run(RUN).exits(4).says("can be written by others");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).expect("chmod");
    if std::os::unix::fs::chown(sandbox.store(), Some(12345), None).is_ok() {
        sandbox.run(RUN).exits(4).says("belongs to another user (uid 12345");
    }
}

#[test]
fn a_configuration_above_that_belongs_to_another_user_does_not_count() {
    let sandbox = Sandbox::with(&[("mine/a.md", CARD), ("mine/hooks.py", HOOKS)]);
    sandbox.write("tenure.toml", "[limits]\ntool = \"1ms\"\n");
    let above = sandbox.path("tenure.toml");
    let review = ["trust", "review", "mine"];
    sandbox.run(&review).exits(0).prints("configuration");
    if std::os::unix::fs::chown(&above, Some(12345), None).is_err() {
        eprintln!("only root can give a file away, so the rest is tested as root alone");
        return;
    }
    let ran = sandbox.run(&review).exits(0);
    assert!(!ran.stdout.contains("configuration"), "{ran}");
    sandbox.run(&["check", "mine"]).exits(0).prints("belongs to another user");
    // A project that is that user's as a whole is asked about like any other.
    std::os::unix::fs::chown(sandbox.path("mine"), Some(12345), None).expect("chown");
    sandbox.run(&review).exits(0).prints("configuration");
}

#[test]
fn a_package_deep_in_the_environment_of_the_project_counts() {
    let sandbox = project();
    let made = sandbox.other("python3", &["-m", "venv", "--without-pip", ".venv"]).status();
    assert!(made.expect("python3 is there").success());
    let site = std::fs::read_dir(sandbox.path(".venv/lib")).expect("a library");
    let site = site.flatten().next().expect("a version").path().join("site-packages/pkg");
    std::fs::create_dir_all(&site).expect("made");
    std::fs::write(site.join("deep.py"), "x = 1\n").expect("written");
    sandbox.run(&["trust", "accept", "."]).exits(0).prints("every file in it");
    sandbox.run(RUN).exits(0);
    sandbox.run(RUN).exits(0);
    std::fs::write(site.join("deep.py"), "x = 2\n").expect("written");
    sandbox.run(RUN).exits(4).says("virtual environment");
}
