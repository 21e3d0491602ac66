//! Stores that came with a project: nothing in them is acted on before a person agrees.

use super::{clerk, keys, only_ask, only_run, store};
use crate::support::Sandbox;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use tenure_core::engine::NewRun;
use tenure_store::{Authenticity, Begun, Store};

const RESUMES: &str = "[store]\non_start = \"resume\"\n";
const RUN: &[&str] = &["run", "clerk.md", "-m", "go", "--trust", "-q"];
const CARD: &str = "---\nname: a\nmodel: passthrough\n---\nx\n";

/// A project as it is shipped: with a run that only waits for being gone on with, since a stranger
/// has approved what it asks. The keys of the store are the stranger's.
fn shipped() -> Sandbox {
    let sandbox = clerk(RESUMES);
    sandbox.run(RUN).exits(7);
    let ask = only_ask(&sandbox).id;
    sandbox.run(&["answer", &ask, "approve"]).exits(0);
    fs::remove_dir_all(sandbox.home().join("data")).expect("they are the stranger's");
    sandbox
}

#[test]
fn a_run_that_a_stranger_approved_does_not_go_on_by_itself() {
    let sandbox = shipped();
    let before = fs::read(sandbox.path(".tenure/tenure.db")).expect("it is there");
    let run = only_run(&sandbox).id.to_string();
    let resume: &[&str] = &["run", "--resume", "--trust", "-q"];
    for args in [RUN, resume] {
        let ran = sandbox.run(args).exits(4).says("This store was not written by you");
        let ran = ran.says("1 run: 1 waiting").says("1 answered question").says("last written");
        ran.says("--adopt-store").says("--no-store");
        assert_eq!(sandbox.read("note.txt"), "", "nothing was executed");
    }
    let others = [
        &["cancel", &run][..],
        &["replay", &run, "--trust"],
        &["db", "compact"],
        &["db", "rotate-key"],
    ];
    for args in others {
        sandbox.run(args).exits(4).says("This store was not written by you");
    }
    let after = fs::read(sandbox.path(".tenure/tenure.db")).expect("it is there");
    assert!(before == after, "nothing was written");
    // It can be looked at, and that says what it is worth.
    for args in [&["runs"][..], &["show", &run], &["asks", "--all"], &["events", &run]] {
        sandbox.run(args).exits(0).says("not authenticated");
    }
    let exported = sandbox.run(&["export", &run]).exits(0).says("not authenticated");
    assert_eq!(exported.json_lines()[0]["authenticated"], false, "{exported}");
    sandbox.run(&["db", "verify"]).exits(0).prints("not authenticated");
    let copied = sandbox.run(&["db", "backup", "copy.db", "--json"]).exits(0);
    assert_eq!(copied.json_lines()[0]["authenticated"], false, "{copied}");
    let verified = sandbox.run(&["db", "verify", "--store", "copy.db", "--json"]).exits(0);
    let line = &verified.json_lines()[0];
    assert_eq!((&line["whole"], &line["authenticated"]), (&json!(true), &json!(false)));
    // Who knows where it comes from says so; then it is theirs.
    sandbox.run(&[resume, &["--adopt-store"]].concat()).exits(0).says("adopted");
    assert_eq!(sandbox.read("note.txt"), "buy milk\n");
    sandbox.run(&["db", "verify"]).exits(0).prints("nothing is damaged\n");
}

#[test]
fn on_a_terminal_it_is_asked_and_anything_but_yes_is_a_no() {
    let sandbox = shipped();
    let question = "Adopt it and go on?";
    let shown = sandbox.on_terminal(RUN, &[(question, "n\n")]).exits(4);
    assert!(shown.stdout.contains("1 answered question"), "{shown}");
    assert_eq!(sandbox.read("note.txt"), "", "{shown}");
    assert_eq!(store(&sandbox).authenticity(), Authenticity::Unknown);
    let shown = sandbox.on_terminal(&["runs", "--adopt-store"], &[]).exits(0);
    assert!(shown.stdout.contains("adopted"), "{shown}");
    assert_eq!(store(&sandbox).authenticity(), Authenticity::Authenticated);
}

