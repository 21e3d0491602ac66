//! `tenure run --watch`: files change while agents live.

use crate::support::{PATIENCE, Ran, Sandbox, nobody_is_left_with};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const HOOKS: &str = "import os

MARK = 'one'


def note(what):
    with open('life.txt', 'a') as file:
        file.write(what + ' ' + MARK + '\\n')


def start(ctx):
    note('start')


def stop(ctx):
    note('stop')
";

fn card(answer: &str, more: &str) -> String {
    format!(
        "---\nname: a\nmodel: script:{answer}.json\nlifecycle_hooks:\n  on_start: hooks.py:start\n  \
         on_shutdown: hooks.py:stop\n{more}---\nx\n"
    )
}

fn sandbox() -> Sandbox {
    Sandbox::with(&[
        ("tenure.toml", ""),
        ("a.md", &card("first", "")),
        ("hooks.py", HOOKS),
        ("first.json", "[{\"text\": \"the first answer\"}]"),
        ("second.json", "[{\"text\": \"the second answer\"}]"),
    ])
}

/// A file, as an editor saves it: written beside, and put in its place.
fn save(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.write(&format!(".{name}.tmp"), text);
    std::fs::rename(sandbox.path(&format!(".{name}.tmp")), sandbox.path(name)).expect("renamed");
}

/// The program without a terminal, with its lines of JSON.
struct Watching {
    child: Option<Child>,
    lines: Receiver<Value>,
}

impl Watching {
    fn new(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut all = vec!["run", ".", "-m", "hi", "--watch", "--json"];
        all.extend(args);
        let mut command = sandbox.command(&all);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout: ChildStdout = child.stdout.take().expect("a pipe");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or_else(|it| panic!("{it}: {line}"));
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child: Some(child), lines }
    }

    /// The next line of this type.
    #[track_caller]
    fn next(&self, kind: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("no line of type {kind}: {error}"));
            if line["type"] == kind {
                return line;
            }
        }
    }

    /// How many lines of this type come within a while.
    fn count(&self, kind: &str, within: Duration) -> usize {
        let until = Instant::now() + within;
        let mut count = 0;
        while let Ok(line) =
            self.lines.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            count += usize::from(line["type"] == kind);
        }
        count
    }

    fn stop(mut self) -> Ran {
        let child = self.child.take().expect("it runs");
        let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let pid = pid.expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it lives");
        Ran::of(child.wait_with_output().expect("it ends"))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // A test that failed leaves nothing behind.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_session_at_a_terminal_edits_breaks_and_mends() {
    let sandbox = sandbox();
    sandbox.write("two.md", &card("second", ""));
    std::fs::rename(sandbox.path("two.md"), sandbox.path("two.card")).expect("renamed");
    sandbox.write("broken.card", "---\nname: a\nmodel: [passthrough\n");
    sandbox.write("hooks.two", &HOOKS.replace("'one'", "'two'"));
    sandbox.write("tool.card", &card("second", "function_tools: ['tools.py:add']\n"));
    sandbox
        .write("tools.two", "def add(a: int) -> int:\n    \"\"\"Adds.\"\"\"\n    return a + 1\n");
    let wait = "waiting for changes";
    let ran = sandbox.on_terminal(
        &["run", ".", "-m", "hi", "--watch", "--trust"],
        &[
            ("the first answer", "$ true"),
            (wait, "$ cp two.card a.md"),
            ("the second answer", "$ true"),
            (wait, "$ cp broken.card a.md"),
            ("a.md:1:1", "$ true"),
            ("the running agents stay as they are", "$ cp two.card .a.tmp && mv .a.tmp a.md"),
            ("nothing to do", "$ cp hooks.two .h.tmp && mv .h.tmp hooks.py"),
            ("reloaded:", "$ true"),
            ("hooks.py", "$ true"),
            ("the second answer", "$ true"),
            (wait, "$ cp tools.two tools.py && cp tool.card a.md"),
            ("tools.py (new)", "$ true"),
            ("the second answer", "$ true"),
            (wait, "$ : > a.md"),
            ("the running agents stay as they are", "$ cp two.card a.md"),
            ("the second answer", "$ true"),
            (wait, "^C"),
        ],
    );
    let ran = ran.exits(130);
    assert!(ran.stdout.contains("--- run 1 ---"), "{ran}");
    assert!(ran.stdout.contains("--- run 5 ---"), "{ran}");
    assert!(!ran.stdout.contains("--- run 6 ---"), "{ran}");
    // Each new start comes before the old stop, and each stop is that of the file as it was.
    assert_eq!(
        sandbox.read("life.txt").lines().collect::<Vec<_>>(),
        [
            "start one",
            "start one",
            "stop one",
            "start two",
            "stop one",
            "start two",
            "stop two",
            "start two",
            "stop two",
            "stop two"
        ],
        "{ran}"
    );
    nobody_is_left_with(&sandbox.project().to_string_lossy());
}

