//! Whatever the cards and the Python of a project hold, loading them ends without a panic, and
//! each message has a place and a remedy.

use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use tenure_cards::card::Environ;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Color;
use tenure_cards::trust::inventory;
use tenure_testkit::cases;

/// The texts of the corpus: cards, Python, history files and configuration.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut texts = Vec::new();
    let mut open = vec![PathBuf::from("tests/corpus")];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(folder).expect("the corpus can be read");
        let mut paths: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            let is_text = path.extension().is_some_and(|end| end != "expected");
            if path.is_dir() {
                open.push(path);
            } else if is_text && let Ok(text) = fs::read_to_string(&path) {
                texts.push(text);
            }
        }
    }
    texts
});

const WORDS: &[&str] = &[
    "hooks.py:start",
    "file.py:",
    ":",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "on: ",
    "run: ",
    "use: ",
    "name: ",
    "type: chain",
    "agents: [a]",
    "null",
    "5",
    "-1",
    "1e999",
    "true",
    "${A}",
    "${A:b}",
    "{{file:x}}",
    "{{",
    "}}",
    "\n",
    "\n\n---\n",
    "\t",
    "é",
    "\u{feff}",
    "\u{0}",
    "\"",
    "'",
    "&a ",
    "*a",
    "<<: ",
    "!!int ",
    "def f(ctx):",
    "lambda: ",
    "    ",
    "\\",
    "../",
    "/",
    "a -> b",
    "timeout: 5s",
    "|\n  ",
];

/// A text of the corpus, cut and mixed with words and with another text.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..30usize, any::<prop::sample::Index>());
    (any::<prop::sample::Index>(), prop::collection::vec(edit, 0..6), any::<bool>()).prop_map(
        |(which, edits, splice)| {
            let mut text: Vec<char> = which.get(&TEXTS).chars().take(4000).collect();
            for (at, cut, word) in edits {
                let at = at.index(text.len() + 1);
                let end = (at + cut).min(text.len());
                let word = if splice && cut > 25 {
                    word.get(&TEXTS).chars().take(200).collect::<String>()
                } else {
                    (*word.get(WORDS)).to_owned()
                };
                text.splice(at..end, word.chars());
            }
            text.into_iter().collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(100, 400) as u32, failure_persistence: None, ..Default::default() })]

    #[test]
    fn loading_never_panics(card in mutated(), other in mutated(), python in mutated(), config in mutated()) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        put("card.md", &card);
        put("other.yaml", &other);
        put("hooks.py", &python);
        put("tools.py", &python);
        put("history.txt", &card);
        put("h.json", &config);
        put("tenure.toml", if config.len().is_multiple_of(3) { &config } else { "" });
        let options = LoadOptions::default().environ(Environ::of([("A", "${A}")]));
        for path in [folder.path().to_owned(), folder.path().join("card.md")] {
            let loaded = load(&path, &options);
            for found in &loaded.report {
                prop_assert!(found.help.is_some(), "{found:?}");
                let (range, text) = (found.span.range(), found.source.text());
                prop_assert!(range.end <= text.len(), "{found:?}");
                prop_assert!(text.is_char_boundary(range.start) && text.is_char_boundary(range.end));
            }
            loaded.report.render_text(Color::Never);
            inventory(&loaded);
        }
    }
}
