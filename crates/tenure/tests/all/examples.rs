//! Every example runs, as a real process, and prints what it promises.
//!
//! The binaries are those that cargo built beside this test; `cargo test -p tenure` and
//! `scripts/test` build them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The examples, and lines that each of them prints, in this order.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "01_hello",
        &[r#"weather calls forecast {"city":"Oslo"}"#, "Take sunglasses to Oslo. (2 model calls)"],
    ),
    (
        "02_hooks",
        &[
            r#"before_agent     outer: "2 + 3?""#,
            r#"before_agent     inner: "2 + 3?""#,
            "  before_model   outer: 1 messages",
            "  before_model   inner: 1 messages",
            "  wrap_model     outer: in",
            "  wrap_model     inner: in",
            "  wrap_model     inner: out",
            "  wrap_model     outer: out",
            "  after_model    inner: 1 tool calls",
            "  after_model    outer: 1 tool calls",
            r#"    wrap_tool    outer: in, {"a":2,"b":3}"#,
            r#"    wrap_tool    inner: in, {"a":2,"b":3}"#,
            r#"    wrap_tool    inner: out, "5""#,
            r#"    wrap_tool    outer: out, "5""#,
            "  before_model   outer: 3 messages",
            "after_agent      inner: ok",
            "after_agent      outer: ok",
            "2 and 3 make 5.",
        ],
    ),
    (
        "03_guard",
        &[
            "  shell runs: ls",
            "  the model reads: done",
            "  the model reads: deleting files is not allowed",
            "  the model reads: hook `NoDelete` failed at wrap_tool_call: there is no command",
            r#"  the model reads: hook `NoDelete` panicked at wrap_tool_call: cannot judge "rm\u{a0}-r /""#,
            "turn denied: hook `hours` failed at before_agent: the shop is closed (0 model calls)",
        ],
    ),
    (
        "04_lifetime",
        &[
            "a life, scoped:",
            "  on_start    database",
            "  on_start    index",
            "  on_start    printer",
            "  ready, 3 resources",
            "  on_shutdown printer: completed",
            "  on_shutdown index: completed",
            "  on_shutdown database: completed",
            "  released    printer",
            "  released    index",
            "  released    database",
            "a start that fails:",
            "  on_start    index",
            "  on_shutdown index: startup_failed",
            "  on_shutdown database: startup_failed",
            "  released    index",
            "  released    database",
            "  startup failed: hook `index` failed at on_start: connection refused",
            "  terminated, 0 resources",
            "  agent must be in uninitialized state, but it is terminated; build a new instance",
        ],
    ),
    (
        "05_ask",
        &[
            r#"  buyer asks: May I pay this? {"amount":100} -> approve"#,
            "  paid 100",
            r#"  buyer asks: May I pay this? {"amount":1000} -> edit"#,
            "  paid 500",
            "  the model reads: paid 500",
            r#"  buyer asks: May I pay this? {"amount":10000} -> reject"#,
            "  the model reads: that is too much",
            "nobody is there to be asked:",
            "  the model reads: nobody can be asked: May I pay this?; give the agent an asker \
             (`on_ask`), or subscribe to its events and call `answer`",
        ],
    ),
    (
        "06_stream",
        &[
            "an observer only:",
            r#"  "sk-12345, ""#,
            "  outcome: ok",
            "a hook that redacts:",
            r#"  "The key is [removed], keep it safe.""#,
            "  outcome: ok",
        ],
    ),
    (
        "07_cancel",
        &[
            "cancelled:",
            "  after_agent: cancelled in awaiting_llm_response",
            "  the turn was cancelled",
            "dropped:",
            "  the caller gave up: true",
            "  after_agent: cancelled in awaiting_llm_response",
            "  nobody pressed Ctrl-C",
            "  after_agent: cancelled in awaiting_llm_response",
            "  ok: false, state: ready",
            "  on_shutdown: completed",
            "  state: terminated, requests: 3",
        ],
    ),
    (
        "08_clones",
        &[
            "  start echo#1[tool]",
            "  start echo#2[tool]",
            "  end   parent",
            "  result: one",
            "  result: two",
            "  echo knows 2 messages, echo-two 0",
            "  start echo#3",
            "  end   echo#3",
            "  first and second, on 2 instance(s)",
            "  end   echo",
        ],
    ),
    (
        "09_own_agent",
        &[
            "  agent must be in ready state, but it is uninitialized; call startup() first",
            r#"  busy while it works on "a text""#,
            "  _draft: written",
            "  user_history: state `user_history` is owned by memory, but agent tried to write it; \
             use memory.update()",
            "  do_shutdown, within 2 s",
            "  index file closed",
            "  terminated, 0 values left",
            "  1 requests, 0 failed",
        ],
    ),
    (
        "10_durable",
        &[
            "first run: 2 model calls, 1 payments so far",
            "  recorded tool:pay:1#0",
            "replayed: 2 model calls, 1 payments so far",
            "resumed after two steps: 3 model calls, 1 payments so far",
        ],
    ),
    (
        "11_tower",
        &[
            "  the provider is overloaded",
            "  the provider is overloaded",
            "  the provider hangs",
            "  Here I am.",
        ],
    ),
    (
        "tour",
        &[
            "  phase  uninitialized -> bootstrapping",
            "  hook   on_start: secretary opens its archive",
            "  phase  bootstrapping -> idle",
            "  hook   on_start: editor#1[tool] opens its archive",
            "  hook   on_shutdown: editor#1[tool], completed",
            "  freed  the archive of editor#1[tool]",
            r#"  hook   after_agent: ok, "It should say: hello world.""#,
            "  hook   wrap_tool_call: the guard denies `delete`",
            "  phase  analyzing_llm_response -> tool_denied",
            "  phase  analyzing_llm_response -> awaiting_tool_approval",
            "  you    only to the team",
            "  tool   sent to the team",
            "  you    cancel",
            r#"  hook   after_agent: cancelled, """#,
            r#"  kept   wait_for_reply: "the call was cancelled after it was made" (Cancelled)"#,
            "  phase  idle -> paused",
            "  hook   on_shutdown: secretary, completed",
            "  freed  the archive of secretary",
            "  phase  shutting_down -> terminated",
            "  requests    4 (1 failed)",
            "  resources   0 left",
            "  state       terminated (completed)",
        ],
    ),
];

