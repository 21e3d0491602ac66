//! Files made to hurt, and a system that gives too little: everything ends in words.

use crate::support::{Ran, Sandbox};
use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

const CARD: &str = "---\nname: a\nmodel: passthrough\n---\nBe good.\n";

/// Runs the program in a shell that first sets limits.
fn limited(sandbox: &Sandbox, limits: &str, args: &[&str]) -> Ran {
    let line = format!("{limits}; exec \"$0\" \"$@\"");
    let mut shell = sandbox.other("sh", &["-c", &line, env!("CARGO_BIN_EXE_tenure")]);
    Ran::of(shell.args(args).output().expect("a shell starts"))
}

/// A second of time and 200 MB are what a file may cost. A debug build on a machine with other work has some more of
/// both, and the address space counts what is reserved as well.
fn bounded(sandbox: &Sandbox, args: &[&str]) -> Ran {
    limited(sandbox, "ulimit -t 4; ulimit -v 800000", args)
}

fn with_hook(when: &str) -> String {
    let hook = format!("  - {{ run: ['true'], on: on_start, when: \"{when}\" }}");
    format!("---\nname: a\nmodel: passthrough\nhooks:\n{hook}\n---\nBe good.\n")
}

#[test]
fn a_condition_that_nests_is_refused_by_every_command() {
    for when in [
        format!("a{}", "+a".repeat(5500)),
        format!("{}1", "-".repeat(11_000)),
        format!("a{}", "()".repeat(5500)),
        format!("{}a", "not ".repeat(2700)),
        format!("{}1{}", "(".repeat(5500), ")".repeat(5500)),
        format!("{}c", "a if b else ".repeat(900)),
    ] {
        let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", &with_hook(&when))]);
        for command in [&["check"][..], &["trust", "review", "."], &["run", "a.md", "-m", "hi"]] {
            let ran = bounded(&sandbox, command);
            assert!(matches!(ran.code, Some(0 | 3)), "{command:?} {ran}");
            // A review lists what would run, whatever else is wrong.
            if command[0] == "trust" {
                continue;
            }
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("T0125") && said.contains("a.md:5:"), "{command:?} {ran}");
        }
    }
}

#[test]
fn files_that_are_taken_in_are_bounded_together() {
    let card =
        format!("---\nname: a\nmodel: passthrough\n---\n{}", "{{file:big.txt}}\n".repeat(1650));
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", &card)]);
    sandbox.write("big.txt", &"x".repeat(1 << 20));
    bounded(&sandbox, &["check"]).exits(3).prints("larger than 4 MiB").prints("a.md:8:1");
    bounded(&sandbox, &["run", "a.md", "-m", "hi"]).exits(3).says("larger than 4 MiB");
}

#[test]
fn faults_that_repeat_are_told_a_hundred_times() {
    let equal = format!("agents: [{}]", "b, ".repeat(90_000));
    let unknown: String = (0..45_000).map(|at| format!("k{at}: 1\n")).collect();
    let long = format!("? {}\n: 1", "k".repeat(900_000));
    for fields in [&equal, &unknown, &long] {
        let card = format!("---\nname: a\nmodel: passthrough\n{fields}\n---\nx\n");
        let sandbox = Sandbox::with(&[
            ("a.md", &card),
            ("b.md", "---\nname: b\nmodel: passthrough\n---\nx\n"),
        ]);
        let ran = bounded(&sandbox, &["check"]).exits(3);
        assert!(ran.stdout.len() < 60_000, "{}", ran.stdout.len());
    }
    let templates = format!("{CARD}{}{}", "{{q:".repeat(100_000), "{{qq}}".repeat(100_000));
    let sandbox = Sandbox::with(&[("a.md", &templates)]);
    bounded(&sandbox, &["check"]).exits(0).prints("at most 100 are listed");
}

#[cfg(unix)]
#[test]
fn a_link_to_everything_is_not_followed_to_its_end() {
    let hook =
        "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks/h.py:f\n---\nx\n";
    let sandbox = Sandbox::with(&[
        ("tenure.toml", ""),
        ("a.md", hook),
        ("hooks/h.py", "def f(ctx):\n    pass\n"),
    ]);
    std::os::unix::fs::symlink("/", sandbox.path("hooks/root")).expect("linked");
    let began = Instant::now();
    let first = bounded(&sandbox, &["trust", "review", "."]).exits(0);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(first.stdout.contains("more than"), "{first}");
}

