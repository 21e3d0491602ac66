//! Every sink of a project against every kind of secret: none stands in clear in any of them,
//! whether or not the run is recorded.

use crate::support::{Ran, Sandbox};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Secrets by the names of their variables.
const NAMED: &[(&str, &str)] = &[
    ("PROBE_PAT", "pat-value-0001"),
    ("PROBE_JWT", "jwt-value-0002"),
    ("PROBE_DSN", "dsn-value-0003"),
    ("PROBE_CONN", "conn-value-0004"),
    ("PROBE_CONNECTION_STRING", "Server=db;Key=0005"),
    ("PROBE_WEBHOOK", "hooks.example/T0/0006"),
    ("PROBE_PEM", "pem-value-0007"),
    ("PROBE_COOKIE", "cookie-value-0008"),
    ("PROBE_AUTH", "auth-value-0009"),
    ("DB_PWD", "pwd-value-0010"),
    ("PROBE_CREDENTIALS", "cred-value-0011"),
    ("PROBE_PRIVATE", "private-value-0012"),
    ("OPENAI_API_KEY", "openai-value-0013"),
    ("APP_ADDRESS", "postgres://me:hunter-0014@db.example/x"),
    ("ORDINARY", "listed-value-0015"),
];

/// Secrets by the way that they look, which no variable holds, each with what must not be seen.
const SHAPED: &[(&str, &str)] = &[
    ("ghp_0123456789abcdefghijABCDEFGHIJ0016", "abcdefghijABCDEFGHIJ0016"),
    ("github_pat_11ABCDEFG0123456789_abcdef0017", "ABCDEFG0123456789_abcdef0017"),
    ("sk-proj-0123456789abcdefghij0018", "0123456789abcdefghij0018"),
    ("AKIA0123456789AB0019", "0123456789AB0019"),
    ("xoxb-0123456789-abcdef0020", "0123456789-abcdef0020"),
    ("glpat-0123456789abcdef0021", "0123456789abcdef0021"),
    ("pypi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3ODkwMjI", "JDAxMjM0NTY3ODkwMjI"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIwMDIzIn0.c2lnbmF0dXJlMDAyMw", "c2lnbmF0dXJlMDAyMw"),
    ("amqp://app:hunter-0024@mq.example/v", "hunter-0024"),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKC0025\n-----END RSA PRIVATE KEY-----",
        "MIIEowIBAAKC0025",
    ),
];

/// A secret that only a hook knows.
const MADE: &str = "made-at-run-time-0026";

/// All of them in one text, and what must not be seen of it.
fn everything() -> (String, Vec<String>) {
    let mut text = String::from("I know:");
    let mut hidden = Vec::new();
    for (_, value) in NAMED {
        write!(text, " {value} ;").expect("a text takes it");
        hidden.push((*value).to_owned());
    }
    for (value, part) in SHAPED {
        write!(text, " {value} ;").expect("a text takes it");
        hidden.push((*part).to_owned());
    }
    write!(text, " {MADE} .").expect("a text takes it");
    hidden.extend([MADE.to_owned(), "hunter-0014".to_owned()]);
    (text, hidden)
}

/// A server that takes whatever is posted to it.
struct Receiver {
    address: String,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let taken = Arc::new(Mutex::new(Vec::new()));
        let own = taken.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = own.clone();
                std::thread::spawn(move || serve(stream, &taken));
            }
        });
        Self { address, taken }
    }

    fn text(&self) -> String {
        let taken = self.taken.lock().expect("no panic");
        String::from_utf8_lossy(&taken).into_owned()
    }
}