#[test]
fn a_model_of_the_record_is_not_the_persons_own_choice() {
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", CARD)]);
    sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(0);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("it starts").block_on(async {
        let input = json!({
            "path": "a.md", "message": "hi", "model": "anthropic.claude-sonnet-4-5", "date": 0,
        });
        let driver = store(&sandbox).drive("a test").expect("nobody else drives");
        let begun = driver.begin(NewRun::new("card", input).name("a")).await.expect("it begins");
        assert!(matches!(begun, Begun::New(_)));
    });
    let mut resume = sandbox.command(&["run", "--resume"]);
    let resume = resume.env("ANTHROPIC_API_KEY", "sk-ant-none").output().expect("it starts");
    let ran = crate::support::Ran::of(resume).exits(4);
    ran.says("api.anthropic.com").says("no network request was made");
    sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(0);
}

#[test]
fn records_are_not_kept_through_a_link_out_of_the_project() {
    for is_folder in [true, false] {
        let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", CARD)]);
        let outside = sandbox.home().join("outside");
        fs::create_dir(&outside).expect("it is made");
        let made = if is_folder {
            symlink(&outside, sandbox.path(".tenure"))
        } else {
            fs::create_dir(sandbox.path(".tenure")).expect("it is made");
            symlink(outside.join("t.db"), sandbox.path(".tenure/tenure.db"))
        };
        made.expect("it is linked");
        let ran = sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(4);
        ran.says("is a link out of the project").says("--store");
        sandbox.run(&["runs"]).exits(4).says("is a link out of the project");
        assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 0, "nothing was made");
    }
}

#[test]
fn the_folder_of_records_is_private_whoever_made_it() {
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", CARD), (".tenure/other", "x")]);
    let folder = sandbox.path(".tenure");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is set");
    sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(0);
    let mode = fs::metadata(&folder).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(sandbox.read(".tenure/.gitignore"), "*\n");
}

