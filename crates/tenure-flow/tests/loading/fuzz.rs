//! Whatever files hold, loading them ends with a report.

use crate::loading::support::{Project, here};
use proptest::prelude::*;

/// Bits that files are likely to be broken with.
const BITS: &[&str] = &[
    "",
    "null",
    "[]",
    "{}",
    "\"",
    "'",
    ":",
    ",",
    "- ",
    "}",
    "]",
    "0",
    "-1",
    "true",
    "${",
    "\u{0}",
    "\n",
    "\t",
    "é🚀",
    "&a *a",
    "<<: *a",
    "!!str",
    "agent",
    "user",
    "terminate",
    "../..",
    "/",
];

fn mutated(text: &str, at: usize, length: usize, bit: &str) -> String {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let from = floor(at % (text.len() + 1));
    let to = floor(from + length);
    format!("{}{bit}{}", &text[..from], &text[to.max(from)..])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn mutations_of_good_files_never_panic_the_loader(
        at in 0usize..20_000,
        length in 0usize..60,
        bit in proptest::sample::select(BITS),
        second in 0usize..20_000,
    ) {
        let text = std::fs::read_to_string(here().join("good/full_json.txt")).expect("there");
        let (kept, sections) = text.split_at(text.find("=== orchestrator.json").expect("there"));
        let mut files: Vec<String> = sections.split("=== ").map(str::to_owned).collect();
        let chosen = 1 + at % (files.len() - 1);
        let (path, body) = files[chosen].split_once('\n').expect("a path and a text");
        let body = mutated(&mutated(body, at, length, bit), second, length / 2, bit);
        files[chosen] = format!("{path}\n{}", body.replace("=== ", "==="));
        let project = Project::with(&format!("{kept}{}", files.join("=== ")));
        let loaded = project.load();
        // What is said can be shown in every form.
        let _ = (project.report(&loaded), loaded.report.to_json_lines(), loaded.report.to_sarif());
    }
}
