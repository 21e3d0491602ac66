//! What the documents point to is there. Their code is compiled and run by the doc tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder is part of the repository");
    entries.map(|entry| entry.expect("the folder can be read").path()).collect()
}

fn guide() -> Vec<PathBuf> {
    let mut pages: Vec<_> = files("docs")
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

#[test]
fn every_link_to_a_file_leads_to_one() {
    let tops = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let pages = tops.iter().map(|name| root().join(name)).chain(guide());
    let mut dead = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let path = link.split('#').next().unwrap_or(link);
            if !page.parent().unwrap().join(path).exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_eq!(dead, Vec::<String>::new());
}

#[test]
fn every_page_of_the_guide_is_a_doc_test_and_in_the_readme() {
    // A page is tested in the crate whose code it shows.
    let crates = ["tenure", "tenure-flow", "tenure-hosts", "tenure-models", "tenure-store"];
    let lib = |name| fs::read_to_string(root().join(format!("crates/{name}/src/lib.rs"))).unwrap();
    let tested: String = crates.iter().map(lib).collect();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for page in guide() {
        let name = format!("docs/{}", page.file_name().unwrap().to_string_lossy());
        assert!(tested.contains(&name), "{name} is in no module `guide`");
        assert!(readme.contains(&name), "the README has no link to {name}");
    }
}

#[test]
fn the_code_map_has_every_module_and_every_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let names = |folder: &str| -> BTreeSet<String> {
        files(folder)
            .into_iter()
            .filter(|path| path.is_dir() || path.extension().is_some_and(|it| it == "rs"))
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() { format!("`{name}/`") } else { format!("`{name}`") }
            })
            .collect()
    };
    let mapped = [
        "tenure-core",
        "tenure-hosts",
        "tenure-cards",
        "tenure-flow",
        "tenure-store",
        "tenure-cli",
    ];
    for module in mapped.iter().flat_map(|krate| names(&format!("crates/{krate}/src"))) {
        let root = ["`lib.rs`", "`main.rs`"].contains(&module.as_str());
        assert!(root || map.contains(&module), "{module} is not in the code map");
    }
    for krate in names("crates") {
        let krate = krate.replace('/', "");
        let path = krate.replace('`', "");
        let mapped = map.contains(&krate) || map.contains(&format!("`crates/{path}`"));
        assert!(mapped, "{krate} is not in the code map");
    }
}

#[test]
fn the_tests_that_prove_the_guarantees_are_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let named = text.split('`').filter(|word| {
        (word.starts_with("guarantees/") || word.starts_with("semantics/")) && word.ends_with(".rs")
    });
    let missing: Vec<_> =
        named.filter(|file| !root().join("crates/tenure-core/tests").join(file).exists()).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
