//! Whatever a file holds, reading it ends soon, without a panic, and says what is wrong.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tenure_cards::diagnostic::{Code, Color, Report};
use tenure_cards::dump::{Format, dump_document};
use tenure_cards::source::{Document, Source, parse, read};
use tenure_testkit::cases;

/// What no input may take longer than, on a slow and busy machine.
const SOON: Duration = Duration::from_secs(10);

fn parsed(path: &str, text: &str) -> (Option<Document>, Report) {
    let mut report = Report::new();
    let document = parse(&Arc::new(Source::new(path, text)), &mut report);
    (document, report)
}

/// Reads the text as each kind of card, renders what is wrong, and dumps what was read.
fn survives(text: &str) {
    let begun = Instant::now();
    for path in ["fuzz.md", "fuzz.yaml"] {
        let (document, report) = parsed(path, text);
        for found in &report {
            assert_ne!(
                found.code,
                Code::YamlReaderFailed,
                "{path}: the YAML reader panicked on {text:?}"
            );
            let range = found.span.range();
            assert!(range.end <= found.source.text().len(), "{path}: {found:?}");
            assert!(text.is_char_boundary(range.start) && text.is_char_boundary(range.end));
        }
        let shown = report.render_text(Color::Never);
        let drives = |found: char| found.is_control() && found != '\n';
        assert!(!shown.contains(drives), "{shown:?}");
        assert_eq!(report.to_json_lines().lines().count(), report.len());
        assert_eq!(
            report.to_sarif()["runs"][0]["results"].as_array().map(Vec::len),
            Some(report.len())
        );
        match document {
            None => assert!(
                report.has_errors(),
                "{path}: nothing was read of {text:?}, and nothing said why"
            ),
            Some(document) => dumps(&document, &report),
        }
    }
    assert!(begun.elapsed() < SOON, "{:?} for {text:?}", begun.elapsed());
}

/// A card without errors is dumped, read again without errors, and dumped alike.
fn dumps(document: &Document, report: &Report) {
    for (format, path) in [(Format::Markdown, "dump.md"), (Format::Yaml, "dump.yaml")] {
        let first = dump_document(document, "fuzz", format);
        let both = document.body.is_some() && document.tree.field("instruction").is_some();
        if report.has_errors() || both {
            continue;
        }
        let (again, report) = parsed(path, &first);
        let source = document.source.text();
        assert!(report.is_empty(), "{source:?}\n{first}\n{}", report.render_text(Color::Never));
        let again = again.expect("without errors there is a document");
        assert_eq!(dump_document(&again, "fuzz", format), first, "{source:?}");
    }
}

/// Text made of what YAML and front matter are made of.
fn soup() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "\n",
        "\n",
        "\n  ",
        "\n    ",
        "\n\t",
        "  ",
        " ",
        "\t",
        "- ",
        "-",
        ": ",
        ":",
        "? ",
        "?",
        ",",
        "[",
        "]",
        "{",
        "}",
        "&a ",
        "&b",
        "*a",
        "*b",
        "*a ",
        "<<: ",
        "!",
        "!!str ",
        "!!map ",
        "!x!y ",
        "!<tag:x> ",
        "|",
        ">",
        "|+\n",
        "|-\n ",
        ">2\n",
        "'",
        "\"",
        "\\",
        "\\x",
        "\\u00",
        "#",
        " # c",
        "---",
        "---\n",
        "--- ",
        "...",
        "...\n",
        "%YAML 1.1\n",
        "%TAG ! x\n",
        "@",
        "`",
        "~",
        "null",
        "yes",
        "12",
        "0x1F",
        "1.5",
        "name",
        "name: ",
        "type: agent\n",
        "instruction: ",
        "key: value\n",
        "---SYSTEM\n",
        "---USER\n",
        "+++\n",
        "\r",
        "\r\n",
        "\0",
        "\u{feff}",
        "\u{85}",
        "\u{2028}",
        "é",
        "🙂",
        "\u{202e}",
        "\u{1b}[31m",
        "\u{9b}",
        "${HOME}",
        "${A:b}",
        "{{x}}",
        "$",
        "\u{ffff}",
    ]);
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

const GOOD: &[&str] = &[
    "---\nname: a\nmodel: x\n# c\nlifecycle_hooks:\n  on_start: hooks.py:f\n  on_shutdown: { run: h.py:g, timeout: 5s }\n---\n\nYou are helpful.\n\n- a\n- b\n",
    "type: chain\nsequence:\n  - a\n  - b\ndescription: >\n  folded\n  text\ninstruction: |\n  Do it.\n",
    "base: &b\n  x: 1\n  y: [1, 2]\nother:\n  <<: *b\n  z: *b\nname: \"q\\n\\u00e9\"\n",
    "\u{feff}---\r\nname: 'it''s'\r\ntools: {s: [a, b]}\r\n---\r\nBody ${X}\r\n",
    "{name: a, hooks: [{on: before_agent, run: [\"./x\", '-y']}], k: ~}\n",
];

