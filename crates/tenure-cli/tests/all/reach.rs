//! Models and tool servers: what is explained, what the doctor finds, and what trust keeps from being
//! contacted.

use crate::support::*;
use std::net::TcpListener;

fn project(url: &str) -> Sandbox {
    let config = format!(
        "[providers.openai]\nbase_url = \"{url}/v1\"\n\
         [providers.local]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\n\
         [mcp.servers.files]\ncommand = [\"sh\", \"serve.sh\"]\nenv = {{ KEY = \"${{A_TOKEN}}\" }}\n\
         [mcp.servers.web]\nurl = \"{url}/mcp\"\n\
         [mcp.servers.gone]\ncommand = [\"no-such-program-anywhere\"]\n"
    );
    Sandbox::with(&[
        ("tenure.toml", &config),
        ("serve.sh", "touch ran\n"),
        (
            "a.md",
            "---\nname: a\nmodel: local.small\nservers: [files, web]\ntools: { files: [read] }\n\
             ---\nx\n",
        ),
        ("b.md", "---\nname: b\nmodel: anthropic.claude-x\n---\nx\n"),
    ])
}

#[test]
fn g13_nothing_is_contacted_and_no_server_started_before_the_project_is_trusted() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it can be asked");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let sandbox = project(&url);
    for args in [
        &["check"][..],
        &["doctor"],
        &["explain"],
        &["trust", "review"],
        &["run", "a.md", "-m", "hi"],
    ] {
        let mut command = sandbox.command(args);
        command.env("A_TOKEN", "hush-hush").env("OPENAI_API_KEY", "sk-hush-hush");
        let ran = Ran::of(command.output().expect("it starts"));
        assert!(!ran.stdout.contains("hush") && !ran.stderr.contains("hush"), "{args:?}");
        if args[0] == "run" {
            ran.exits(4);
        }
    }
    assert!(listener.accept().is_err(), "somebody connected");
    assert!(!sandbox.path("ran").exists(), "the server was started");
    let ran = sandbox.run(&["trust", "review"]);
    for part in [
        "files: sh serve.sh (env KEY from A_TOKEN)",
        "serve.sh",
        "your key is NOT sent there",
        "model address",
    ] {
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn the_model_and_the_servers_are_explained() {
    let sandbox = project("http://127.0.0.1:9");
    let ran = sandbox.run(&["explain"]).exits(0);
    ran.prints("model local.small (local small at 127.0.0.1:9, which the project chose, key none")
        .prints("server files: sh serve.sh · tools read")
        .prints("server web: http://127.0.0.1:9/mcp")
        .prints("connects tool servers");
    let ran = sandbox.run(&["explain", "--json"]).exits(0);
    let agents: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(agents[0]["remote"]["provider"], "local");
    assert_eq!(agents[0]["servers"][0]["name"], "files");
    assert_eq!(agents[1]["remote"]["key"], "ANTHROPIC_API_KEY, which is not set");
}

#[test]
fn the_doctor_looks_for_keys_and_programs() {
    let sandbox = project("http://127.0.0.1:9");
    let ran = sandbox.run(&["doctor"]).exits(1);
    ran.prints("no configuration of yours at")
        .prints("anthropic at api.anthropic.com: ANTHROPIC_API_KEY is not set; used by b")
        .prints("local at 127.0.0.1:9: needs no key; used by a")
        .prints("gone: there is no program no-such-program-anywhere")
        .prints("web: http://127.0.0.1:9/mcp, which was not contacted")
        .prints("needs the variable A_TOKEN, which is not set");
    let ran = sandbox.run(&["doctor"]);
    assert!(!ran.stdout.contains("every variable that it uses is set"), "{}", ran.stdout);
    // The user's own configuration is found where it belongs.
    let folder = sandbox.home().join(".config/tenure");
    std::fs::create_dir_all(&folder).expect("a folder");
    let config = "[providers.anthropic]\napi_key_file = \"key\"\n";
    std::fs::write(folder.join("config.toml"), config).expect("a file");
    let ran = sandbox.run(&["doctor"]);
    ran.prints("your configuration").prints("key is not there; used by b");
    std::fs::write(folder.join("key"), "sk-ant-hush").expect("a file");
    let ran = sandbox.run(&["doctor"]).prints("anthropic at api.anthropic.com: key from");
    assert!(!ran.stdout.contains("hush"), "{}", ran.stdout);
    std::fs::write(folder.join("config.toml"), "[providers.x]\nkey = \"sk-hush\"\n")
        .expect("a file");
    let ran = sandbox.run(&["check"]).exits(3).prints("T0604");
    assert!(!ran.stdout.contains("hush"), "{}", ran.stdout);
}

#[test]
fn an_address_in_a_variable_that_is_none_is_told_by_name() {
    let card = "---\nname: a\nmodel: openai.gpt-4o\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card)]);
    let with = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.env("OPENAI_BASE_URL", "nonsense").env("OPENAI_API_KEY", "sk-hush-hush");
        Ran::of(command.output().expect("it starts"))
    };
    with(&["doctor"]).exits(0).prints("openai: the address in the variable OPENAI_BASE_URL begins");
    with(&["check"]).exits(0);
    with(&["run", "a.md", "-m", "hi"]).exits(3).says("set OPENAI_BASE_URL to an address");
}

#[test]
fn a_model_that_the_command_names_wrongly_is_not_blamed_on_the_card() {
    let card = "---\nname: a\nmodel: passthrough\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card)]);
    let ran = sandbox.run(&["run", "a.md", "--model", "sonet", "-m", "hi"]).exits(3);
    let ran = ran.says("--> --model:1:1").says("did you mean `sonnet`?");
    assert!(!ran.stderr.contains("model: passthrough"), "{}", ran.stderr);
}

#[test]
fn an_empty_message_is_refused_however_it_comes() {
    let card = "---\nname: a\nmodel: passthrough\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card)]);
    for message in ["", " \n"] {
        sandbox.run(&["run", "a.md", "-m", message]).exits(2).says("the message is empty");
        sandbox.run_with_input(&["run", "a.md"], message).exits(2).says("the message is empty");
    }
}

#[test]
fn g13_a_card_that_only_names_a_model_makes_no_request_before_it_is_trusted() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it can be asked");
    let host = listener.local_addr().expect("an address").to_string();
    let card = "---\nname: a\nmodel: openai.gpt-4o\n---\nx\n";
    let sandbox = Sandbox::with(&[("a.md", card)]);
    let with = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.env("OPENAI_BASE_URL", format!("http://{host}/v1"));
        command.env("OPENAI_API_KEY", "sk-hush-hush");
        Ran::of(command.output().expect("it starts"))
    };
    let asked = format!("openai requests go to {host} with your key OPENAI_API_KEY");
    with(&["run", "a.md", "-m", "hi"]).exits(4).says(&asked);
    assert!(listener.accept().is_err(), "somebody connected");
    // Nor does a card with a key in what it says, trusted or not.
    sandbox.write(
        "a.md",
        "---\nname: a\nmodel: openai.gpt-4o\ndescription: ${OPENAI_API_KEY}\n---\nx\n",
    );
    let ran = with(&["run", "a.md", "--trust", "-m", "hi"]).exits(3).says("T0219");
    assert!(!ran.stderr.contains("hush"), "{}", ran.stderr);
    assert!(listener.accept().is_err(), "somebody connected");
}
