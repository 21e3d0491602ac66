//! The files that the guide shows are real: each page is a project that checks without an error.
//!
//! A block whose fence names a file, as in "```yaml clerk.yaml", is that file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(path).expect("the page is part of the repository")
}

/// The named files of a page, in order.
fn files(page: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if let Some((_, name)) = info.split_once(' ') {
            files.push((name.to_owned(), block.join("\n") + "\n"));
        }
    }
    files
}

struct Project {
    folder: tempfile::TempDir,
    /// Where the user's data is: keys of stores do not count inside the project.
    home: tempfile::TempDir,
}

impl Project {
    fn of(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (file, text) in files(&page(name)) {
            let path = folder.path().join(&file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            fs::write(&path, text).expect("it can be written");
            if file.ends_with(".sh") {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
            }
        }
        Self { folder, home: tempfile::tempdir().expect("a temporary folder") }
    }

    fn tenure(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env("XDG_DATA_HOME", self.home.path())
            .env("NO_COLOR", "1")
            .output()
            .expect("the program runs")
    }
}

fn told(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn the_files_of_every_page_check_without_an_error() {
    for name in ["cards.md", "hooks-in-files.md", "workflows.md"] {
        assert!(files(&page(name)).len() > 3, "{name} shows files");
        let output = Project::of(name).tenure(&["check", "--deny-warnings"]);
        assert!(output.status.success(), "{name}: {}", told(&output));
    }
}

#[test]
fn the_cards_of_the_guide_run() {
    let project = Project::of("cards.md");
    let output = project.tenure(&["run", ".", "--trust", "-m", "Good morning"]);
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Good morning\n");
    let told = told(&output);
    assert!(told.contains("greeter starts") && told.contains("greeter stops: True"), "{told}");
}

#[test]
fn the_workflow_of_the_guide_runs() {
    let project = Project::of("workflows.md");
    let output = project.tenure(&["run", "greeting", "--trust", "--user", "ada"]);
    assert!(output.status.success(), "{}", told(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "host:\nCome in! It is late.\n\ncook:\nThere is soup.\n");
    let told = told(&output);
    assert!(told.contains("a light for ada") && told.contains("good night"), "{told}");
}

#[test]
fn the_guard_of_the_guide_asks_before_it_deploys() {
    let project = Project::of("hooks-in-files.md");
    let deploy = r#"***CALL_TOOL deploy {"target": "production"}"#;
    for (more, code) in [(&["--no-store"][..], 5), (&[], 7)] {
        let output = project.tenure(&[&["run", ".", "--trust", "-m", deploy], more].concat());
        let said = told(&output);
        assert_eq!(output.status.code(), Some(code), "nobody is there to be asked: {said}");
        assert!(!said.contains("deployed to production"), "{said}");
    }
    let deploy = r#"***CALL_TOOL deploy {"target": "staging"}"#;
    let output = project.tenure(&["run", ".", "--trust", "-m", deploy]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "deployed to staging\n",
        "{}",
        told(&output)
    );
    assert!(project.folder.path().join("audit.log").exists(), "the command ran");
}

#[test]
fn the_codes_that_the_guide_shows_exist_with_that_meaning() {
    let project = tempfile::tempdir().expect("a temporary folder");
    let card = "---\nmodel: passthrough\nlifecycle_hooks:\n  \
                on_shutdown: { run: h.py:f, timeout: 2000 }\n---\nHi.\n";
    fs::write(project.path().join("deployer.md"), card).expect("it can be written");
    fs::write(project.path().join("h.py"), "def f(ctx):\n    pass\n").expect("it can be written");
    let project =
        Project { folder: project, home: tempfile::tempdir().expect("a temporary folder") };
    let output = project.tenure(&["check"]);
    assert_eq!(output.status.code(), Some(3));
    let first = told(&output);
    let first = first.lines().next().unwrap_or_default();
    assert!(page("cards.md").contains(first), "the guide does not show `{first}`");
}