#[test]
fn at_a_terminal_a_changed_hook_is_asked_about_and_a_no_keeps_the_old_one() {
    let sandbox = sandbox();
    sandbox.write("hooks.two", &HOOKS.replace("'one'", "'two'"));
    sandbox.write("hooks.three", &HOOKS.replace("'one'", "'three'"));
    let wait = "waiting for changes";
    let ran = sandbox.on_terminal(
        &["run", ".", "-m", "hi", "--watch"],
        &[
            ("Trust it and go on?", "y"),
            (wait, "$ cp hooks.two hooks.py"),
            ("This project changed since you trusted it", "$ true"),
            ("Trust it and go on?", "n"),
            ("the running agents stay as they are", "$ cp hooks.three hooks.py"),
            ("Trust it and go on?", "y"),
            ("the first answer", "$ true"),
            (wait, "^C"),
        ],
    );
    let ran = ran.exits(130);
    assert_eq!(sandbox.read("life.txt"), "start one\nstart three\nstop one\nstop three\n", "{ran}");
}

#[test]
fn without_a_terminal_a_changed_hook_is_refused_until_it_is_trusted() {
    let sandbox = sandbox();
    sandbox.run(&["trust", "accept", "."]).exits(0);
    let watching = Watching::new(&sandbox, &[]);
    assert_eq!(watching.next("result")["output"], "the first answer");
    save(&sandbox, "hooks.py", &HOOKS.replace("'one'", "'two'"));
    let reload = watching.next("reload");
    assert_eq!(reload["outcome"], "kept", "{reload}");
    assert_eq!(reload["files"][0]["path"], "hooks.py");
    let error = reload["error"].as_str().expect("an error");
    assert!(error.contains("changed since you trusted it"), "{error}");
    assert_eq!(sandbox.read("life.txt"), "start one\n", "nothing new was executed");
    // What is no code may change all the same: the refusal is about the hook, and it lasts.
    save(&sandbox, "a.md", &card("second", ""));
    assert_eq!(watching.next("reload")["outcome"], "kept");
    // Trust that is given elsewhere is noticed.
    sandbox.run(&["trust", "accept", "."]).exits(0);
    let reload = watching.next("reload");
    assert_eq!(reload["outcome"], "replaced", "{reload}");
    assert_eq!(reload["changed"], serde_json::json!(["a"]));
    assert_eq!(watching.next("result")["output"], "the second answer");
    watching.stop().exits(143);
    assert_eq!(sandbox.read("life.txt"), "start one\nstart two\nstop one\nstop two\n");
    nobody_is_left_with(&sandbox.project().to_string_lossy());
}

#[test]
fn a_burst_of_fifty_writes_is_one_reload() {
    let sandbox = sandbox();
    let watching = Watching::new(&sandbox, &["--trust"]);
    assert_eq!(watching.next("result")["run"], 1);
    for number in 0..50 {
        sandbox.write("first.json", &format!("[{{\"text\": \"answer {number}\"}}]"));
    }
    assert_eq!(watching.next("reload")["outcome"], "replaced");
    let result = watching.next("result");
    assert_eq!((&result["run"], &result["output"]), (&2.into(), &"answer 49".into()));
    assert_eq!(watching.count("reload", Duration::from_secs(2)), 0);
    watching.stop().exits(143);
    assert_eq!(sandbox.read("life.txt"), "start one\nstart one\nstop one\nstop one\n");
}

#[test]
fn agents_come_and_go_and_a_run_begins_anew() {
    let sandbox = sandbox();
    sandbox.write("a.md", &card("first", "default: true\n"));
    sandbox.write("first.json", "[{\"text\": \"one\"}, {\"text\": \"two\"}]");
    let watching = Watching::new(&sandbox, &["--trust"]);
    assert_eq!(watching.next("result")["output"], "one");
    sandbox.write("b.md", "---\nname: b\nmodel: passthrough\n---\nx\n");
    let reload = watching.next("reload");
    assert_eq!(reload["new"], serde_json::json!(["b"]), "{reload}");
    assert_eq!(reload["changed"], serde_json::json!([]), "{reload}");
    assert_eq!(watching.next("result")["output"], "one", "it knows nothing of the run before");
    std::fs::remove_file(sandbox.path("b.md")).expect("removed");
    let reload = watching.next("reload");
    assert_eq!(reload["gone"], serde_json::json!(["b"]), "{reload}");
    assert_eq!(reload["files"][0], serde_json::json!({ "path": "b.md", "what": "gone" }));
    watching.next("result");
    watching.stop().exits(143);
}

