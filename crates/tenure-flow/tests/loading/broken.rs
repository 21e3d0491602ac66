//! Broken folders: every one is reported, with its place and what to do.

use crate::loading::support::{Project, here};
use std::collections::BTreeSet;
use tenure_cards::{Code, Severity};

/// Each file of `broken/` is a folder. Its report is in `snapshots/`.
#[test]
fn every_broken_folder_is_reported_as_recorded() {
    let mut cases: Vec<_> = std::fs::read_dir(here().join("broken"))
        .expect("the cases are there")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 60, "only {} cases", cases.len());
    let mut seen: BTreeSet<Code> = BTreeSet::new();
    for case in cases {
        let name = case.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&case).expect("it can be read");
        let project = Project::with(&text);
        let loaded = project.load();
        assert!(loaded.report.has_errors(), "{name} has no errors");
        for found in loaded.report.iter() {
            assert!(found.help.is_some(), "{name}: {} has no help", found.message);
            seen.insert(found.code);
            let is_error = found.severity == Severity::Error;
            assert!(is_error || found.code.as_str().starts_with("T09"), "{name}: {}", found.code);
        }
        let report = project.report(&loaded);
        assert!(!report.contains("/tmp"), "{name} shows where it was tried:\n{report}");
        insta::with_settings!({
            snapshot_path => "snapshots",
            prepend_module_to_snapshot => false,
            omit_expression => true,
            description => text,
        }, { insta::assert_snapshot!(name, report) });
    }
    let of_workflows = Code::ALL.iter().filter(|code| code.as_str().starts_with("T10"));
    let missing: Vec<_> = of_workflows.filter(|code| !seen.contains(code)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}