fn mutated() -> impl Strategy<Value = String> {
    let cut = (any::<prop::sample::Index>(), 0..6_usize, soup());
    (prop::sample::select(GOOD), prop::collection::vec(cut, 1..4)).prop_map(|(card, cuts)| {
        let mut letters: Vec<char> = card.chars().collect();
        for (at, len, new) in cuts {
            let at = at.index(letters.len() + 1);
            let end = (at + len).min(letters.len());
            letters.splice(at..end, new.chars().take(12));
        }
        letters.into_iter().collect()
    })
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: cases(150, 600) as u32,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn soup_is_survived(text in soup()) {
        survives(&text);
    }

    #[test]
    fn soup_between_markers_is_survived(yaml in soup(), body in soup()) {
        survives(&format!("---\n{yaml}\n---\n{body}"));
    }

    #[test]
    fn soup_as_a_value_is_survived(value in soup()) {
        survives(&format!("a: {value}\nb: 1\n"));
    }

    #[test]
    fn mutated_cards_are_survived(text in mutated()) {
        survives(&text);
    }

    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        survives(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(50, 200) as u32, ..config() })]

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("fuzz.md");
        std::fs::write(&path, &bytes).expect("written");
        let mut report = Report::new();
        match read(&path, "fuzz.md", &mut report) {
            Some(source) => survives(source.text()),
            None => {
                let found = report.iter().next().expect("a diagnostic");
                prop_assert_eq!(found.code, Code::NotUtf8);
                prop_assert!(report.render_text(Color::Never).contains("save it as UTF-8"));
            }
        }
    }
}

#[test]
fn bombs_end_soon_in_a_diagnostic() {
    let laughs = (1..12).fold("a0: &a0 [x]\n".to_owned(), |text, level| {
        let list = vec![format!("*a{}", level - 1); 10].join(",");
        text + &format!("a{level}: &a{level} [{list}]\n")
    });
    let merges = (1..40).fold("a0: &a0 {k: [1, 2, 3]}\n".to_owned(), |text, level| {
        let last = level - 1;
        text + &format!("a{level}: &a{level} {{<<: *a{last}, x{level}: *a{last}, y: *a{last}}}\n")
    });
    let bombs = [
        ("billion laughs", laughs, Code::TooManyNodes),
        ("merges", merges, Code::TooManyNodes),
        ("brackets", "[".repeat(1_000_000), Code::TooDeep),
        ("braces", "{a: ".repeat(250_000), Code::TooDeep),
        ("dashes", "- ".repeat(500_000), Code::TooDeep),
        ("questions", "? ".repeat(500_000), Code::TooDeep),
        ("duplicates", "key: 1\n".repeat(10_000), Code::DuplicateKey),
        ("keys that are no text", "[a]: 1\n".repeat(50), Code::KeyNotText),
        ("open quote", format!("a: \"{}", "x".repeat(1_000_000)), Code::YamlSyntax),
        ("a long key", format!("{}: 1", "x".repeat(1_000_000)), Code::YamlSyntax),
        ("anchors", format!("a: {}", "&x ".repeat(300_000)), Code::YamlSyntax),
    ];
    for (what, text, code) in bombs {
        let begun = Instant::now();
        let (_, report) = parsed("bomb.yaml", &text);
        assert!(
            report.iter().any(|found| found.code == code),
            "{what}: {}",
            report.render_text(Color::Never)
        );
        assert!(begun.elapsed() < SOON, "{what}: {:?}", begun.elapsed());
        assert!(report.render_text(Color::Never).len() < 20_000, "{what}");
    }
}

#[test]
fn long_texts_are_read_and_dumped_soon() {
    let begun = Instant::now();
    for text in [
        format!("a: {}\n", "x".repeat(250_000)),
        format!("a: |\n{}", "  line\n".repeat(35_000)),
        format!("a: \"{}\"\n", "\\n".repeat(125_000)),
        format!("---\nname: a\n---\n{}", "text\n".repeat(50_000)),
        format!("a: 1\n{}", "# comment\n".repeat(25_000)),
        format!("a: 1{}", "\n".repeat(250_000)),
        format!("a: [{}]\n", "1, ".repeat(25_000)),
    ] {
        let path = if text.starts_with("---") { "long.md" } else { "long.yaml" };
        let (document, report) = parsed(path, &text);
        assert!(report.is_empty(), "{}", report.render_text(Color::Never));
        dumps(&document.expect("without errors there is a document"), &report);
    }
    assert!(begun.elapsed() < SOON * 3, "{:?}", begun.elapsed());
}