#[test]
fn a_new_hook_that_fails_at_start_keeps_the_old_agents() {
    let sandbox = sandbox();
    let watching = Watching::new(&sandbox, &["--trust"]);
    watching.next("result");
    save(&sandbox, "hooks.py", &HOOKS.replace("note('start')", "raise ValueError('no disk')"));
    let reload = watching.next("reload");
    assert_eq!(reload["outcome"], "kept", "{reload}");
    assert!(reload["error"].as_str().is_some_and(|it| it.contains("no disk")), "{reload}");
    save(&sandbox, "hooks.py", &HOOKS.replace("'one'", "'two'"));
    assert_eq!(watching.next("reload")["outcome"], "replaced");
    assert_eq!(watching.next("result")["run"], 2);
    watching.stop().exits(143);
    // The agent whose start failed was stopped, by its own file.
    let life = sandbox.read("life.txt");
    assert_eq!(life, "start one\nstop one\nstart two\nstop one\nstop two\n");
}

#[test]
fn a_change_during_a_run_waits_for_its_end() {
    let sandbox = sandbox();
    sandbox.write("first.json", "[{\"text\": \"slowly\", \"wait\": \"1s\"}]");
    let watching = Watching::new(&sandbox, &["--trust"]);
    loop {
        if watching.next("event")["name"] == "model.started" {
            break;
        }
    }
    save(&sandbox, "a.md", &card("second", ""));
    assert_eq!(watching.next("result")["output"], "slowly");
    assert_eq!(watching.next("reload")["outcome"], "replaced");
    assert_eq!(watching.next("result")["output"], "the second answer");
    watching.stop().exits(143);
}

#[test]
fn a_project_that_is_broken_from_the_start_is_not_watched() {
    let sandbox = sandbox();
    sandbox.write("a.md", "---\nname: a\nmodel: [\n");
    sandbox.run(&["run", ".", "-m", "hi", "--watch", "--trust"]).exits(3);
    let sandbox = Sandbox::with(&[("a.md", &card("first", "")), ("hooks.py", HOOKS)]);
    sandbox.write("first.json", "[\"x\"]");
    sandbox.run(&["run", ".", "-m", "hi", "--watch"]).exits(4).says("not trusted yet");
}

#[test]
fn a_message_that_was_piped_in_is_kept() {
    let sandbox = Sandbox::with(&[("a.md", "---\nname: a\nmodel: passthrough\n---\nx\n")]);
    let script = "echo said once | \"$0\" run a.md --watch --json & pid=$!
        for _ in $(seq 200); do sleep 0.05; grep -q '\"run\":1' out.txt && break; done
        echo more >> a.md
        for _ in $(seq 200); do sleep 0.05; grep -q '\"run\":2' out.txt && break; done
        kill $pid; wait $pid";
    let script = script.replace("--json &", "--json > out.txt &");
    let program = env!("CARGO_BIN_EXE_tenure");
    Ran::of(sandbox.other("sh", &["-c", &script, program]).output().expect("a shell")).exits(143);
    let lines = sandbox.read("out.txt");
    let results: Vec<Value> = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line["type"] == "result")
        .collect();
    assert_eq!(results.len(), 2, "{lines}");
    assert!(results.iter().all(|it| it["output"] == "said once"), "{lines}");
}

#[test]
fn a_secret_stays_hidden_when_the_files_that_named_it_break() {
    let sandbox = sandbox();
    let config = "[hooks]\nenv = [\"SERVICE_API_KEY\"]\n";
    sandbox.write("tenure.toml", config);
    sandbox.write("half.toml", "[hooks]\nenv = [\"SERV");
    let stop = "note('stop')\n    print('good bye', os.environ['SERVICE_API_KEY'])";
    sandbox.write("hooks.py", &HOOKS.replace("note('stop')", stop));
    let ran = sandbox.on_terminal_with(
        &[("SERVICE_API_KEY", "sk-very-secret-1")],
        &["run", ".", "-m", "hi", "--watch", "--trust"],
        &[
            ("waiting for changes", "$ cp half.toml tenure.toml"),
            ("the running agents stay as they are", "^C"),
        ],
    );
    let ran = ran.exits(130);
    assert!(ran.stdout.contains("good bye [redacted]"), "{ran}");
    assert!(!ran.stdout.contains("sk-very-secret"), "{ran}");
}