fn serve(stream: TcpStream, taken: &Mutex<Vec<u8>>) {
    let mut writer = stream.try_clone().expect("a second handle");
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        taken.lock().expect("no panic").extend(body);
        if writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

const TOOLS: &str = "\
from pathlib import Path

def leak(text: str) -> str:
    print(text)
    return text

async def knows(ctx):
    ctx.secret(Path('made.txt').read_text().strip())

def breaks(ctx):
    raise RuntimeError(Path('all.txt').read_text())
";

fn project(otlp: &str, webhook: &str) -> Sandbox {
    let (text, _) = everything();
    let card = format!(
        "---\nname: a\nmodel: script:a.json\nfunction_tools: tools.py:leak\n\
         save_trajectory: true\nuse_history: false\nhooks:\n\
         \x20 - {{ on: on_start, run: tools.py:knows }}\n\
         \x20 - {{ on: on_shutdown, run: tools.py:breaks }}\n\
         \x20 - {{ use: audit, with: {{ file: out/audit.jsonl, models: true }} }}\n\
         \x20 - {{ use: log, with: {{ file: out/log.jsonl, content: true, content_limit: 65536 }} }}\n\
         \x20 - {{ use: save, with: {{ file: out/save.jsonl }} }}\n\
         \x20 - {{ use: notify, with: {{ url: \"{webhook}\", unsigned: true }} }}\n\
         \x20 - {{ use: telemetry, with: {{ endpoint: \"{otlp}\", content: true, flush: 2s }} }}\n\
         ---\nx\n"
    );
    let script = serde_json::json!([{ "call": "leak", "with": { "text": text } }, text]);
    let config = "[secrets]\nnames = [\"ORDINARY\"]\n";
    let script = script.to_string();
    Sandbox::with(&[
        ("tenure.toml", config),
        ("a.md", &card),
        ("a.json", &script),
        ("tools.py", TOOLS),
        ("made.txt", MADE),
        ("all.txt", &text.replace('\n', "\\n")),
    ])
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let mut command = sandbox.command(args);
    command.envs(NAMED.iter().copied());
    Ran::of(command.output().expect("the program starts"))
}

/// Everything beneath a folder, as far as it can be read as text.
fn folder(path: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&folder(&path));
        } else {
            let bytes = std::fs::read(&path).expect("it can be read");
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    text
}

/// The secrets that stand in clear in each of these sinks, as a table of those that leak.
fn leaks(sinks: &[(&str, String)]) -> String {
    let (_, hidden) = everything();
    let mut table = String::new();
    for (sink, text) in sinks {
        assert!(text.contains("I know:"), "{sink} has nothing of it: {text}");
        let seen: Vec<&String> = hidden.iter().filter(|part| text.contains(&***part)).collect();
        if !seen.is_empty() {
            let all = hidden.len();
            writeln!(table, "{sink}: {} of {all} in clear: {seen:?}", seen.len()).expect("a text");
        }
    }
    table
}

#[test]
fn no_secret_of_any_kind_stands_in_clear_in_any_sink() {
    let (otlp, webhook) = (Receiver::start(), Receiver::start());
    // What the program is told before any hook runs has nothing that only a hook knows.
    let message = everything().0.replace(MADE, "");
    for stored in [false, true] {
        let sandbox = project(&otlp.address, &webhook.address);
        let mut args = vec!["run", "a.md", "-m", &message, "--trust", "--json"];
        if !stored {
            args.push("--no-store");
        }
        let ran = run(&sandbox, &args).exits(0);
        let mut sinks = vec![
            ("audit", sandbox.read("out/audit.jsonl")),
            ("log", sandbox.read("out/log.jsonl")),
            ("save", sandbox.read("out/save.jsonl")),
            ("otlp", otlp.text()),
            ("webhook", webhook.text()),
            ("json", ran.stdout.clone()),
            ("trajectory", folder(&sandbox.path(".tenure/trajectories"))),
        ];
        if stored {
            let shown = run(&sandbox, &["export", "last"]).exits(0);
            sinks.push(("export", shown.stdout));
        }
        let table = leaks(&sinks);
        // What lies beside the trajectories: the store, with whatever it keeps apart.
        let (_, hidden) = everything();
        let kept = folder(&sandbox.path(".tenure"));
        let seen: Vec<_> = hidden.iter().filter(|part| kept.contains(&***part)).collect();
        assert!(table.is_empty() && seen.is_empty(), "stored: {stored}\n{table}store: {seen:?}");
    }
}

#[test]
fn what_is_shown_to_people_has_no_secret_either() {
    let (otlp, webhook) = (Receiver::start(), Receiver::start());
    let (message, _) = everything();
    let sandbox = project(&otlp.address, &webhook.address);
    let ran = run(&sandbox, &["run", "a.md", "-m", &message, "--trust", "--no-store"]).exits(0);
    let table = leaks(&[("answer", ran.stdout), ("terminal", ran.stderr)]);
    assert!(table.is_empty(), "{table}");
}

