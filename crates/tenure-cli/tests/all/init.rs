//! `tenure init`.

use crate::support::Sandbox;

#[test]
fn every_template_runs_as_it_was_written() {
    for (template, message, part) in
        [("hello", "good morning", "good morning"), ("team", "octopuses", "octopuses")]
    {
        let sandbox = Sandbox::new();
        sandbox.run(&["init", template]).exits(0).prints("Next:").prints(message);
        let ran = sandbox.run(&["run", template, "-m", message]).exits(0);
        assert!(ran.stdout.contains(part), "{ran}");
        sandbox.run(&["check", template, "--deny-warnings"]).exits(0);
        sandbox.run(&["explain", template]).exits(0);
    }
}

#[test]
fn the_approval_template_asks() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init", "approval"]).exits(0);
    sandbox.run(&["run", "approval", "-m", "buy milk"]).exits(7).says("tenure answer");
    sandbox.run(&["run", "approval", "-m", "buy milk", "--no-store"]).exits(5);
    assert_eq!(sandbox.read("approval/notes/note.txt"), "");
    let run = ["run", "approval", "-m", "buy milk"];
    sandbox.on_terminal(&run, &[("[a]pprove", "a")]).exits(0);
    assert_eq!(sandbox.read("approval/notes/note.txt"), "buy milk\n");
    sandbox.run(&["check", "approval", "--deny-warnings"]).exits(0);
}

#[test]
fn every_template_works_where_landlock_alone_confines() {
    let sandbox = Sandbox::new();
    for (template, part) in
        [("hello", "You said: octopuses"), ("team", "23 letters"), ("workflow", "APPROVED")]
    {
        sandbox.run(&["init", template]).exits(0);
        let message: &[&str] = if template == "workflow" { &[] } else { &["-m", "octopuses"] };
        let args = [&["run", template], message].concat();
        sandbox.run_without_namespaces(&args).exits(0).prints(part);
    }
    sandbox.run(&["init", "approval"]).exits(0);
    let [python, script] = sandbox.without_namespaces();
    let run = ["run", "approval", "-m", "buy milk"];
    sandbox.on_terminal_as(&[&python, &script], &run, &[("[a]pprove", "a")]).exits(0);
    assert_eq!(sandbox.read("approval/notes/note.txt"), "buy milk\n");
    sandbox.run_without_namespaces(&["demo"]).exits(0);
}

#[test]
fn nothing_is_overwritten() {
    let sandbox = Sandbox::new();
    sandbox.write("hello/hooks.py", "mine\n");
    sandbox.run(&["init", "hello"]).exits(2).says("hooks.py").says("nothing is overwritten");
    assert_eq!(sandbox.read("hello/hooks.py"), "mine\n");
    assert!(!sandbox.path("hello/greeter.md").exists());
}

#[test]
fn a_template_goes_into_any_folder() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init", "deep/bots", "--template", "hello"]).exits(0);
    sandbox.run(&["run", "deep/bots", "-m", "hi", "-q"]).exits(0).prints("You said: hi");
}

#[test]
fn what_was_written_stays_trusted_only_as_it_was_written() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init", "hello"]).exits(0);
    let hooks = sandbox.read("hello/hooks.py");
    sandbox.write("hello/hooks.py", &format!("{hooks}\n# mine\n"));
    sandbox.run(&["run", "hello", "-m", "hi"]).exits(4).says("changed");
}

#[test]
fn what_was_in_the_folder_before_is_not_trusted_along() {
    let sandbox = Sandbox::new();
    let foreign = "---\nname: foreign\nmodel: passthrough\nhooks:\n  - { on: before_agent, run: [\"sh\", \"x.sh\"] }\n---\nx\n";
    sandbox.write("hello/foreign.md", foreign);
    sandbox.write("hello/x.sh", "touch ran.txt\necho '{}'\n");
    sandbox.run(&["init", "hello"]).exits(0).prints("not trusted yet");
    sandbox.run(&["run", "hello", "--agent", "foreign", "-m", "hi"]).exits(4);
    assert!(!sandbox.store().exists());
}

#[test]
fn the_configuration_of_fast_agent_becomes_a_tenure_toml() {
    let config = "default_model: $system.fast
model_references: { system: { fast: passthrough } }
generic: { base_url: 'http://127.0.0.1:8080/v1', api_key: sk-in-clear }
mcp:
  servers:
    web: { url: 'https://example.com/mcp', headers: { X-Token: '${WEB_TOKEN}', X-Other: sk-in-clear }, roots: [] }
logger: { type: none }
";
    let card = "---\nname: dev\nservers: [web]\n---\nYou.\n";
    let sandbox = Sandbox::with(&[("dev/fastagent.config.yaml", config), ("dev/dev.md", card)]);
    let made = sandbox.run(&["init", "dev", "--from", "fast-agent"]).exits(0);
    let made = made.prints("Created").prints("[mcp.servers.web]").prints("3 settings left out");
    for left in ["`generic.api_key` is not read", "`mcp.servers.web.roots` means", "`logger` means"]
    {
        assert!(made.stderr.contains(left), "{made}");
    }
    assert!(!made.to_string().contains("sk-in-clear"), "{made}");
    assert_eq!(
        sandbox.read("dev/tenure.toml"),
        "default_model = \"$system.fast\"\n\n[aliases]\n\"$system.fast\" = \"passthrough\"\n\n\
         [mcp.servers.web]\nurl = \"https://example.com/mcp\"\n\n\
         [mcp.servers.web.headers]\nX-Other = \"sk-in-clear\"\nX-Token = \"${WEB_TOKEN}\"\n\n\
         [providers.generic]\nbase_url = \"http://127.0.0.1:8080/v1\"\n"
    );
    sandbox.run(&["check", "dev"]).exits(0).prints("T0912");
    sandbox.run(&["init", "dev", "--from", "fast-agent"]).exits(2).says("nothing is overwritten");

    let sandbox = Sandbox::with(&[("dev/fastagent.config.yaml", "mcp: { servers: { a: {} } }\n")]);
    sandbox.run(&["init", "dev", "--from", "fast-agent"]).exits(3).says("T0605");
    assert!(!sandbox.path("dev/tenure.toml").exists());
    sandbox.run(&["init", "--from", "fast-agent"]).exits(2).says("no fast-agent.yaml");
}