#[test]
fn a_limit_on_the_size_of_files_is_told() {
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", CARD)]);
    let ran = limited(&sandbox, "ulimit -f 8", &["run", "a.md", "-m", "hi"]).exits(1);
    assert!(ran.stderr.contains("error:") && !ran.stderr.contains("panicked"), "{ran}");
    // What was there before is as it was.
    sandbox.run(&["run", "a.md", "-m", "hi"]).exits(0);
    let ran = limited(&sandbox, "ulimit -f 8", &["run", "a.md", "-m", "hi"]).exits(1);
    assert!(ran.stderr.contains("error:") && !ran.stderr.contains("panicked"), "{ran}");
    sandbox.run(&["db", "verify"]).exits(0);
}

#[test]
fn too_few_descriptors_are_told() {
    let sandbox = Sandbox::with(&[("a.md", CARD)]);
    for most in 4..40 {
        let ran = limited(&sandbox, &format!("ulimit -n {most}"), &["run", "a.md", "-m", "hi"]);
        match ran.code {
            Some(0) => assert!(ran.stdout.contains("hi"), "{most} {ran}"),
            _ => {
                let is_told = ran.stderr.contains("ulimit -n") && !ran.stderr.contains("panicked");
                assert!(ran.code == Some(1) && is_told, "{most} {ran}");
            }
        }
    }
}

#[test]
fn json_says_how_many_events_were_dropped() {
    let card = "---\nname: a\nmodel: passthrough\nhooks:\n  - { on: on_start, run: [sh, -c, 'yes | head -c 262144 >&2'] }\n---\nx\n";
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", card)]);
    sandbox.run(&["trust", "accept", "."]).exits(0);
    let mut child = sandbox
        .command(&["run", "a.md", "-m", "hi", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    // Read slowly at first, so that there are more events than fit, however fast they are printed.
    let mut stdout = child.stdout.take().expect("a pipe");
    let (mut bytes, began) = (Vec::new(), Instant::now());
    while began.elapsed() < Duration::from_secs(4) {
        let mut piece = [0; 4096];
        let length = stdout.read(&mut piece).expect("a pipe");
        bytes.extend_from_slice(&piece[..length]);
        std::thread::sleep(Duration::from_millis(5));
    }
    stdout.read_to_end(&mut bytes).expect("a pipe");
    let text = String::from_utf8(bytes).expect("text");
    child.wait().expect("it ends");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let missed: u64 = lines
        .iter()
        .filter(|line| line["type"] == "missed")
        .filter_map(|line| line["events"].as_u64())
        .sum();
    let events = lines.iter().filter(|line| line["type"] == "event").count();
    assert!(missed > 0, "{events} events");
    assert!(missed + events as u64 >= 131_072, "{missed} missed, {events} seen");
    assert_eq!(lines.last().map(|line| &line["type"]), Some(&"result".into()));
}

#[test]
fn what_a_virtual_environment_imports_is_read_within_limits() {
    let card =
        "---\nname: a\nmodel: passthrough\nlifecycle_hooks: { on_start: hooks.py:start }\n---\nx\n";
    let site = ".venv/lib/python3.12/site-packages";
    for is_pipe in [true, false] {
        let sandbox = Sandbox::with(&[
            ("tenure.toml", ""),
            ("a.md", card),
            ("hooks.py", "def start(ctx): pass\n"),
            (".venv/pyvenv.cfg", "home = /usr/bin\n"),
            (".venv/bin/python", "#!/bin/sh\n"),
            (&format!("{site}/x.pth"), "import a\n"),
        ]);
        let file = sandbox.path(&format!("{site}/x.pth"));
        if is_pipe {
            std::fs::remove_file(&file).expect("it is deleted");
            let made = sandbox.other("mkfifo", &[&file.display().to_string()]).status();
            assert!(made.expect("it starts").success());
        } else {
            let file = std::fs::OpenOptions::new().write(true).open(&file).expect("it opens");
            file.set_len(2 << 30).expect("it has holes");
        }
        for command in [&["check"][..], &["trust", "review", "."], &["explain", "a.md"]] {
            let limits = "ulimit -t 4; ulimit -v 800000";
            let line = format!("{limits}; exec timeout 20 \"$0\" \"$@\"");
            let mut shell = sandbox.other("sh", &["-c", &line, env!("CARGO_BIN_EXE_tenure")]);
            let ran = Ran::of(shell.args(command).output().expect("a shell starts")).exits(0);
            if command[0] == "trust" {
                ran.prints("asked about each time").prints("x.pth");
            }
        }
        // What is not known is never the same.
        sandbox.run(&["trust", "accept", "."]).exits(0);
        sandbox.run(&["run", "a.md", "-m", "hi"]).exits(4).says("virtual environment");
    }
}
