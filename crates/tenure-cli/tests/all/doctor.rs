//! `tenure doctor`.

use crate::support::{Ran, Sandbox};

#[test]
fn a_folder_without_a_project_has_no_problems_even_if_it_is_the_home() {
    let sandbox = Sandbox::new();
    for (home, data) in [("somewhere", "somewhere/data"), ("home", "home/.local/share")] {
        let folder = sandbox.path(home);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = sandbox.command(&["doctor"]);
        command.current_dir(&folder).env("HOME", &folder);
        let output = command.env("XDG_DATA_HOME", sandbox.path(data)).output().expect("it starts");
        let ran = Ran::of(output).exits(0).prints("there is none here");
        assert!(!ran.stdout.contains('✗') && !ran.stdout.contains("problem"), "{ran}");
    }
    // A project there is another matter: its author would decide what is trusted.
    sandbox.write("somewhere/a.md", "---\nmodel: passthrough\nshell: true\n---\nx\n");
    let mut command = sandbox.command(&["doctor"]);
    command.current_dir(sandbox.path("somewhere"));
    command.env("XDG_DATA_HOME", sandbox.path("somewhere/data"));
    let output = command.output().expect("it starts");
    Ran::of(output).exits(1).prints("is inside the project");
}

#[test]
fn every_rule_of_confinement_is_held_or_it_is_said_why_not() {
    let sandbox = Sandbox::new();
    // There is something to hide.
    std::fs::create_dir_all(sandbox.home().join(".ssh")).expect("made");
    std::fs::write(sandbox.home().join(".ssh/id"), "a secret").expect("written");
    std::fs::write(sandbox.home().join(".netrc"), "a secret").expect("written");
    let ran = sandbox.run(&["doctor", "--sandbox"]).exits(0);
    let ran = ran.prints("held: the folder of a hook cannot be renamed");
    let ran = ran.prints("held: the system cannot be written").prints(".ssh cannot be read");
    assert!(!ran.stdout.contains("not held"), "{ran}");
    let ran = sandbox.run_without_namespaces(&["doctor", "--sandbox"]).exits(0);
    let ran = ran.prints("not held by this kernel: a hook can write a mark beside itself");
    let ran = ran.prints("without mount namespaces").prints("write into a folder of its own");
    let ran = ran.prints("not held by this kernel: a model's shell has no socket of others");
    assert_eq!(ran.stdout.matches("not held").count(), 2, "{ran}");
}

#[test]
fn what_is_printed_fits_into_eighty_columns() {
    let card = "---\nname: desk\nmodel: openai.gpt-4o\nshell: true\nservers: [files, web]\ntools: { files: [read_file, \"list_*\"] }\nlifecycle_hooks:\n  on_start: hooks.py:start\nhooks:\n  - { on: wrap_tool_call, run: hooks.py:check, policy: deny, timeout: 5s, name: guard, when: \"tool.name == 'execute' and 'rm' in tool.arguments.command\" }\n  - { on: before_agent, run: [\"sh\", \"audit.sh\", \"--strict\"], sandbox: read-only }\n  - { use: shell, with: { allow: [\"git status\", \"git log\"] }, sandbox: { network: true } }\n---\nx {{unknown}}\n";
    let config = "[sandbox]\nnetwork = false\nwrite = [\"~/.cache/models\", \"~/.cache/huggingface\"]\n[hooks]\nenv = [\"DATABASE_URL\"]\n[mcp.servers.files]\ncommand = [\"no-such-program-anywhere\", \"--root\", \".\", \"--read-only\"]\nenv = { KEY = \"${A_TOKEN}\" }\nsandbox = { network = false }\n[mcp.servers.web]\nurl = \"https://example.com/mcp\"\nheaders = { Authorization = \"Bearer ${WEB_TOKEN}\" }\n";
    let hooks = "async def start(ctx): pass\n\n\nasync def check(ctx, next): return await next()\n";
    let sandbox = Sandbox::with(&[
        ("a.md", card),
        ("tenure.toml", config),
        ("hooks.py", hooks),
        ("audit.sh", "echo '{}'\n"),
    ]);
    let commands: [&[&str]; 7] = [
        &["check", "."],
        &["explain", "."],
        &["trust", "review", "."],
        &["trust", "status", "."],
        &["doctor"],
        &["doctor", "--sandbox"],
        &["run", ".", "-m", "hi"],
    ];
    for args in commands {
        for colour in ["NO_COLOR", "CLICOLOR_FORCE"] {
            let mut command = sandbox.command(args);
            let output = command.env("COLUMNS", "80").env(colour, "1").output();
            let ran = Ran::of(output.expect("it starts"));
            let all = format!("{}{}", ran.stdout, ran.stderr);
            let is_coloured = all.contains('\u{1b}');
            assert_eq!(is_coloured, colour == "CLICOLOR_FORCE", "{args:?}\n{ran}");
            for line in plain(&all).lines() {
                // A path and a line to copy stay whole.
                let is_whole = line.contains("/tmp/") || line.contains("--fingerprint");
                assert!(is_whole || line.chars().count() <= 80, "{args:?}: {line}");
            }
        }
    }
}

/// The text without its colours.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut parts = text.split("\u{1b}[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        plain.push_str(part.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |it| it.1));
    }
    plain
}