/// A card with a guard against personal data, whose tool waits for a person.
fn guarded(options: &str) -> Sandbox {
    let card = format!(
        "---\nname: clerk\nmodel: script:clerk.json\nfunction_tools: [tools.py:look_up]\nhooks:\n\
         \x20 - {{ use: pii{options} }}\n\
         \x20 - {{ use: log, with: {{ file: out/log.jsonl, content: true }} }}\n\
         \x20 - {{ on: wrap_tool_call, run: hooks.py:approve, policy: deny }}\n---\nx\n"
    );
    let hooks = "async def approve(ctx, next):\n    await ctx.ask('Look up?', \
                 action=ctx.arguments)\n    return await next()\n";
    let tools = "def look_up(who: str) -> str:\n    print('for', who)\n    return 'she is at \
                 bea@example.org and pays with 4111 1111 1111 1111'\n";
    let script = serde_json::json!([
        { "call": "look_up", "with": { "who": "cy@example.org" } },
        "write to dee@example.org: {result}"
    ]);
    Sandbox::with(&[
        ("tenure.toml", ""),
        ("clerk.md", &card),
        ("clerk.json", &script.to_string()),
        ("hooks.py", hooks),
        ("tools.py", tools),
    ])
}

const PERSONAL: [&str; 5] =
    ["ann@example.org", "bea@example.org", "cy@example.org", "dee@example.org", "4111 1111"];

fn personal_in(text: &str) -> Vec<&'static str> {
    PERSONAL.into_iter().filter(|part| text.contains(part)).collect()
}

#[test]
fn what_a_pii_guard_takes_out_is_neither_stored_nor_shown_and_the_run_goes_on_in_another_life() {
    let run = ["run", "clerk.md", "-m", "mail ann@example.org", "--trust", "--json"];
    let expected = "write to [REDACTED_EMAIL]: she is at [REDACTED_EMAIL] and pays with \
                    [REDACTED_CREDIT_CARD]";
    let sandbox = guarded("");
    let waits = sandbox.run(&run).exits(7);
    let (kept, shown) = (folder(&sandbox.path(".tenure")), format!("{waits}"));
    assert_eq!(personal_in(&kept), [""; 0], "the record of a run that waits");
    assert_eq!(personal_in(&shown), [""; 0], "{shown}");
    assert!(shown.contains("pii.found"), "what was found is still told: {shown}");
    let line = waits.json_lines().pop().expect("a result");
    let ask = line["asks"][0].as_str().expect("a question").to_owned();
    sandbox.run(&["answer", &ask, "approve"]).exits(0);
    let ran = sandbox.run(&["run", "--resume", "--trust", "--json"]).exits(0);
    assert_eq!(ran.json_lines().pop().expect("a result")["output"], expected, "{ran}");
    let exported = sandbox.run(&["export", "last"]).exits(0);
    let log = sandbox.read("out/log.jsonl");
    for (sink, text) in [
        ("store", folder(&sandbox.path(".tenure"))),
        ("shown", format!("{ran}")),
        ("export", format!("{exported}")),
        ("log", log),
    ] {
        assert_eq!(personal_in(&text), [""; 0], "{sink}: {text}");
    }
}

#[test]
fn what_a_pii_guard_lets_through_or_is_told_to_keep_stays_on_record() {
    for options in [", with: { record: keep }", ", with: { except_tools: [look_up] }"] {
        let sandbox = guarded(options);
        let run = ["run", "clerk.md", "-m", "mail ann@example.org", "--trust", "--json"];
        let waits = sandbox.run(&run).exits(7);
        let line = waits.json_lines().pop().expect("a result");
        let ask = line["asks"][0].as_str().expect("a question").to_owned();
        sandbox.run(&["answer", &ask, "approve"]).exits(0);
        let ran = sandbox.run(&["run", "--resume", "--trust"]).exits(0);
        let output = "write to [REDACTED_EMAIL]: she is at [REDACTED_EMAIL] and pays with \
                      [REDACTED_CREDIT_CARD]\n";
        assert_eq!(ran.stdout, output, "{options}");
        let kept = folder(&sandbox.path(".tenure"));
        assert!(kept.contains("bea@example.org"), "{options}: what the agent used is on record");
    }
}

#[test]
fn a_refusal_of_a_pii_guard_stays_one_where_runs_are_recorded() {
    let sandbox = guarded(", with: { strategies: { credit_card: block } }");
    let run = ["run", "clerk.md", "-m", "charge 4111 1111 1111 1111", "--trust"];
    sandbox.run(&run).exits(5).says("credit_card");
    assert_eq!(personal_in(&folder(&sandbox.path(".tenure"))), [""; 0]);
}
