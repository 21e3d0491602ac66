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
    assert_eq!(sandbox.read("approval/note.txt"), "");
    let run = ["run", "approval", "-m", "buy milk"];
    sandbox.on_terminal(&run, &[("[a]pprove", "a")]).exits(0);
    assert_eq!(sandbox.read("approval/note.txt"), "buy milk\n");
    sandbox.run(&["check", "approval", "--deny-warnings"]).exits(0);
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