#[test]
fn a_file_elsewhere_in_the_project_is_for_its_owner_and_no_repository() {
    let toml = "[store]\npath = \"kept/deep/runs[1].db\"\n";
    let sandbox = Sandbox::with(&[("tenure.toml", toml), ("a.md", CARD), ("data/.gitignore", "x")]);
    let mode = |name: &str| {
        let found = fs::metadata(sandbox.path(name)).expect("it is there");
        found.permissions().mode() & 0o777
    };
    sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(0);
    assert_eq!((mode("kept"), mode("kept/deep")), (0o700, 0o700), "folders made for it");
    assert_eq!(mode("kept/deep/runs[1].db"), 0o600);
    assert_eq!(sandbox.read("kept/deep/.gitignore"), "*\n");
    // A folder that is there may have more in it: that stays as it is.
    let before = mode("data");
    sandbox.write("tenure.toml", "[store]\npath = \"data/runs[1].db\"\n");
    for _ in 0..2 {
        sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(0);
        assert_eq!(sandbox.read("data/.gitignore"), "x\n/runs\\[1].db*\n");
    }
    assert_eq!((mode("data"), mode("data/runs[1].db")), (before, 0o600));
    let git = |args: &[&str]| {
        let output = sandbox.other("git", args).output().expect("git is there");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    git(&["init", "-q"]);
    let seen = git(&["status", "--porcelain", "-uall"]);
    assert!(seen.contains("a.md") && !seen.contains(".db"), "{seen}");
    // By name, too, in the project and outside of it.
    sandbox.run(&["run", "a.md", "-m", "hi", "-q", "--store", "named/here.db"]).exits(0);
    assert_eq!((mode("named"), mode("named/here.db")), (0o700, 0o600));
    assert_eq!(sandbox.read("named/.gitignore"), "*\n");
    let outside = sandbox.home().join("new/here.db").display().to_string();
    sandbox.run(&["run", "a.md", "-m", "hi", "-q", "--store", &outside]).exits(0);
    let made = fs::metadata(sandbox.home().join("new")).expect("it is there").permissions();
    assert_eq!(made.mode() & 0o777, 0o700);
}

#[test]
fn keys_in_the_project_do_not_count() {
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", CARD)]);
    let run = |variable: &str, at: std::path::PathBuf, args: &[&str]| {
        let ran = sandbox.command(args).env(variable, at).output().expect("it starts");
        crate::support::Ran::of(ran)
    };
    symlink(sandbox.project(), sandbox.home().join("link")).expect("it is linked");
    let places = [
        ("XDG_DATA_HOME", sandbox.path("data")),
        ("XDG_DATA_HOME", sandbox.home().join("link/data")),
        ("TENURE_STORE_KEY_FILE", sandbox.path("team.key")),
        ("TENURE_STORE_KEY_FILE", "team.key".into()),
    ];
    for (variable, at) in places {
        let ran = run(variable, at.clone(), &["run", "a.md", "-m", "hi", "-q"]).exits(4);
        ran.says("inside the project").says("TENURE_STORE_KEY_FILE").says("--no-store");
        assert!(!sandbox.path(".tenure").exists(), "nothing was made");
        assert!(!sandbox.path("data").exists() && !sandbox.path("team.key").exists());
        run(variable, at.clone(), &["run", "a.md", "-m", "hi", "-q", "--no-store"]).exits(0);
        run(variable, at.clone(), &["runs"]).exits(4).says("inside the project");
        run(variable, at, &["doctor"]).exits(1).prints("inside the project");
    }
}

#[test]
fn keys_of_stores_that_are_gone_are_named_by_doctor() {
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", CARD)]);
    sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(0);
    let doctor = || sandbox.run(&["doctor"]).stdout;
    assert!(!doctor().contains("not where they were"));
    fs::remove_dir_all(sandbox.path(".tenure")).expect("it is deleted");
    let said = doctor();
    assert!(said.contains("1 key of stores that are not where they were"), "{said}");
    assert!(said.contains("project/.tenure/tenure.db"), "{said}");
}

#[test]
fn a_backup_from_before_the_key_was_rotated_is_asked_about() {
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", CARD)]);
    sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(0);
    sandbox.run(&["db", "backup", "copy.db"]).exits(0);
    sandbox.run(&["db", "rotate-key"]).exits(0).says("--adopt-store");
    let of_copy = |args: &[&str]| sandbox.run(&[args, &["--store", "copy.db"]].concat());
    of_copy(&["runs"]).exits(0).says("not authenticated").prints("hi → hi");
    of_copy(&["db", "compact"]).exits(4).says("none of your keys");
    of_copy(&["db", "compact", "--adopt-store"]).exits(0);
    of_copy(&["db", "verify"]).exits(0).prints("nothing is damaged\n");
}

#[test]
fn a_key_can_be_rotated_and_named_by_a_variable() {
    let sandbox = Sandbox::with(&[("tenure.toml", ""), ("a.md", CARD)]);
    let run = |args: &[&str]| {
        let mut command = sandbox.command(args);
        let file = sandbox.home().join("team.key");
        let ran = command.env("TENURE_STORE_KEY_FILE", file).output().expect("it starts");
        crate::support::Ran::of(ran)
    };
    run(&["run", "a.md", "-m", "hi", "-q"]).exits(0);
    run(&["db", "rotate-key"]).exits(0).prints("with a new key");
    run(&["db", "verify"]).exits(0).prints("nothing is damaged\n");
    run(&["run", "a.md", "-m", "hi", "-q"]).exits(0);
    // Who does not have the file does not have the store.
    sandbox.run(&["run", "a.md", "-m", "hi", "-q"]).exits(4).says("none of your keys");
    let store = Store::open_existing_with(sandbox.path(".tenure/tenure.db"), &keys(&sandbox));
    assert_eq!(store.expect("it is read").authenticity(), Authenticity::Unknown);
}