/// The example that needs a server, with a test of its own.
const REMOTE: &str = "12_remote_model";

/// The example that needs a store.
const SURVIVE: (&str, &[&str]) = (
    "13_survive",
    &[
        "a new run:",
        "  booking day train with key …a",
        "  booking night train with key …b",
        "the first process died",
        "a run was left unfinished; it goes on:",
        "  booking night train with key …b",
        "  the model is asked, 2 booked",
        "Both trains are booked. (2 lives)",
    ],
);

/// The example of another crate: that of the ready-made hooks.
const READY_MADE: (&str, &[&str]) = (
    "ready_made",
    &[
        "read: it.",
        "tool: Denied: Tool 'read' not authorized: no rule allows this call",
        "tool: Ok: contents of notes.txt",
        "model calls that answered: 3",
    ],
);

#[test]
fn every_example_runs_and_prints_what_it_promises() {
    let survive = cfg!(feature = "store").then_some(&SURVIVE);
    for (name, lines) in EXAMPLES.iter().chain(survive).chain([&READY_MADE]) {
        let output = run(name);
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}\n{text}{errors}", output.status);
        assert_eq!(errors, "", "{name} complains");
        assert!(!text.contains('\x1b'), "{name} colours what is not a terminal");
        let mut printed = text.lines();
        for line in *lines {
            let found = printed.any(|printed| printed == *line);
            assert!(found, "{name} does not print, in its place:\n{line}\nIt prints:\n{text}");
        }
    }
}

#[test]
fn the_ends_of_the_tour_are_as_many_as_its_begins() {
    let output = run("tour");
    let text = String::from_utf8_lossy(&output.stdout);
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("hook   before_agent"), count("hook   after_agent"));
    assert_eq!(count("hook   on_start"), count("hook   on_shutdown"));
    assert_eq!(count("opens its archive"), count("freed  the archive"));
}

#[cfg(feature = "providers")]
#[test]
fn the_remote_model_says_what_it_needs_and_streams_an_answer() {
    use std::io::{Read as _, Write as _};

    let output = run_with(REMOTE, &[]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("OPENAI_API_KEY"), "{errors}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        // The key of the user goes to the address that the user's environment names.
        while !String::from_utf8_lossy(&request).contains("Say hello") {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).unwrap();
            assert_ne!(read, 0, "the request was cut off");
            request.extend_from_slice(&piece[..read]);
        }
        let said = |text: &str| {
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
            )
        };
        let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\
                   \"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let body = [said("Hello, "), said("you."), end.to_owned()].concat();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        String::from_utf8_lossy(&request).to_ascii_lowercase()
    });
    let output = run_with(REMOTE, &[("OPENAI_API_KEY", "sk-test"), ("OPENAI_BASE_URL", &url)]);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert_eq!(text.lines().next(), Some("Hello, you."));
    assert!(text.contains("[11 tokens, $0."), "{text}");
    assert!(server.join().unwrap().contains("authorization: bearer sk-test"));
}

#[test]
fn no_example_is_left_out_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let written: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let others = [REMOTE, SURVIVE.0].map(str::to_owned);
    let listed = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).chain(others).collect();
    assert_eq!(written, listed);
}

/// Runs an example to its end; kills it if it has none.
fn run(name: &str) -> Output {
    run_with(name, &[])
}

/// The same with these variables, and without any key of whoever runs the tests.
fn run_with(name: &str, variables: &[(&str, &str)]) -> Output {
    let mut child = Command::new(binary(name))
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENAI_BASE_URL")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a binary that cargo built can be run");
    let deadline = Instant::now() + Duration::from_secs(30);
    while child.try_wait().expect("a child can be waited for").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("a child that runs can be killed");
            panic!("{name} did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("the output of a child can be read")
}

/// `target/<profile>/examples/<name>`, beside `target/<profile>/deps/<this test>`.
fn binary(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a process knows its own file");
    let profile = this.ancestors().nth(2).expect("tests are in a folder of the profile's");
    let path = profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        path.exists(),
        "{} is not built; run `cargo build -p tenure --examples` first",
        path.display()
    );
    path
}
