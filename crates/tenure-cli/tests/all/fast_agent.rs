//! A project that was made for fast-agent, from `tests/fast_agent_project`, as its users meet it.

use crate::support::{Ran, Sandbox};
use std::path::Path;

/// The project in a place of its own: no folder above it has a `tenure.toml`.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fast_agent_project");
    copy(&from, &sandbox.project());
    sandbox
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("the project").flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match source.is_dir() {
            true => copy(&source, &target),
            false => {
                std::fs::copy(source, target).expect("a file");
            }
        }
    }
}

const NOTES: &str = "parser: accepts blank lines before a heading\nwriter: keeps the order of keys";

fn runs(sandbox: &Sandbox, path: &str) -> Ran {
    let _ = std::fs::remove_dir_all(sandbox.path("notes"));
    let ran = sandbox.run(&["run", path, "--trust", "--no-store", "-m", "Write them"]).exits(0);
    assert_eq!(ran.stdout, "The notes are written: 3\n2.1.md\n", "{ran}");
    assert_eq!(sandbox.read("notes/2.1.md"), NOTES);
    for line in
        ["session opened agent='editor'", "corrected a tool's name", "session closed turns=1"]
    {
        assert!(ran.stderr.contains(line), "{line}: {ran}");
    }
    ran
}

#[test]
fn a_workspace_is_checked_explained_and_run_as_it_is() {
    let sandbox = sandbox();
    for path in [".", ".fast-agent"] {
        let checked = sandbox.run(&["check", path]).exits(0);
        let checked = checked.prints("3 cards").prints("3 warnings");
        for said in [
            "T0604]: `anthropic.api_key` is not read",
            "T0904]: `logger` means nothing here",
            "T0912]: this file is not read",
        ] {
            assert!(checked.stdout.contains(said), "{said}: {checked}");
        }
        let explained = sandbox.run(&["explain", path]).exits(0);
        explained.prints("agent__searcher").prints("write_text_file").prints("searcher");
        runs(&sandbox, path);
    }
    // Nothing runs of it before it is trusted.
    sandbox.run(&["run", ".", "-m", "Write them"]).exits(4).says("read and write files");
}

#[test]
fn a_converted_workspace_runs_in_the_same_way() {
    let sandbox = sandbox();
    sandbox.run(&["init", "--from", "fast-agent"]).exits(0).prints("[mcp.servers.fetch]");
    sandbox.run(&["check"]).exits(0).prints("fast-agent.yaml").prints("T0912");
    runs(&sandbox, ".");
}
