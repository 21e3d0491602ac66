//! The page of the guide that lists the codes has every one of them, as it is.
//!
//! `TENURE_BLESS=1 cargo test -p tenure-cards codes` writes it anew.

use std::path::Path;
use tenure_cards::diagnostic::{Code, Severity};

fn page() -> String {
    let mut page = String::from(
        "# What `tenure check` reports\n\n\
         Every message has a code, which stays the same when the words change. T01xx are about files and YAML, T02xx about\n\
         the fields of cards, T03xx about hooks, T04xx about Python, T05xx about what holds between cards and paths, T06xx about\n\
         the project, T07xx about what cannot be run in this release, T09xx about what means nothing, T10xx about workflows.\n\n\
         | code | | means |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let severity = match code.severity() {
            Severity::Warning => "warning",
            _ => "error",
        };
        page.push_str(&format!("| {} | {severity} | {} |\n", code.as_str(), code.meaning()));
    }
    page
}

#[test]
fn the_guide_lists_every_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/codes.md");
    if std::env::var_os("TENURE_BLESS").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page(), "docs/codes.md is not up to date; TENURE_BLESS=1 writes it anew");
}
